"""Child sessions of pytest: the launches of a comparison, and suites of fwbench's own.

A suite is a module of tests. It runs as any user's suite does: in a session of pytest's own,
isolated, verified, waited for.
"""

import json
import os
import re
import select
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from fwbench.errors import SuiteError
from fwbench.processes import command, scratch
from fwbench.processes.command import Finished

#: What follows the interpreter. -P: a pytest.py in the current folder is not pytest.
PYTEST = ("-P", "-m", "pytest")

#: pytest's exit statuses when all tests ran, whether or not some have failed.
RAN = (0, 1)

#: pytest's exit statuses of a session that a signal, a test's exit, or an error of pytest's own or
#: a plugin's has ended.
_INTERRUPTED = 2
_INTERNAL_ERROR = 3

#: And of one that had nothing to do.
_USAGE_ERROR = 4
NOTHING = 5

#: The plugin that deselects all but some node ids, and the environment variables that name the JSON
#: files with them, and with what another launch of the same side has found. A string, because
#: imports do not run up to the plugin's room.
SELECTOR = "fwbench.plugin.selected"
SELECTED_VARIABLE = "FWBENCH_SELECTED"
ORIGIN_VARIABLE = "FWBENCH_ORIGIN"

#: The environment variable with the keys of tests, in JSON, that end each launch, and are left out.
LEFT_OUT_VARIABLE = "FWBENCH_LEFT_OUT"

#: The environment variable that names the file where a session says how far it is.
STATUS_VARIABLE = "FWBENCH_STATUS_FILE"

#: The environment variable that names the folder for the journal of a session whose caller keeps
#: what it measures, and needs nothing of one that was killed.
JOURNAL_VARIABLE = "FWBENCH_JOURNAL_FOLDER"

#: The environment variable of a session whose cases have been examined on changed inputs before, in
#: another launch of the same build.
EXAMINED_VARIABLE = "FWBENCH_EXAMINED"

#: The environment variable that names the file which a session makes that has no test to run.
EMPTY_VARIABLE = "FWBENCH_EMPTY_FILE"

#: The environment variables that name the folder where functions leave their results for others to
#: compare with, and the side of a comparison that a session is.
RESULTS_VARIABLE = "FWBENCH_RESULTS"
SIDE_VARIABLE = "FWBENCH_SIDE"
SIDES = ("base", "contender")

#: The environment variable of a session whose tree is checked out elsewhere: the repository, that
#: checkout, and a file for the modules that come from the repository nevertheless; in JSON.
CHECKOUT_VARIABLE = "FWBENCH_CHECKOUT"

#: Shows what such a file says until the block is left.
Watching = Callable[[Path], AbstractContextManager[Any]]

#: How many lines of a session's output an error message shows.
SHOWN_LINES = 25

#: What a user, or a session around this one, tells pytest through the environment.
_USERS = ("PYTEST_ADDOPTS", "PYTEST_XDIST_")


@dataclass(frozen=True)
class FinishedSession(Finished):
    """A session that has ended; a test may have done so, with any exit status."""

    #: Whether it said itself that it had no test to run.
    is_empty: bool = False


def records_beside(results: Path) -> Path:
    """Where a launch that is to write these results keeps each record until then, a line each."""
    return results.with_suffix(".jsonl")


