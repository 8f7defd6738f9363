"""Signals that tests send, whether or not the session around them ignores these."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def listen() -> None:
    """Have this process hear every signal; ``nohup`` and the background of a shell switch some off.

    For ``preexec_fn``.
    """
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def listening() -> Iterator[None]:
    """The same within a block, where what is there already is restored at its end."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    listen()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
