"""The line of progress leaves the lines of others whole, on terminals, in logs and in files."""

import io
import threading
from pathlib import Path
from typing import Any

import pytest

from fwbench.plugin import lines
from fwbench.plugin.lines import (
    Line,
    Live,
    LogLines,
    Status,
    StatusFile,
    TerminalLine,
    draws_in_place,
    whole,
)
from support.launched_runs import Clock
from support.tables import tabled
from support.terminals import Terminal

HALF = Status("case 2 of 4, 10 s left", "gemm-torch-cpu-eager-forward-float32-64", "3 s")


@pytest.fixture
def hand() -> Clock:
    return Clock()


def _line(terminal: Any, hand: Clock, *, below: bool = True) -> TerminalLine:
    return TerminalLine(terminal, below=below, clock=hand)


@pytest.mark.parametrize("begun", ["test_it.py ...", "", "x" * 79, "x" * 81, "x" * 100])
@pytest.mark.parametrize("above", [0, 22, 23, 50])
def test_a_begun_line_goes_on_where_it_was(hand: Clock, begun: str, above: int) -> None:
    with_line, without = Terminal(), Terminal()
    for terminal in (with_line, without):
        terminal.write("line\n" * above + begun)
    line = _line(with_line, hand)
    line.show(HALF)
    assert with_line.shown[-1] == str(HALF)[:79]
    line.clear()
    for terminal in (with_line, without):
        terminal.write(". [100%]\nnext\n")
    assert with_line.shown == without.shown


def test_the_line_is_drawn_anew_in_place(hand: Clock) -> None:
    """A shorter text leaves nothing of a longer one, and a cleared line nothing at all."""
    terminal = Terminal()
    terminal.write("test_it.py ..")
    line = _line(terminal, hand)
    line.show(HALF)
    hand.now_s += 1
    line.show(Status("", "short"))
    assert terminal.shown == ["test_it.py ..", "short"]
    line.clear()
    line.clear()
    assert terminal.shown == ["test_it.py .."]
    assert terminal.cursor == (0, 13)


