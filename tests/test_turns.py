"""Where several processes share the tests, a serial one runs alone, and its turn comes."""

import os
import signal
import threading
from pathlib import Path

from support import programs
from support.turns import Turns

#: Longer than anything here takes, and how long to see that something does not happen.
_PATIENCE_S, _GLANCE_S = 30.0, 0.2


class Visitor:
    """Takes a turn in a thread of its own, as another process would: with files of its own."""

    def __init__(self, folder: Path, *, alone: bool) -> None:
        self._turns, self._alone = Turns(folder), alone
        self.inside, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._visit, daemon=True)
        self._thread.start()

    def _visit(self) -> None:
        with self._turns.take(alone=self._alone):
            self.inside.set()
            self._leave.wait(_PATIENCE_S)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(_PATIENCE_S)


def _came_in(visitor: Visitor) -> bool:
    return visitor.inside.wait(_PATIENCE_S)


def _waits(visitor: Visitor) -> bool:
    return not visitor.inside.wait(_GLANCE_S)


def test_others_run_together(tmp_path: Path) -> None:
    """Nobody waits where nobody asks to be alone."""
    both = [Visitor(tmp_path, alone=False) for _ in range(2)]
    assert all(map(_came_in, both))
    for visitor in both:
        visitor.leave()


def test_a_serial_test_runs_alone(tmp_path: Path) -> None:
    """It waits until the others are through, and those that come later wait for it."""
    first = Visitor(tmp_path, alone=False)
    assert _came_in(first)
    serial = Visitor(tmp_path, alone=True)
    assert _waits(serial)
    later = Visitor(tmp_path, alone=False)
    assert _waits(later), "a process that waits to be alone is not overtaken"
    first.leave()
    assert _came_in(serial)
    assert _waits(later)
    serial.leave()
    assert _came_in(later)
    later.leave()


def test_a_process_stays_alone_for_its_next_serial_test(tmp_path: Path) -> None:
    """Nobody comes between two of them, and somebody does after the last."""
    turns = Turns(tmp_path)
    with turns.take(alone=True, stay=True):
        other = Visitor(tmp_path, alone=False)
    assert _waits(other)
    with turns.take(alone=True):
        assert _waits(other)
    assert _came_in(other)
    other.leave()


def test_serial_tests_take_turns(tmp_path: Path) -> None:
    first = Visitor(tmp_path, alone=True)
    assert _came_in(first)
    second = Visitor(tmp_path, alone=True)
    assert _waits(second)
    first.leave()
    assert _came_in(second)
    second.leave()


#: It ends while it is its turn, and a process that it has forked is there.
_DIES = """
import os, sys, time
from pathlib import Path
from support.turns import Turns

with Turns(Path(sys.argv[1])).take(alone=False):
    pid = os.fork()
    if pid == 0:
        os.closerange(0, 3)
        time.sleep(300)
    print(pid, flush=True)
    os._exit(0)
"""


def test_a_process_that_dies_has_had_its_turn(tmp_path: Path) -> None:
    """Its forks do not keep the others waiting."""
    pid = int(programs.output("-c", _DIES, tmp_path, cwd=Path(__file__).parent))
    try:
        serial = Visitor(tmp_path, alone=True)
        assert _came_in(serial)
        serial.leave()
    finally:
        os.kill(pid, signal.SIGKILL)