def origin_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Machine and revision of a run, which further ones of its side share."""
    return {name: run.get(name, {}) for name in ("machine_info", "commit_info")}


@contextmanager
def started(
    arguments: Sequence[str],
    *,
    folder: Path,
    results: Path,
    variables: Mapping[str, str],
    selected: Sequence[str] | None = None,
    origin: Mapping[str, Any] | None = None,
    watching: Watching = nullcontext,
    interpreter: str = sys.executable,
) -> Iterator["ChildSession"]:
    """A session of pytest in a process of its own, which has ended at the end of the block.

    Args:
        results: the file that ``--benchmark-json`` writes.
        selected: the node ids to run of those that the arguments select; None for all. The
            arguments must load :data:`SELECTOR`.
        origin: what pytest-benchmark is not to look up again; see :func:`origin_of`.
        interpreter: the Python whose pytest it is.
    """
    with scratch.folder() as temporary, watching(temporary / "status.json"):
        given = {
            **variables,
            STATUS_VARIABLE: str(temporary / "status.json"),
            JOURNAL_VARIABLE: str(temporary / "journal"),
            EMPTY_VARIABLE: str(temporary / "empty"),
        }
        for variable, value in ((SELECTED_VARIABLE, selected), (ORIGIN_VARIABLE, origin)):
            if value is not None:
                file = temporary / f"{variable}.json"
                file.write_text(json.dumps(value), encoding="utf-8")
                given[variable] = str(file)
        child = ChildSession()
        output = temporary / "output.txt"
        with command.started(
            [interpreter, *PYTEST, *arguments, f"--benchmark-json={results}"],
            output=output,
            folder=folder,
            variables=given,
        ) as child.program:
            yield child
        with output.open(encoding="utf-8", errors="replace") as lines:
            last = deque(map(str.rstrip, lines), maxlen=SHOWN_LINES)
        is_empty = (temporary / "empty").exists()
        child.done = FinishedSession(child.program.status(), [*last], is_empty)


class ChildSession:
    """A session of pytest; :attr:`done` once it has ended."""

    program: command.Running
    done: Finished

    def fileno(self) -> int:
        """A descriptor that becomes readable when it has ended."""
        return self.program.fileno()

    def has_ended(self) -> bool:
        """True once it has, without waiting."""
        return self.wait(0)

    def wait(self, at_most_s: float) -> bool:
        """Wait for its end; true once it has ended."""
        return bool(select.select([self.program], [], [], at_most_s)[0])


def run(arguments: Sequence[str], **settings: Any) -> Finished:
    """Run a session of pytest to its end; the settings are those of :func:`started`."""
    with started(arguments, **settings) as child:
        pass
    return child.done


def become(arguments: Sequence[str]) -> NoReturn:
    """Turn this process into a session of pytest: the terminal, signals and exit status are its."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *PYTEST, *arguments])  # noqa: S606 (no shell)


#: Lines that pytest adds to what is wrong with its command line.
_PLACES = ("inifile:", "rootdir:")


def last_words(done: Finished) -> str:
    """The last line of a session's output that says something."""
    stripped = (line.strip("= ") for line in reversed(done.last_lines))
    return next((x for x in stripped if x and not x.startswith(_PLACES)), "it ended")


def has_died(done: Finished) -> bool:
    """True if a session was ended by a signal or a crash, so that another one may do better."""
    if done.status == _INTERRUPTED:  # errors of collection have this exit status, too
        return any("KeyboardInterrupt" in line for line in done.last_lines)
    return done.status < 0 or done.status == _INTERNAL_ERROR


#: What Python, C++ and CUDA say, in this order, when there is no memory.
_NO_MEMORY = re.compile(r"MemoryError|bad_alloc|out of memory", re.IGNORECASE)


def lacked_memory(done: Finished) -> bool:
    """True if what has died was killed, as by the kernel for lack of memory, or has said so."""
    return done.status == -signal.SIGKILL or any(map(_NO_MEMORY.search, done.last_lines))


def refusal(done: Finished) -> str:
    """The error in pytest's arguments that has ended a session; empty if none has.

    A ``conftest.py`` that cannot be imported has the same exit status.
    """
    if done.status != _USAGE_ERROR:
        return ""
    lines = (re.match(r"ERROR: (?!usage:)(.*)|.*: error: (.*)", line) for line in done.last_lines)
    return next((found[1] or found[2] for found in lines if found), "")


def has_found_nothing(done: Finished) -> bool:
    """True if there was no test to run: none was selected, or the files are not there."""
    if done.status == NOTHING:
        return isinstance(done, FinishedSession) and done.is_empty
    absent = any("file or directory not found" in line for line in done.last_lines)
    return done.status == _USAGE_ERROR and absent


def measure_suite(
    name: str,
    arguments: Sequence[str],
    watching: Watching = nullcontext,
    *,
    all_must_pass: bool = True,
) -> dict[str, Any]:
    """Measure a suite of fwbench's own in a session of its own; returns what it wrote as JSON.

    Raises:
        SuiteError: the session broke down, measured nothing, or had failures that it must not.
    """
    package, _, module = name.rpartition(".")
    with scratch.folder() as folder:
        results = folder / "results.json"
        suite = resources.files(package).joinpath(f"{module}.py")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        (folder / "test_suite.py").write_text(suite.read_text(encoding="utf-8"), encoding="utf-8")
        done = run(
            ["test_suite.py", *arguments, *("-p", "no:cacheprovider")],
            folder=folder,
            results=results,
            variables={k: v for k, v in os.environ.items() if not k.startswith(_USERS)},
            watching=watching,
        )
        allowed = RAN[:1] if all_must_pass else RAN
        if done.status not in allowed or not results.is_file():
            raise SuiteError(
                f"fwbench's own suite {name!r} could not be measured (pytest's exit status is "
                f"{done.status}); its last output:\n" + "\n".join(done.last_lines)
            )
        return json.loads(results.read_text(encoding="utf-8"))
