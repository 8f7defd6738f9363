"""An empty Python stack for what is measured.

TensorFlow keeps the Python stack of every eager operation, with the line of each frame, which takes
longer the further down in a long function it is: a frame that stands after 200 statements makes a
sigmoid of 8 elements 2.2 us slower, one after 1,000 statements 9.6 us. Under pytest's sixty frames
it takes 16.2 us, in a script 11.8. JAX keeps the stack of every call, and takes 6.1 us instead of
5.4 for a compiled addition of 100 elements. So rounds of such a framework are made in a greenlet,
whose stack begins empty: the same thread, the same process, and no more than a microsecond before
the round begins. Rounds of others are not, because what switches stacks leaves colder caches: half
a microsecond of MXNet's 20 for a sigmoid of 1,000 elements.

The greenlet is kept. The frames of a new one would be in new memory, whose pages the kernel makes
when they are first touched, within the round: MXNet's sigmoid then took 23.9 us.
"""

import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from greenlet import getcurrent, greenlet


def _serve(function: Callable[[], Any]) -> None:
    """Call the functions that are switched in, forever."""
    while True:
        try:
            outcome = [function(), None]
        except BaseException as error:  # noqa: BLE001 (raised where it was asked for)
            outcome = [None, error]
        del function
        function = getcurrent().parent.switch(outcome)


class _IdleStacks(threading.local):
    """The greenlets of a thread that no call is using now; nested calls need several."""

    def __init__(self) -> None:
        self.idle: list[greenlet] = []


_STACKS = _IdleStacks()


def call(function: Callable[[], Any]) -> Any:
    """Call a function on an empty stack; returns and raises what it does, of any kind."""
    stack = _STACKS.idle.pop() if _STACKS.idle else greenlet(_serve)
    stack.parent = getcurrent()
    stack.gr_context = contextvars.copy_context()
    outcome = stack.switch(function)
    _STACKS.idle.append(stack)
    result, error = outcome
    outcome.clear()  # which the greenlet still holds
    if error is not None:
        raise error
    return result


def rounds(make_runner: Callable[..., Callable[..., Any]]) -> Callable[..., Callable[..., Any]]:
    """Have pytest-benchmark make each round on an empty stack."""

    def make(*arguments: Any) -> Callable[..., Any]:
        runner = make_runner(*arguments)
        return lambda *given: call(partial(runner, *given))

    return make
