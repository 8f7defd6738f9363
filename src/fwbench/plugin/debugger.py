"""Pytest's debugger: it needs the frameworks in the process that has the terminal.

So ``--pdb`` measures without isolation, as it turns ``-n auto`` of pytest-xdist into ``-n0``;
and it stops in the user's test, not where fwbench raised what stopped it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

import pytest

from fwbench.errors import UsageError
from fwbench.options.options import DEST

#: What needs the items of a session in its own process: flags, and their options.
_NEED_ITEMS = {
    "--pdb": "usepdb",
    "--trace": "trace",
    "--setup-plan": "setupplan",  # before --setup-only, which it implies
    "--setup-only": "setuponly",
}


def reason(config: pytest.Config) -> str:
    """The flag for which a session measures without isolation; empty if there is none.

    Args:
        config: of the session.

    Raises:
        UsageError: isolation is asked for on the same command line.
    """
    flag = next((flag for flag, name in _NEED_ITEMS.items() if config.getoption(name, False)), "")
    if flag and config.getoption(DEST["isolation"]) == "process":
        raise UsageError(
            f"{flag} needs the frameworks in this process, where the terminal is, and "
            "--fw-isolation=process starts others: leave out one of them"
        )
    return flag


def end_in_test(error: BaseException) -> None:
    """Let the traceback of what fwbench itself has raised end before the first of its own frames.

    A debugger stops there, and a report shows it. The debugger takes frames for hidden that say so
    in their locals, not those of modules that do; neither hides those of the standard library
    between them. What code that fwbench calls has raised stays as it is.

    Args:
        error: what was raised in a user's test.
    """
    frames = [*_frames(error.__traceback__)]
    first = next((number for number, frame in enumerate(frames) if _is_hidden(frame)), 0)
    if first and _is_hidden(frames[-1]):
        frames[first - 1].tb_next = None


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_hidden(traceback: TracebackType) -> bool:
    return bool(traceback.tb_frame.f_globals.get("__tracebackhide__", False))
