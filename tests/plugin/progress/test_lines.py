"""The line of progress leaves the lines of others whole, on terminals, in logs and in files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from fwbench.plugin.progress import lines
from fwbench.plugin.progress.lines import (
    LogLines,
    NoLine,
    Status,
    StatusFile,
    TerminalLine,
    draws_in_place,
)
from support.terminals import Terminal


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.now_s


HALF = Status("case 2 of 4, 10 s left", "gemm-torch-cpu-eager-forward-float32-64", "3 s")


@pytest.fixture
def hand() -> Hand:
    """A clock that is set by hand."""
    return Hand()


def _line(terminal: Any, hand: Hand, *, below: bool = True) -> TerminalLine:
    return TerminalLine(terminal, below=below, clock=hand)


# On a terminal


@pytest.mark.parametrize("begun", ["test_it.py ...", "", "x" * 79, "x" * 81, "x" * 100])
@pytest.mark.parametrize("above", [0, 22, 23, 50])
def test_a_begun_line_goes_on_where_it_was(hand: Hand, begun: str, above: int) -> None:
    """Wherever the cursor is: in the middle, at the bottom, in a wrapped line."""
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


def test_the_line_is_drawn_anew_in_place(hand: Hand) -> None:
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
    hand: Hand, monkeypatch: pytest.MonkeyPatch
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


def test_a_command_has_the_line_of_the_cursor(hand: Hand) -> None:
    """It is empty, so that nothing needs to be left free above."""
    terminal = Terminal()
    terminal.write("pair 1\n")
    line = _line(terminal, hand, below=False)
    line.show(HALF)
    assert terminal.shown == ["pair 1", str(HALF)[:79]]
    line.clear()
    terminal.write("pair 2\n")
    assert terminal.shown == ["pair 1", "pair 2"]


def test_the_line_is_drawn_a_few_times_a_second_at_most(hand: Hand) -> None:
    """However often it is told; and not at all if nothing has changed."""
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
def test_the_line_fits(hand: Hand, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
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
    """Not logs, and not terminals that are dumb or unknown."""
    variables = {} if term is None else {"TERM": term}
    stream: Any = Terminal() if terminal else io.StringIO()
    assert draws_in_place(stream, variables) is expected


# In logs


def test_a_log_gets_a_line_a_minute(hand: Hand) -> None:
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
    """What shows nothing takes whatever it is told."""
    line = NoLine()
    line.show(HALF)
    line.announce("launch")
    line.clear()


# In files


def test_a_file_tells_another_process(hand: Hand, tmp_path: Path) -> None:
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


def test_a_file_that_has_gone_is_no_error(hand: Hand, tmp_path: Path) -> None:
    """Whoever reads it may end first."""
    StatusFile(tmp_path / "gone" / "status.json", hand).show(HALF)
