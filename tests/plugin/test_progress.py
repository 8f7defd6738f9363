"""A live line on a terminal, and nothing anywhere else."""

from __future__ import annotations

import io
import itertools
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import tqdm

from fwbench.plugin.progress import Progress

NODE = "benchmarks/test_training.py::test_loop[lenet-torch-cpu-eager-train-float32-200]"


def epoch(**changes: Any) -> dict[str, Any]:
    """What is told of an epoch."""
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


class Terminal:
    """A session with a terminal, as much of it as is written to.

    Attributes:
        file: what it would show.
        reporter: of pytest.
    """

    def __init__(self, isatty: bool = True) -> None:
        self.file = io.StringIO()
        self.reporter = SimpleNamespace(
            isatty=isatty,
            ensure_newline=Mock(),
            write_line=Mock(),
            _tw=SimpleNamespace(_file=self.file),
        )
        plugins = {"terminalreporter": self.reporter}
        config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=plugins.get))
        self.plugins = plugins
        self.progress = Progress(config)

    def tell(self, nodeid: str = NODE, **changes: Any) -> str:
        """Tell of an epoch; returns what is written then."""
        before = len(self.file.getvalue())
        self.progress.pytest_fwbench_epoch(nodeid, epoch(**changes))
        return self.file.getvalue()[before:]

    @property
    def line(self) -> str:
        """What the line shows at last, or nothing."""
        return self.file.getvalue().split("\r")[-1].strip()


@pytest.fixture(autouse=True)
def _seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes at every look at the clock, and no thread watches."""
    monkeypatch.setattr("tqdm.std.time", itertools.count().__next__)
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)


def test_where_there_is_no_terminal_nothing_is_written() -> None:
    """Neither into a log nor where pytest's terminal plugin is switched off."""
    log = Terminal(isatty=False)
    assert log.tell() == ""
    log.progress.pytest_runtest_logreport(Mock())
    log.progress.pytest_keyboard_interrupt()
    assert log.file.getvalue() == ""
    without = Terminal()
    without.plugins.clear()
    assert without.tell() == ""


def test_the_line_shows_case_epoch_loss_and_rate() -> None:
    """The part of the node id that differs between cases; epochs of all repetitions."""
    terminal = Terminal()
    said = terminal.tell()
    assert "lenet-torch-cpu-eager-train-float32-200: " in said
    assert "test_loop" not in said
    assert "1/8" in said
    assert "loss 2.3026, 12346 images/s" in said


def test_the_line_follows_the_training() -> None:
    """The loss is always the last epoch's."""
    terminal = Terminal()
    terminal.tell()
    said = terminal.tell(repetition=2, epoch=1, train_loss=0.5, rate=10.0, unit="tokens")
    assert "2/8" in said
    assert "loss 0.5000, 10 tokens/s" in said
    assert "2.3026" not in said


def test_the_line_is_one_of_its_own() -> None:
    """Pytest's own line is ended before the first epoch, once; the epochs rewrite one line."""
    terminal = Terminal()
    for _ in range(3):
        terminal.tell()
    terminal.reporter.ensure_newline.assert_called_once_with()
    assert "\n" not in terminal.file.getvalue()


def test_the_line_is_cleared_when_the_case_is_over() -> None:
    """The report of the case finds an empty line, and the next case begins anew."""
    terminal = Terminal()
    terminal.tell()
    assert terminal.line
    terminal.progress.pytest_runtest_logreport(Mock())
    assert terminal.line == ""
    terminal.progress.pytest_runtest_logreport(Mock())  # of the teardown
    said = terminal.tell(NODE.replace("lenet", "mlp"), epochs=3, repetitions=1)
    assert "mlp-torch" in said
    assert "1/3" in said
    assert terminal.reporter.ensure_newline.call_count == 2


def test_the_line_is_cleared_by_an_interrupt() -> None:
    """What pytest says of it stands alone."""
    terminal = Terminal()
    terminal.tell()
    terminal.progress.pytest_keyboard_interrupt()
    assert terminal.line == ""


@pytest.mark.parametrize(
    ("nodeid", "shown"),
    [("test_it.py::test_it[a-b]", "a-b: "), ("test_it.py::test_it", "test_it.py::test_it: ")],
)
def test_a_case_without_an_id_is_shown_by_its_node(nodeid: str, shown: str) -> None:
    """There is always something to tell it by."""
    assert shown in Terminal().tell(nodeid)


# Launches


def test_a_log_gets_a_line_a_launch() -> None:
    """And nothing for each case."""
    log = Terminal(isatty=False)
    log.progress.pytest_fwbench_launch(launch=1, launches=3, cases=2)
    log.progress.pytest_fwbench_launched(nodeid="a")
    log.reporter.write_line.assert_called_once_with("launch 2 of 3: 2 cases")
    assert log.file.getvalue() == ""


def test_a_terminal_gets_a_bar_that_goes_again() -> None:
    """It counts the cases of the launch; the first report of a case finds an empty line."""
    terminal = Terminal(isatty=True)
    terminal.progress.pytest_fwbench_launch(launch=0, launches=3, cases=2)
    said = terminal.file.getvalue()
    assert "launch 1 of 3" in said
    assert "0/2" in said
    assert terminal.progress._cases is not None
    terminal.progress.pytest_fwbench_launched(nodeid="a")
    assert terminal.progress._cases.n == 1
    terminal.progress.pytest_runtest_logreport(Mock())
    assert terminal.file.getvalue().split("\r")[-1].strip() == ""
    terminal.reporter.write_line.assert_not_called()
