"""A stack without anybody's frames, for what is measured.

TensorFlow keeps the Python stack of every eager operation, with the line of each frame, which takes
longer the further down in a long function it is: a frame that stands after 200 statements makes a
sigmoid of 8 elements 2.2 us slower, one after 1,000 statements 9.6 us. Under pytest's sixty frames
it takes 16.2 us, in a script 11.8. So every round runs in a greenlet, whose stack begins empty: the
same thread, the same process, and no more than a microsecond before the round begins.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any

from greenlet import greenlet

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True


def call(function: Callable[[], Any]) -> Any:
    """Call a function at the foot of a stack.

    Returns:
        What it returned. What it raised is raised here, KeyboardInterrupt and the like included.
    """
    foot = greenlet(function)
    foot.gr_context = contextvars.copy_context()
    return foot.switch()


def rounds(make_runner: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
    """Have pytest-benchmark make each round at the foot of a stack.

    Args:
        make_runner: its fixture's own, which returns what makes a round.
    """

    def make(*arguments: Any) -> Callable[..., Any]:
        runner = make_runner(*arguments)
        return lambda *given: call(partial(runner, *given))

    return make
