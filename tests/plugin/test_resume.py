"""An interrupted session says what was kept, and another one measures only what is missing."""

import fcntl
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.plugin.resume import _has_other_data
from fwbench.plugin.session import CELL
from support.projects import Project, measuring

#: A test of two operations, one that interrupts the session while a file is there, and a plain one.
_STOPPING = (
    measuring("double, twice")
    + """

import os

def test_stop():
    if os.path.exists("stop"):
        raise KeyboardInterrupt

def test_plain(benchmark):
    benchmark.pedantic(lambda: 1, rounds=3)
"""
)

#: The case that the interrupted session does not have.
_LAST = "twice-numpy-cpu-eager-forward-float32-8"

#: The order of the tests is part of what is asked.
_IN_ORDER = ("-p", "no:randomly")


@pytest.fixture
def stopped(project: Project) -> Project:
    """A project in which a session was interrupted after the cases of one operation."""
    project.write("test_it.py", _STOPPING)
    project.write("stop", "")
    result = project.run(*_IN_ORDER, f"--deselect=test_it.py::test_it[{_LAST}]")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (project.path / "stop").unlink()
    return project


def _journal(project: Project) -> Path:
    (journal,) = (project.path / ".fwbench" / "journal").glob("*.jsonl")
    return journal


def test_a_session_goes_on_where_another_was_interrupted(stopped: Project) -> None:
    """The records are those of both, each with its session; nothing is measured twice."""
    journal = _journal(stopped)
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    result, records = stopped.measure(*_IN_ORDER, "--fw-resume", "-v")
    result.assert_outcomes(passed=6)
    taken = f"3 records taken from the interrupted session of {journal.name}"
    result.stdout.fnmatch_lines([f"fwbench: {taken}"])
    earlier = {line["param"]: line for line in lines if line.get("param")}
    assert {name: records[name]["stats"]["data"] for name in earlier} == {
        name: entry["stats"]["data"] for name, entry in earlier.items()
    }
    cases = {name: entry for name, entry in records.items() if name}
    began = {n: e["extra_info"]["fwbench"].get("resumed_from") for n, e in cases.items()}
    assert began.pop(_LAST) is None
    assert [*began.values()] == [lines[0]["datetime"]] * 3
    assert stopped.session()["outcome"] == {"failed": 0, "interrupted": False}


def test_a_session_that_has_ended_well_is_not_gone_on_with(stopped: Project) -> None:
    assert stopped.run(*_IN_ORDER, "--fw-resume").ret == pytest.ExitCode.OK
    again = stopped.run(*_IN_ORDER, "--fw-resume")
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    assert "ran to its end; run this without --fw-resume" in str(again.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no session with the same settings is kept under "),
        (("--benchmark-disable",), "--benchmark-disable times none"),
        (("--fw-race",), "with --fw-race the number depends on their results"),
        (("--fw-budget=9s",), "with --fw-budget the number depends on their results"),
    ],
    ids=["nothing there", "not timed", "race", "budget"],
)
def test_what_cannot_be_gone_on_with_is_refused(
    cases: Project, arguments: tuple[str, ...], said: str
) -> None:
    cases.assert_refused(["ERROR: ", "--fw-resume", said], "--fw-resume", *arguments)


_IN_INI = "[pytest]\nfw_resume = true\n"


def test_the_ini_file_begins_anew_where_nothing_is_to_be_gone_on_with(stopped: Project) -> None:
    """It asks every session to go on, the first one and one after a whole one included."""
    stopped.write("pytest.ini", _IN_INI)
    said = "fwbench: begins anew, although fw_resume is set: "
    first = stopped.run(*_IN_ORDER, "--benchmark-max-time=0.02")
    first.assert_outcomes(passed=6)
    first.stdout.fnmatch_lines([f"{said}no session with the same settings is kept under *"])
    other = stopped.run(*_IN_ORDER)
    other.stdout.fnmatch_lines(["fwbench: 3 records taken from the interrupted session of *"])
    assert said not in str(other.stdout)
    whole = stopped.run(*_IN_ORDER)
    whole.assert_outcomes(passed=6)
    whole.stdout.fnmatch_lines([f"{said}the newest session with these settings, *, ran to its end"])
    for given in ("--fw-resume", "-ofw_resume=true"):
        assert stopped.run(*_IN_ORDER, given).ret == pytest.ExitCode.USAGE_ERROR


