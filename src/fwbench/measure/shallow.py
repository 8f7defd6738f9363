"""A stack without pytest's frames, for what is measured.

TensorFlow keeps the Python stack of every eager operation. Under the sixty frames of a pytest test
that makes small operations a third slower than they are in a script: a sigmoid of 8 elements takes
16.2 us instead of 12.0 (medians of 1,000 rounds, four times in each of three processes). So a
worker measures in a thread, whose stack begins with one frame. It is one thread for the process's
life: OpenMP keeps a team of threads for each thread that computes.
"""

from __future__ import annotations

import _thread
import contextvars
import functools
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

_Answer = tuple[Any, BaseException | None]
_Requests = SimpleQueue[tuple[Callable[[], Any], SimpleQueue[_Answer]]]


@functools.cache
def _requests() -> _Requests:
    """What the thread is asked to call, and where it puts the answers; the thread begins here."""
    requests: _Requests = SimpleQueue()
    # threading.Thread and its executors have frames of their own below what they call.
    _thread.start_new_thread(_serve, (requests,))
    return requests


def _serve(requests: _Requests) -> None:
    while True:
        function, answers = requests.get()
        try:
            answer: _Answer = (function(), None)
        except BaseException as error:  # noqa: BLE001 (raised again by `call`)
            answer = (None, error)
        answers.put(answer)
        # Between two requests the thread keeps nothing of the first alive.
        del function, answers, answer


def call(function: Callable[[], Any]) -> Any:
    """Call a function at the foot of a stack, and wait for it.

    Returns:
        What it returned. What it raised is raised here, KeyboardInterrupt and the like included.
    """
    answers: SimpleQueue[_Answer] = SimpleQueue()
    _requests().put((functools.partial(contextvars.copy_context().run, function), answers))
    result, error = answers.get()
    if error is not None:
        raise error
    return result
