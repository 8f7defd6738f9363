"""A call at the foot of a stack: nothing below it, and all else as if it were made here."""

import contextvars
import gc
import sys
import threading
import traceback
import weakref
from collections.abc import Callable

import pytest
from greenlet import getcurrent

from fwbench.measure import empty_stack


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_a_call_has_one_frame_below_it() -> None:
    """The frame of the foot, from any depth, in every call."""
    assert [empty_stack.call(_depth) for _ in range(3)] == [2, 2, 2]
    assert _depth() > 10


def test_the_foot_is_kept() -> None:
    """A new one would have new memory for its frames."""
    assert empty_stack.call(getcurrent) is empty_stack.call(getcurrent) is not getcurrent()


def test_a_call_within_a_call_has_a_foot_of_its_own() -> None:
    assert empty_stack.call(lambda: (empty_stack.call(_depth), _depth())) == (2, 3)
    assert empty_stack.call(lambda: empty_stack.call(lambda: empty_stack.call(_depth))) == 2


def test_a_round_has_nothing_but_its_own_loop_below_it() -> None:
    """pytest-benchmark's runner is at the foot."""

    def make_runner(function: Callable[[], object], calls: int) -> Callable[[int], list[object]]:
        def runner(more: int) -> list[object]:
            results = []
            for _ in range(calls + more):
                results.append(function())  # noqa: PERF401 (a comprehension would be a frame)
            return results

        return runner

    assert empty_stack.rounds(make_runner)(_depth, 2)(1) == [3, 3, 3]


def test_a_call_is_made_in_the_same_thread() -> None:
    """OpenMP keeps a team for each thread that computes."""
    assert empty_stack.call(threading.get_ident) == threading.get_ident()


def test_context_variables_are_the_callers() -> None:
    """Libraries keep settings in them."""
    variable = contextvars.ContextVar("variable", default="default")
    variable.set("set")
    assert empty_stack.call(variable.get) == "set"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_errors_are_the_callers(error: type[BaseException]) -> None:
    """With the frames of the function that raised it, and the next call is none the worse."""

    def fail() -> None:
        raise error("what was wrong")

    with pytest.raises(error, match="what was wrong") as caught:
        empty_stack.call(fail)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "fail"
    assert empty_stack.call(lambda: "still there") == "still there"


def test_nothing_of_a_call_is_kept() -> None:
    class Array:
        pass

    def make() -> weakref.ref[Array]:
        array = Array()
        kept = weakref.ref(array)
        assert empty_stack.call(lambda: array) is array
        return kept

    kept = make()
    gc.collect()
    assert kept() is None
