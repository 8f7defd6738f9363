"""A command that waits shows that it is at work."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pytest

from fwbench.plugin.progress import live
from fwbench.plugin.progress.lines import Status, StatusFile
from fwbench.plugin.progress.live import Live
from support.terminals import Terminal

_PATIENCE_S = 60.0


class Seen(Terminal):
    """A terminal that tells when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Event()

    def write(self, text: str) -> None:
        """Show a text, and tell."""
        super().write(text)
        self.changed.set()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread looks often, on a terminal that can be drawn on."""
    monkeypatch.setattr(live, "_TICK_S", 0.001)
    monkeypatch.setenv("TERM", "xterm")


def test_what_is_being_done_is_shown_until_it_is_done() -> None:
    """In place; lines that stay stand above, and nothing is left of it."""
    terminal: Any = Seen()
    said = Live(terminal)
    with said.doing("making torch@2.7"):
        assert terminal.changed.wait(_PATIENCE_S)
        assert terminal.shown[0].startswith("making torch@2.7, ")
        said.say("  Resolved 12 packages")
    assert terminal.shown == ["  Resolved 12 packages"]


def test_what_another_process_says_is_shown(tmp_path: Path) -> None:
    """As soon as it says something."""
    terminal: Any = Seen()
    path = tmp_path / "status.json"
    with Live(terminal).watching(path):
        StatusFile(path).show(Status("case 1 of 2", "gemm"))
        assert terminal.changed.wait(_PATIENCE_S)
        assert terminal.shown == ["case 1 of 2: gemm"]
    assert terminal.shown == []


def test_an_error_ends_the_line() -> None:
    """What a command says of it stands alone, and no thread goes on."""
    terminal: Any = Seen()
    before = threading.active_count()

    def interrupted() -> None:
        with Live(terminal).doing("making torch@2.7"):
            assert terminal.changed.wait(_PATIENCE_S)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.shown == []
    assert threading.active_count() == before


def test_a_log_has_what_was_said_and_nothing_of_what_takes_less_than_a_minute() -> None:
    """No control sequence, either."""
    log = io.StringIO()
    said = Live(log)
    with said.doing("making torch@2.7"):
        said.say("line")
    assert log.getvalue() == "line\n"


def test_a_closed_pipe_ends_the_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command itself writes tells of it; no thread ends with a traceback."""
    failed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    terminal: Any = Seen()

    def closed() -> None:
        if threading.current_thread() is not threading.main_thread():
            raise BrokenPipeError

    monkeypatch.setattr(terminal, "flush", closed)
    with Live(terminal).doing("making torch@2.7"):
        assert terminal.changed.wait(_PATIENCE_S)
    assert failed == []
