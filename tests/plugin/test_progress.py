"""The progress of a session: seen while it runs, and gone before other output."""

import itertools
import json
import re
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from fwbench.plugin import progress as module
from fwbench.plugin.lines import Status
from fwbench.plugin.progress import Estimate, Progress
from support.projects import ORDINARY, QUICKLY, Project, measuring
from support.terminals import OFTEN, Terminal

#: Four cases, the second of which ends its process, and an ordinary test.
_MIXED = (
    measuring(
        "double, twice",
        "import os",
        body="""
            if case.cell.id == "double-numpy-cpu-eager-forward-float32-8":
                os._exit(3)
            case.measure()
        """,
    )
    + ORDINARY
)


@pytest.fixture
def mixed(project: Project) -> Project:
    """A project of four cases and an ordinary test."""
    project.write("test_it.py", _MIXED)
    project.write("packages/often.py", OFTEN)
    return project


def _on(terminal: Terminal, project: Project, *arguments: str, **variables: str) -> list[str]:
    """The lines that a session leaves on a terminal."""
    plugins = ["-p", "no:randomly", "-p", "often"]
    command = [sys.executable, "-m", "pytest", "--fw=numpy", *plugins, *QUICKLY]
    with project.forking():
        status = terminal.run([*command, *arguments], project.path, variables)
    assert status == pytest.ExitCode.TESTS_FAILED, terminal.shown
    return terminal.shown


def _progress(text: str) -> list[str]:
    return re.findall(r"(?:launch \d of \d, )?case \d of \d", text)


def test_dots_stay_one_line(mixed: Project) -> None:
    """With what was drawn below them meanwhile nothing is left, and times are kept."""
    terminal = Terminal()
    shown = _on(terminal, mixed)
    assert any(re.fullmatch(r"test_it\.py \.F\.\.\. +\[100%\]", line) for line in shown)
    assert "case 1 of 4" in _progress(terminal.written)
    assert "starting numpy" in terminal.written
    assert _progress("\n".join(shown)) == []
    kept = json.loads((mixed.path / ".pytest_cache/v/fwbench/durations").read_text())
    assert [*map(type, kept.values())] == [float] * 4
    assert {name.rpartition("::")[0] for name in kept} == {"test_it.py"}


def test_lines_of_tests_stay_whole(mixed: Project) -> None:
    terminal = Terminal(columns=60)
    text = "".join(_on(terminal, mixed, "-v"))
    for operation, size, outcome in (
        *(("double", 4, "PASSED"), ("double", 8, "FAILED")),
        *(("twice", 4, "PASSED"), ("twice", 8, "PASSED")),
    ):
        case = f"test_it.py::test_it[{operation}-numpy-cpu-eager-forward-float32-{size}]"
        assert re.search(rf"{re.escape(case)} {outcome} +\[", text)
    assert "case 1 of 4" in _progress(terminal.written)
    assert _progress(text) == []


def test_launches_are_counted(mixed: Project) -> None:
    terminal = Terminal(columns=120)
    shown = _on(terminal, mixed, "--fw-launches=2")
    seen = _progress(terminal.written)
    assert "launch 1 of 2, case 1 of 4" in seen
    assert "launch 2 of 2, case 1 of 3" in seen
    assert _progress("\n".join(shown)) == []


def test_cases_in_this_process_are_shown_as_they_begin(mixed: Project) -> None:
    """Past pytest's capturing; the process that measures has no time for more."""
    terminal = Terminal()
    mixed.write("test_it.py", _MIXED.replace("os._exit(3)", "assert False"))
    shown = _on(terminal, mixed, "--fw-isolation=none")
    assert any(re.fullmatch(r"test_it\.py \.F\.\.\. +\[100%\]", line) for line in shown)
    assert "case 1 of 4" in _progress(terminal.written)
    assert _progress("\n".join(shown)) == []


def test_without_pytests_terminal_nothing_is_shown(mixed: Project) -> None:
    terminal = Terminal()
    assert _on(terminal, mixed, "-p", "no:terminal") == []