def _change_settings(project: Project, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the first line of the journal says of the session."""
    journal = _journal(project)
    head, *others = journal.read_text(encoding="utf-8").splitlines()
    facts = json.loads(head)
    change(facts["fwbench"])
    journal.write_text("\n".join((json.dumps(facts), *others, "")), encoding="utf-8")


def test_the_ini_file_leaves_no_record_behind_in_silence(stopped: Project) -> None:
    """A session of other packages has records, and is refused as on the command line."""
    _change_settings(stopped, lambda settings: settings.update(version="0.0"))
    stopped.write("pytest.ini", _IN_INI)
    result = stopped.run(*_IN_ORDER)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "was measured with version 0.0 (here " in str(result.stderr)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("--benchmark-max-time=0.02", "--benchmark-max-time 0.01 (here 0.02)"),
        ("--fw-threads=1", "--fw-threads 2 by default (here 1)"),
    ],
)
def test_other_settings_are_another_session(stopped: Project, other: str, said: str) -> None:
    """Times with other rounds, or of another number of threads, would not compare."""
    result = stopped.run(*_IN_ORDER, "--fw-resume", other)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no session with the same settings is kept under " in str(result.stderr)
    (journal,) = (stopped.path / ".fwbench" / "journal").glob("*.jsonl")
    assert f"; the interrupted one of {journal.name} was measured with {said}" in str(result.stderr)


def test_differences_of_other_tests_are_not_told(stopped: Project) -> None:
    arguments = ("--fw-resume", "--fw-threads=1", "-k", _LAST)
    assert "the interrupted one" not in str(stopped.run(*_IN_ORDER, *arguments).stderr)


def test_other_packages_are_told(stopped: Project) -> None:
    _change_settings(
        stopped, lambda settings: settings["frameworks"]["numpy"].update(version="1.0")
    )
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "was measured with frameworks numpy version 1.0 (here "
    assert said in str(result.stderr)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("OMP_WAIT_POLICY", "with variables OMP_WAIT_POLICY PASSIVE (here passive); run this"),
        ("FWBENCH_DATA", " (here passive); run this"),
    ],
)
def test_other_variables_are_told(
    stopped: Project, monkeypatch: pytest.MonkeyPatch, variable: str, said: str
) -> None:
    monkeypatch.setenv(variable, "passive")
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in str(result.stderr)


@pytest.mark.parametrize(
    ("measured", "has_other_data"),
    [
        ({"source": "real", "origin": "mnist.npz"}, False),
        ({"source": "real", "origin": "MNIST"}, True),
        ({"source": "synthetic", "origin": "mnist.npz"}, True),
        (None, False),
    ],
)
def test_a_training_is_gone_on_with_on_the_same_data(
    measured: dict[str, str] | None, has_other_data: bool
) -> None:
    now = SimpleNamespace(data=SimpleNamespace(source="real", origin="mnist.npz"))
    item: Any = SimpleNamespace(stash={CELL: now})
    facts = {} if measured is None else {"data": measured}
    assert _has_other_data(item, {"extra_info": {"fwbench": facts}}) is has_other_data


def test_a_later_session_does_not_hide_the_interrupted_one(stopped: Project) -> None:
    stopped.run(*_IN_ORDER, "-k", "double").assert_outcomes(passed=2, deselected=4)
    result, records = stopped.measure(*_IN_ORDER, "--fw-resume")
    result.assert_outcomes(passed=6)
    assert len(records) == 5
    result.stdout.fnmatch_lines(["fwbench: 3 records taken from the interrupted session of *"])


def test_a_complete_session_takes_the_place_of_the_interrupted_one(stopped: Project) -> None:
    stopped.run(*_IN_ORDER).assert_outcomes(passed=6)
    again = stopped.run(*_IN_ORDER, "--fw-resume")
    assert "ran to its end; run this without --fw-resume" in str(again.stderr)


def test_a_running_session_is_waited_for(stopped: Project) -> None:
    """Whatever older ones there are: both would measure at the same time."""
    folder = stopped.path / ".fwbench" / "journal"
    (journal,) = folder.glob("*.jsonl")
    newer = folder / "99990101T000000-1.jsonl"
    newer.write_bytes(journal.read_bytes())
    with newer.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = stopped.run(*_IN_ORDER, "--fw-resume")
    assert f"the session of {newer.name} is still running" in str(result.stderr)


_NO_LOCKS = """
import errno
import fcntl

def flock(*arguments):
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")

fcntl.flock = flock
"""


def test_without_locks_a_session_is_gone_on_with_once(stopped: Project) -> None:
    """One session takes the records; meanwhile a second one is told whose they are."""
    journal = _journal(stopped)
    stopped.write("conftest.py", _NO_LOCKS)
    owner = journal.with_name(f"{journal.name}.owner-0001")
    owner.write_text(f"{os.getpid()} {socket.gethostname()}", encoding="utf-8")
    refused = stopped.run(*_IN_ORDER, "--fw-resume")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert f"still running, or another one continues it (delete {owner} if" in str(refused.stderr)
    owner.unlink()
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    result.stdout.fnmatch_lines(["fwbench: 3 records taken from the interrupted session of *"])
    assert not [*journal.parent.glob("*.owner-*")]


def test_a_recovered_session_can_be_gone_on_with(stopped: Project) -> None:
    """Also one that was killed, whose journal does not say how it ended."""
    journal = _journal(stopped)
    *lines, outcome = journal.read_text(encoding="utf-8").splitlines()
    assert "fwbench_journal_session" in outcome
    journal.write_text("\n".join((*lines, "")), encoding="utf-8")
    stopped.python("-m", "fwbench", "recover", "-o", "recovered.json")
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    result.stdout.fnmatch_lines(["fwbench: 3 records taken from the interrupted session of *"])


_FULL = """
from fwbench.errors import StorageError
from fwbench.records.journal import Journal

def append(self, values):
    raise StorageError("cannot write: No space left on device")

Journal.append = append
"""


def test_what_does_not_fit_the_new_journal_stays_in_the_old_one(stopped: Project) -> None:
    conftest = stopped.write("conftest.py", _FULL)
    assert "no record is kept from here on" in str(stopped.run(*_IN_ORDER, "--fw-resume").stdout)
    conftest.unlink()
    journal = _journal(stopped)
    assert "fwbench_journal_end" not in journal.read_text(encoding="utf-8")
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    result.stdout.fnmatch_lines(["fwbench: 3 records taken from the interrupted session of *"])


_FILLING = """
import errno
from fwbench.records.journal import Journal

begin = Journal.__init__

class FillingDisk:
    def __init__(self, file):
        self._file, self.lines = file, 0

    def write(self, text):
        self.lines += 1
        if self.lines == 3:  # of a head and three records
            self._file.write(text[:len(text) // 2])
            self._file.flush()
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(text)

    def __getattr__(self, name):
        return getattr(self._file, name)

def begin_on_filling_disk(self, *arguments):
    begin(self, *arguments)
    self._file = FillingDisk(self._file)

Journal.__init__ = begin_on_filling_disk
"""


def test_a_disk_that_fills_while_records_are_taken_over_loses_none(stopped: Project) -> None:
    """The new journal would have hidden the earlier one, which has what did not fit."""
    folder = stopped.path / ".fwbench" / "journal"
    (journal,) = folder.glob("*.jsonl")
    before = journal.read_bytes()
    conftest = stopped.write("conftest.py", _FILLING)
    result, records = stopped.measure(*_IN_ORDER, "--fw-resume")
    result.assert_outcomes(passed=6)
    assert len(records) == 5, "the session itself has all"
    assert "No space left on device; without --benchmark-json no" in str(result.stdout)
    assert [*folder.glob("*.jsonl")] == [journal]
    assert journal.read_bytes() == before
    conftest.unlink()
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    result.stdout.fnmatch_lines(
        [f"fwbench: 3 records taken from the interrupted session of {journal.name}"]
    )


_GATE = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    yield
    session.exitstatus = 10
"""


def test_a_session_that_fails_a_gate_has_ended_well(cases: Project) -> None:
    """Its exit status is decided after all cases were measured."""
    cases.write("conftest.py", _GATE)
    assert cases.run("--benchmark-json=measured.json").ret == 10
    assert cases.session()["outcome"] == {"failed": 0, "interrupted": False}
    again = cases.run("--fw-resume")
    assert "ran to its end; run this without --fw-resume" in str(again.stderr)


def test_an_interrupted_session_says_what_was_kept(stopped: Project) -> None:
    """Its last line names the journal and how to go on; recover says that it was interrupted."""
    stopped.write("stop", "")
    result = stopped.run(*_IN_ORDER, "--benchmark-max-time=0.02")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    said = result.outlines[-1]
    assert said.startswith("fwbench: interrupted; 4 of 5 cases are kept in ")
    assert "with --fw-resume measures the others" in said
    done = stopped.python("-m", "fwbench", "recover", "-o", "recovered.json")
    assert ", whose session was interrupted, written to recovered.json" in done.stdout
    outcome = {"failed": 0, "interrupted": True}
    assert stopped.session("recovered.json")["outcome"] == outcome


_FAILING = (
    measuring("double")
    + """

import os

def test_plain(benchmark):
    benchmark.pedantic(lambda: 1, rounds=3)
    assert os.path.exists("mended")

def test_last(benchmark):
    benchmark.pedantic(lambda: 1, rounds=3)
"""
)


def test_a_test_that_failed_after_its_measurement_runs_again(project: Project) -> None:
    """A session that a failure has stopped is gone on with, also twice."""
    project.write("test_it.py", _FAILING)
    stopped, first = project.measure(*_IN_ORDER, "-x")
    assert stopped.ret == pytest.ExitCode.TESTS_FAILED
    assert stopped.outlines[-1].startswith("fwbench: stopped early; 2 of 4 cases are kept in ")
    again = project.run(*_IN_ORDER, "-x", "--fw-resume")
    again.assert_outcomes(passed=2, failed=1)
    project.write("mended", "")
    result, records = project.measure(*_IN_ORDER, "-x", "--fw-resume")
    result.assert_outcomes(passed=4)
    assert len(project.entries("measured.json")) == 4
    names = [name for name in records if name]
    assert len(names) == 2
    times, earlier = ([of[n]["stats"]["data"] for n in names] for of in (records, first))
    assert times == earlier
    assert project.run(*_IN_ORDER, "--fw-resume").ret == pytest.ExitCode.USAGE_ERROR


_COUNTING = measuring(
    "double",
    "import os",
    body="""
        with open("order", "a") as file:
            file.write("x")
        if os.path.getsize("order") == 4:
            raise KeyboardInterrupt
        case.measure()
        """,
)


def test_the_launches_that_are_missing_are_measured(project: Project) -> None:
    """Two cases in two launches, the last of which was interrupted: one is left."""
    project.write("test_it.py", _COUNTING)
    stopped = project.run("--fw-launches=2")
    assert stopped.ret == pytest.ExitCode.INTERRUPTED
    said = "fwbench: interrupted; 3 of 4 launches of 2 cases are kept in "
    assert stopped.outlines[-1].startswith(said)
    result, records = project.measure("--fw-launches=2", "--fw-resume")
    result.assert_outcomes(passed=2)
    assert (project.path / "order").stat().st_size == 5
    launches = [entry["extra_info"]["fwbench"]["launches"] for entry in records.values()]
    assert [[launch["launch"] for launch in each] for each in launches] == [[0, 1], [0, 1]]
    own = [launch for each in launches for launch in each if "resumed_from" not in launch]
    assert len(own) == 1
    assert own[0]["launch"] == 1


_SPOILT = """
import pytest

@pytest.fixture(autouse=True)
def spoilt():
    yield
    with open("launches", "a") as file:
        file.write("x")
    assert os.path.getsize("launches") != 2
"""


def test_a_launch_that_failed_is_measured_again(project: Project) -> None:
    """One after whose measurement something failed, before the session was interrupted."""
    stopped = _COUNTING.replace("== 4", "== 3")  # a case that has failed is not launched again
    project.write("test_it.py", stopped.replace("import os", f"import os{_SPOILT}", 1))
    assert project.run("--fw-launches=2").ret == pytest.ExitCode.INTERRUPTED
    journal = _journal(project)
    result = project.run("--fw-launches=2", "--fw-resume")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"fwbench: 1 record taken from the * of {journal.name}"])


def test_where_nothing_is_kept_nothing_is_to_be_gone_on_with(project: Project) -> None:
    project.write("test_it.py", _FAILING)
    stopped = project.run(*_IN_ORDER, "-x", "-k", "plain")
    assert stopped.outlines[-1].startswith("fwbench: stopped early; 0 of 1 case are kept in ")
    assert "--fw-resume" not in stopped.outlines[-1]


@pytest.mark.parametrize("given", ["--fw-resume", "-ofw_resume=true"])
def test_plain_benchmarks_have_all_their_launches(project: Project, given: str) -> None:
    """They are measured anew, by further sessions, of which none goes on with another."""
    project.write("test_it.py", _STOPPING)
    project.write("stop", "")
    launches = (*_IN_ORDER, "--fw-launches=2")
    assert project.run(*launches).ret == pytest.ExitCode.INTERRUPTED
    (project.path / "stop").unlink()
    result, records = project.measure(*launches, given)
    result.assert_outcomes(passed=6)
    each = [entry["extra_info"]["fwbench"]["launches"] for entry in records.values()]
    assert [len(of_case) for of_case in each] == [2] * 5
    assert [bool(of_case[0].get("resumed_from")) for of_case in each] == [True] * 4 + [False]
    again = project.run(*launches, given)
    assert "ran to its end; run this without --fw-resume" in str(again.stderr)


def test_records_that_are_not_taken_over_stay_where_they_are(stopped: Project) -> None:
    journal = _journal(stopped)
    assert stopped.run(*_IN_ORDER, "--fw-resume", "-k", "double").ret == pytest.ExitCode.OK
    assert "fwbench_journal_end" not in journal.read_text(encoding="utf-8")