def test_a_line_that_was_interrupted_is_cleared(
    hand: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes when it likes: also when the line has just been drawn."""
    terminal = Terminal()
    line = _line(terminal, hand)

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "flush", interrupted)
    with pytest.raises(KeyboardInterrupt):
        line.show(HALF)
    monkeypatch.undo()
    line.clear()
    assert terminal.shown == []


def test_a_command_has_the_line_of_the_cursor(hand: Clock) -> None:
    """It is empty, so that nothing needs to be left free above."""
    terminal = Terminal()
    terminal.write("pair 1\n")
    line = _line(terminal, hand, below=False)
    line.show(HALF)
    assert terminal.shown == ["pair 1", str(HALF)[:79]]
    line.clear()
    terminal.write("pair 2\n")
    assert terminal.shown == ["pair 1", "pair 2"]


def test_the_line_is_drawn_a_few_times_a_second_at_most(hand: Clock) -> None:
    terminal = Terminal()
    line = _line(terminal, hand)
    for number in range(100):
        line.show(Status("", f"{number}"))
        hand.now_s += 0.01
    assert terminal.written.count(TerminalLine._WRAP_OFF) <= 1 + 1 / 0.25
    before = terminal.written
    shown = terminal.shown[-1]
    hand.now_s += 10
    line.show(Status("", shown))
    assert terminal.written == before


@pytest.mark.parametrize("columns", [1, 5, 20, 40, 80])
def test_the_line_fits(hand: Clock, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into every terminal, with the count and the time first, also if a name is wider than it is
    long."""
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal(columns)
    terminal.write("..\n")
    _line(terminal, hand).show(Status("2 of 4", "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 50, "3 s"))
    assert len([line for line in terminal.shown if line]) <= 2 + (columns == 1)
    if columns >= 20:
        assert terminal.shown[-1].startswith("2 of 4: ")


@pytest.mark.parametrize(
    ("terminal", "term", "expected"),
    [(True, "xterm", True), (True, "dumb", False), (True, None, False), (False, "xterm", False)],
)
def test_only_terminals_that_can_are_drawn_on(
    terminal: bool, term: str | None, expected: bool
) -> None:
    variables = {} if term is None else {"TERM": term}
    stream: Any = Terminal() if terminal else io.StringIO()
    assert draws_in_place(stream, variables) is expected


def test_a_log_gets_a_line_a_minute(hand: Clock) -> None:
    """None in the first minute, then one, whatever happens meanwhile; announcements at once."""
    written: list[str] = []
    log = LogLines(written.append, hand)
    log.announce("launch 1 of 2")
    for second in range(181):
        hand.now_s = float(second)
        log.show(Status("", f"{second}"))
        log.clear()
    assert written == ["launch 1 of 2", "60", "120", "180"]


def test_nothing_is_nothing() -> None:
    line = Line()
    line.show(HALF)
    line.announce("launch")
    line.clear()


def test_a_file_tells_another_process(hand: Clock, tmp_path: Path) -> None:
    """At most once a second; what cannot be read says nothing."""
    path = tmp_path / "status.json"
    assert lines.read(path) is None
    file = StatusFile(path, hand)
    file.show(HALF)
    assert lines.read(path) == HALF
    file.show(Status("", "at once"))
    assert lines.read(path) == HALF
    hand.now_s += 1
    file.show(Status("", "later"))
    assert lines.read(path) == Status("", "later")
    for text in ("", '{"head": "", "na', "[]", '{"other": 1}', "7"):
        path.write_text(text, encoding="utf-8")
        assert lines.read(path) is None


def test_a_file_that_has_gone_is_no_error(hand: Clock, tmp_path: Path) -> None:
    StatusFile(tmp_path / "gone" / "status.json", hand).show(HALF)


@tabled
def test_times(seconds: float, text: str) -> None:
    """Whole seconds, so that a line does not change between them; none before the start."""
    assert whole(seconds) == text


def test_what_is_not_known_leaves_no_mark() -> None:
    assert str(Status("", "starting torch")) == "starting torch"
    assert str(Status("", "starting torch", "4 s")) == "starting torch, 4 s"
    assert str(Status("case 1 of 2", "a", "4 s")) == "case 1 of 2: a, 4 s"


def test_the_name_is_shortened_first() -> None:
    status = Status("case 1 of 2", "gemm-torch-cpu-eager", "4 s")
    assert status.fit(100) == str(status)
    assert status.fit(30) == "case 1 of 2: gemm-torc..., 4 s"
    assert status.fit(20) == "case 1 of 2: gemm-.."
    assert status.fit(0) == status.fit(-1) == ""


@pytest.mark.parametrize("columns", range(50))
def test_nothing_is_longer_than_allowed(columns: int) -> None:
    for status in (Status("", "a" * 60), Status("b" * 60, "a"), Status("b", "a", "c" * 60)):
        assert len(status.fit(columns)) <= columns


_PATIENCE_S = 60.0


class Seen(Terminal):
    """A terminal that tells when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Event()

    def write(self, text: str) -> None:
        super().write(text)
        self.changed.set()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread looks often, on a terminal that can be drawn on."""
    monkeypatch.setattr("fwbench.plugin.lines._TICK_S", 0.001)
    monkeypatch.setenv("TERM", "xterm")


def test_what_is_being_done_is_shown_until_it_is_done() -> None:
    """In place; lines that stay stand above, and nothing is left of it."""
    terminal: Any = Seen()
    live = Live(terminal)
    with live.doing("making torch@2.7"):
        assert terminal.changed.wait(_PATIENCE_S)
        assert terminal.shown[0].startswith("making torch@2.7, ")
        live.say("  Resolved 12 packages")
    assert terminal.shown == ["  Resolved 12 packages"]


def test_what_another_process_says_is_shown(tmp_path: Path) -> None:
    terminal: Any = Seen()
    path = tmp_path / "status.json"
    with Live(terminal).watching(path):
        StatusFile(path).show(Status("case 1 of 2", "gemm"))
        assert terminal.changed.wait(_PATIENCE_S)
        assert terminal.shown == ["case 1 of 2: gemm"]
    assert terminal.shown == []


def test_an_error_ends_the_line() -> None:
    """The command's own message stands alone, and no thread goes on."""
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
    log = io.StringIO()
    live = Live(log)
    with live.doing("making torch@2.7"):
        live.say("line")
    assert log.getvalue() == "line\n"


def test_a_closed_pipe_ends_the_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's own output fails with it; no thread ends with a traceback."""
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