@pytest.mark.parametrize("where", ["pipe", "dumb", "-s"])
def test_logs_have_plain_lines(mixed: Project, where: str) -> None:
    """On lines of their own: whatever else is on a line is pytest's, which begins it again."""
    if where == "pipe":
        written = str(mixed.run("-p", "often", "-p", "no:randomly").stdout)
    else:
        terminal = Terminal(columns=120)
        given = ["-s"] if where == "-s" else []
        _on(terminal, mixed, *given, TERM="dumb" if where == "dumb" else "xterm")
        written = terminal.written.replace("\r", "")
    assert "\x1b7" not in written
    lines = written.splitlines()
    progress_lines = [line for line in lines if _progress(line)]
    assert any(re.fullmatch(r"fwbench: starting numpy, \d+ s", line) for line in lines)
    repeated = re.compile(r"fwbench: case 3 of 4, \d+ s left: starting numpy, \d+ s")
    assert any(map(repeated.match, progress_lines))
    assert all(line.startswith("fwbench: ") for line in progress_lines)
    dotted = [line for line in lines if re.fullmatch(r"\S* ?[.F]+( +\[ *\d+%\])?", line)]
    assert dotted
    assert all(line.startswith("test_it.py ") for line in dotted)


def test_cases_that_are_skipped_are_not_counted(project: Project) -> None:
    project.write("packages/often.py", OFTEN)
    project.write(
        "test_it.py",
        """
        import pytest
        from declared import double, twice

        @pytest.mark.fwbench(double)
        def test_it(case):
            case.measure()

        @pytest.mark.skip(reason="not today")
        @pytest.mark.fwbench(double, twice)
        def test_skipped(case):
            case.measure()
        """,
    )
    for isolation in ("process", "none"):
        result = project.run("-p", "often", "-p", "no:randomly", f"--fw-isolation={isolation}")
        result.assert_outcomes(passed=2, skipped=4)
        counted = _progress(str(result.stdout))
        assert {*counted} == {"case 1 of 2", "case 2 of 2"}, isolation


def test_quiet_logs_have_none(mixed: Project) -> None:
    result = mixed.run("-q", "-p", "often", "--fw-launches=2", "-p", "no:randomly")
    assert "case 1" not in str(result.stdout)
    assert "fwbench: launch" not in str(result.stdout)


class Recorder:
    """A display that notes what it is to show."""

    def __init__(self) -> None:
        self.shown: list[Status] = []
        self.announced: list[str] = []
        self.show, self.announce = self.shown.append, self.announced.append

    def clear(self) -> None:
        """Do nothing."""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> tuple[Progress, list[Status]]:
    """A session's progress, and what it has shown; every look at the clock takes a second."""
    recorder = Recorder()
    monkeypatch.setattr(module, "Display", lambda *_: recorder)
    monkeypatch.setattr(module.time, "monotonic", itertools.count().__next__)
    config: Any = SimpleNamespace()
    return Progress(config), recorder.shown


def _epoch(**changes: Any) -> dict[str, Any]:
    return {
        "repetition": 1,
        "epoch": 1,
        "epochs": 4,
        "repetitions": 2,
        "train_loss": 2.30259,
        "rate": 12_345.6,
        "unit": "images",
        **changes,
    }


def test_epochs_are_shown_with_loss_and_rate(shown: tuple[Progress, list[Status]]) -> None:
    """The count spans all repetitions; the name is the part of the id that varies."""
    progress, statuses = shown
    item: Any = Mock(nodeid="test_it.py::test_loop[lenet-torch-cpu-eager-train-float32-200]")
    with progress.case(item):
        progress.tick("starting torch")
        progress.tick("")
        progress.pytest_fwbench_epoch(item.nodeid, _epoch())
        progress.pytest_fwbench_epoch(
            item.nodeid, _epoch(repetition=2, epoch=3, train_loss=0.5, rate=10.0, unit="tokens")
        )
    name = "lenet-torch-cpu-eager-train-float32-200"
    assert [status.name for status in statuses] == ["starting torch", name, name, name]
    assert [status.tail for status in statuses] == [
        *("1 s", "4 s"),
        "epoch 1 of 8, loss 2.3026, 12346 images/s",
        "epoch 7 of 8, loss 0.5000, 10 tokens/s",
    ]
    with progress.case(item):
        progress.tick("starting torch")
        progress.tick("")
    assert [status.tail for status in statuses[4:]] == ["1 s", "4 s"]  # as if it were the first


