"""Signals that end a command: each job is interrupted once, and never while it cleans up."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Ctrl-C, a job that is cancelled, a terminal that is closed.
SIGNALS = [
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__  # Windows has no SIGHUP
]


class _Interruption:
    """Signals of this process so far.

    Attributes:
        arrived: whether there was one; further ones are ignored.
        waiting: whether it came while it was held, and is to be raised.
        holders: how many blocks must not be interrupted.
        terminals: the descriptors of output that a terminal shows.
    """

    def __init__(self) -> None:
        self.holders = 0
        self.begin()

    def begin(self) -> None:
        self.arrived = False
        self.waiting = False
        self.terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def handle(self, number: int, _: FrameType | None) -> None:
        """Interrupt the process, or note that it is to be interrupted."""
        if signal.Signals(number).name == "SIGHUP":
            self._leave_terminals()
        if self.arrived:
            return
        self.arrived = True
        if self.holders:
            self.waiting = True
        else:
            raise KeyboardInterrupt

    def _leave_terminals(self) -> None:
        """Write nowhere instead of to a terminal that has gone, where every line is an error."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for terminal in self.terminals:
            if not os.isatty(terminal):
                os.dup2(nowhere, terminal)
        os.close(nowhere)


_interruption = _Interruption()


@contextmanager
def as_keyboard_interrupt() -> Iterator[None]:
    """Have :data:`SIGNALS` raise KeyboardInterrupt, the first time; what is ignored stays so."""
    _interruption.begin()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup, or in the background of a shell
            signal.signal(number, _interruption.handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def has_arrived() -> bool:
    """True once a signal has interrupted this process: further errors may be what came of it."""
    return _interruption.arrived


@contextmanager
def held() -> Iterator[None]:
    """A block that no signal interrupts: one that arrives meanwhile is raised at its end."""
    _interruption.holders += 1
    try:
        yield
    finally:
        _interruption.holders -= 1
        if _interruption.waiting and not _interruption.holders:
            _interruption.waiting = False
            raise KeyboardInterrupt
