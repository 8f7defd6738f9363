"""Goes on with interrupted sessions: what one has measured is not measured again.

Its journal has the records. They go into the journal of the session that goes on, which so is
complete by itself, and each says when the session that measured it began.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, starmap
from pathlib import Path
from textwrap import shorten
from typing import Any

import pytest

from fwbench.errors import NothingToResume, StorageError, UnreadableRun, UsageError
from fwbench.jsontext import dumps, loads
from fwbench.options.options import SETTINGS
from fwbench.plugin import host
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.options import resumes_by_ini
from fwbench.plugin.session import CELL
from fwbench.plugin.store import Store
from fwbench.records import journal
from fwbench.records.launches import Entry
from fwbench.records.units import count

#: The option.
FLAG = SETTINGS["resume"].flag

#: Facts of a session that must be equal in the one that goes on.
_EQUAL = ("version", "machine", "frameworks", "variables")

#: As many that are not are named, and as many characters of their values.
_NAMED, _LONGEST = 4, 60


class Resumption:
    """The hooks that hand pytest the records of an interrupted session."""

    def __init__(self, config: pytest.Config, store: Store) -> None:
        self._config = config
        self._store = store
        self._folder = journal.journal_folder(config.rootpath)
        self._path = Path()
        self._taken: list[tuple[pytest.Item, Entry]] = []
        self._begins_anew = ""  # why, where the ini file asks to go on
        self._is_whole = False
        self._give_back: Callable[[], object] | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Find the session to go on with, before anything is measured.

        The ini file asks that of every session, and so of the first one.
        """
        if self._config.option.collectonly:
            return
        benchmarks = [item for item in items if "benchmark" in getattr(item, "fixturenames", ())]
        wanted = {i.nodeid: i for i in benchmarks if i.get_closest_marker("skip") is None}
        try:
            self._find(wanted)
        except (UsageError, StorageError) as error:
            if isinstance(error, NothingToResume) and resumes_by_ini(self._config):
                self._begins_anew = str(error)
                return
            raise pytest.UsageError(
                f"{FLAG}: {error}; run this without {FLAG}, or with -o fw_resume=false"
            ) from None

    def pytest_report_collectionfinish(self) -> list[str]:
        """Say what is not measured again, or why all is."""
        if self._begins_anew:
            setting = SETTINGS["resume"].dest
            return [f"fwbench: begins anew, although {setting} is set: {self._begins_anew}"]
        if not self._taken:
            return []
        records = count(len(self._taken), "record")
        return [f"fwbench: {records} taken from the interrupted session of {self._path.name}"]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Report what was measured before; only the rest goes from item to item."""
        option = self._config.option
        if session.testsfailed and not option.continue_on_collection_errors:
            return (yield)
        self._store.take_over([entry for _, entry in self._taken])
        if self._is_whole and not self._store.problems:
            journal.finish(self._path)
        if self._launches is not None:
            self._launches.kept = {
                (item.nodeid, _launch(entry)): _passed(item, entry) for item, entry in self._taken
            }
            return (yield)
        earlier = {item for item, _ in self._taken}
        session.items[:] = [item for item in session.items if item not in earlier]
        for item, entry in self._taken:
            BenchmarkSession(self._config).add(_record(entry))
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for report in _passed(item, entry):
                item.ihook.pytest_runtest_logreport(report=report)
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return (yield)

    def pytest_unconfigure(self) -> None:
        """Leave the journal to others, however the session ended."""
        self._release()

    def _hold(self, path: Path) -> None:
        """Have a journal for this session, before it is read."""
        self._give_back = journal.hold(path)
        if self._give_back is None:
            raise UsageError(
                f"the session of {path.name} is still running, or another one continues it"
                f"{journal.owner_hint(path)}"
            )

    def _release(self) -> None:
        if self._give_back is not None:
            self._give_back()
        self._give_back = None

    @property
    def _launches(self) -> Any:
        """The hooks that run launches; None where each case is measured once."""
        return self._config.pluginmanager.get_plugin("fwbench-MultiLaunchRunner")

    def _find(self, wanted: Mapping[str, pytest.Item]) -> None:
        """Find the newest session that was asked for the same and can be gone on with."""
        head = loads(dumps(self._store.head()).encode())
        every = journal.newest_first(self._folder)
        key = head[journal.KEY]
        paths = [path for path in every if journal.head(path).get(journal.KEY) == key]
        if not paths:
            raise NothingToResume(
                f"no session with the same settings is kept under {self._folder}"
                f"{_differing(every, head, wanted)}"
            )
        refusals: list[UsageError] = []
        complete: set[str] = set()  # in sessions that ran to their ends
        for path in paths:
            self._hold(path)
            try:
                recovered = journal.recover(path, host.with_statistics)
                if not journal.is_resumable(path):
                    complete |= {entry["fullname"] for entry in recovered.entries}
                elif not (names := {e["fullname"] for e in recovered.entries}) or names - complete:
                    self._take(path, recovered, head, wanted)
                    return
            except UnreadableRun as error:
                refusals.append(NothingToResume(str(error)))
            except UsageError as error:
                refusals.append(error)
            self._release()
        if refusals:
            kept = [error for error in refusals if not isinstance(error, NothingToResume)]
            raise (kept or refusals)[0]
        newest = paths[0].name
        raise NothingToResume(f"the newest session with these settings, {newest}, ran to its end")

    def _take(
        self,
        path: Path,
        recovered: journal.Recovered,
        head: Mapping[str, Any],
        wanted: Mapping[str, pytest.Item],
    ) -> None:
        """Take the records of a session, if it can be gone on with."""
        run = recovered.run
        for entry in recovered.entries:
            entry["extra_info"].setdefault("fwbench", {"plain_test": True})
        taken = [(wanted[e["fullname"]], e) for e in recovered.entries if e["fullname"] in wanted]
        if self._launches is not None:  # those of plain tests follow a first one of this session
            taken = [(item, entry) for item, entry in taken if _launch(entry) is not None]
        differences = [
            *_differences(run, head),
            *["other data"] * any(starmap(_has_other_data, taken)),
        ]
        if differences:
            raise UsageError(f"the session of {path.name} was measured with {_told(differences)}")
        if not taken:
            raise NothingToResume(
                f"the session of {path.name} has no record of the tests selected here"
            )
        for _, entry in taken:
            entry["extra_info"]["fwbench"].setdefault("resumed_from", run["datetime"])
        self._path, self._taken = path, taken
        names = {entry["fullname"] for entry in run["benchmarks"]}
        self._is_whole = names <= wanted.keys() and len(taken) == len(recovered.entries)


def _launch(entry: Entry) -> int | None:
    """The launch that a record is of; None in a session without any."""
    launch: int | None = entry["extra_info"]["fwbench"].get("launch")
    return launch


def _record(entry: Entry) -> dict[str, Any]:
    return {"entry": entry, "cprofile": None, "journaled": True}


def _passed(item: pytest.Item, entry: Entry) -> list[pytest.TestReport]:
    """The reports of a test that has passed with this record."""
    reports = [
        pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords=dict.fromkeys(item.keywords, 1),
            outcome="passed",
            longrepr=None,
            when=when,
        )
        for when in ("setup", "call", "teardown")
    ]
    if CELL in item.stash:
        reports[1].fwbench = _record(entry)  # type: ignore[attr-defined]
    return reports


def _has_other_data(item: pytest.Item, entry: Entry) -> bool:
    """True if a training has learned from other data than it would learn from here."""
    cell, before = item.stash.get(CELL, None), entry["extra_info"]["fwbench"].get("data")
    if cell is None or cell.data is None or before is None:
        return False
    return (before.get("source"), before.get("origin")) != (cell.data.source, cell.data.origin)


def _differing(paths: Sequence[Path], head: Mapping[str, Any], wanted: Collection[str]) -> str:
    """Differences of the newest interrupted session of these tests; empty if there is none."""
    for path in paths:
        if not journal.is_resumable(path) or journal.is_running(path):
            continue
        with suppress(UnreadableRun):
            recovered = journal.recover(path, host.with_statistics)
            if any(entry["fullname"] in wanted for entry in recovered.entries):
                now = head[journal.ASKED]
                asked = _changed("", journal.head(path).get(journal.ASKED, now), now)
                told = _told([*asked, *_differences(recovered.run, head)] or ["other settings"])
                return f"; the interrupted one of {path.name} was measured with {told}"
    return ""


def _differences(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Facts that must be equal, and are not, with both values."""
    before, after = earlier.get("fwbench", {}), now["fwbench"]
    changes = [[*_changed(name, before.get(name), after.get(name))] for name in _EQUAL]
    commits = [run.get("commit_info", {}).get("id") for run in (earlier, now)]
    return [*chain(*changes), *_changed("revision", *commits)]


def _changed(name: str, before: Any, after: Any) -> Iterator[str]:
    """Where two values of JSON differ: ``frameworks numpy version 1.26.4 (here 2.0.1)``."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from _changed(f"{name} {key}".strip(), before.get(key), after.get(key))
    elif before != after:
        yield f"{name} {_value(before)} (here {_value(after)})"


def _value(value: Any) -> str:
    """A value of JSON in a message; of a framework its version."""
    text = value.get("version", "others") if isinstance(value, dict) else value
    return "none" if value is None else shorten(str(text), _LONGEST, placeholder=" ...")


def _told(differences: Sequence[str]) -> str:
    more = len(differences) - _NAMED
    return ", ".join([*differences[:_NAMED], *[count(more, "other difference")] * (more > 0)])