@pytest.mark.parametrize(
    ("raised", "took_s"),
    [(KeyboardInterrupt, {}), (pytest.exit.Exception, {}), (AssertionError, {"a": 1})],
)
def test_an_interrupted_case_has_no_time(
    shown: tuple[Progress, list[Status]], raised: type[BaseException], took_s: dict[str, float]
) -> None:
    """Later sessions would expect as little of it; one that fails has a time like any other."""
    progress, _ = shown
    item: Any = Mock(nodeid="a")
    with pytest.raises(raised), progress.case(item):
        raise raised
    assert progress._estimate.took_s == took_s


@pytest.mark.parametrize("kept", [None, [], "text", {"a": "1", "b": None}])
def test_damaged_times_are_as_good_as_none(kept: Any) -> None:
    """Anybody may write into pytest's cache."""
    assert module._durations(SimpleNamespace(get=lambda *_: kept)) == {}
    assert module._durations(None) == {}
    assert module._durations(Mock(get=Mock(side_effect=RecursionError))) == {}, "nested too deep"


def _planned(expected_s: dict[str, float | None], times: int = 1) -> Estimate:
    estimate = Estimate(expected_s)
    estimate.plan(dict.fromkeys(expected_s, times))
    return estimate


def test_what_is_expected_is_left() -> None:
    estimate = _planned({"a": 10.0, "b": 20.0})
    assert estimate.left("a", 0.0) == "30 s left"
    assert estimate.left("a", 4.0) == "26 s left"
    assert estimate.left("a", 10.5) == "20 s left"
    assert estimate.left("a", 15.0) == "longer than expected, more than 20 s left"
    estimate.finish("a", 15.0)
    assert estimate.left("b", 0.0) == "20 s left"
    assert estimate.left("b", 20.0) == "0 s left"
    assert estimate.left("b", 30.0) == "longer than expected"
    assert _planned({"a": 10.0, "b": 0.2}).left("a", 20.0) == "longer than expected"
    assert _planned({"a": 0.2, "b": None}).left("a", 0.0) == ""
    assert estimate.took_s == {"a": 15.0}


def test_every_launch_counts() -> None:
    estimate = _planned({"a": 10.0, "b": 20.0}, times=5)
    assert estimate.left("a", 0.0) == "2 min 30 s left"
    estimate.finish("a", 10.0)
    estimate.plan(dict.fromkeys("ab", 4))
    assert estimate.left("a", 0.0) == "2 min left"


def test_finished_cases_correct_the_others() -> None:
    names = [f"case {i}" for i in range(10)]
    estimate = _planned(dict.fromkeys(names, 10.0))
    for name in names[:2]:
        estimate.finish(name, 1.0)
    assert estimate.left(names[2], 0.0) == "1 min 20 s left"
    estimate.finish(names[2], 1.0)
    assert estimate.left(names[3], 0.0) == "7 s left"


def test_what_is_not_known_is_said() -> None:
    estimate = _planned({"a": 10.0, "loop": None})
    assert estimate.left("a", 0.0) == "more than 10 s left"
    assert estimate.left("loop", 5.0) == "more than 10 s left"
    assert estimate.left("loop", 5.0, share=0.25) == "25 s left"
    estimate.finish("a", 10.0)
    assert estimate.left("loop", 5.0) == ""
    assert estimate.left("loop", 20.0, share=0.5) == "20 s left"


def test_epochs_say_more_than_earlier_runs() -> None:
    assert _planned({"loop": 100.0}).left("loop", 5.0, share=0.5) == "5 s left"


def test_where_nothing_is_known_nothing_is_said() -> None:
    estimate = Estimate({})
    estimate.plan({"a": 1, "b": 1})
    assert estimate.left("a", 3.0) == ""
