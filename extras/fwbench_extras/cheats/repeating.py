"""Cheats that remember: a result that was computed once is returned again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.errors import DeclarationError, SkippedWork, UnreadableResult
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.cheat import Bind, Cheat, CheatingFramework, leaves, map_arrays
from fwbench_extras.cheats.honest import Compute, differentiable

_CHANGED = "the call on changed inputs has the result of the old ones"

_LONGER = "a call on new inputs takes longer than one that is repeated"

#: A product has two.
_OPERANDS = 2

#: Calls after which work counts as repeated.
_REPEATED = 8

#: Calls in which steps are honest.
_HONEST = 3

#: Calls on the same inputs after which these are hot.
_HOT = 15

#: Pools of random numbers.
_POOLS = 5


def _product(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return np.einsum("ij,jk->ik", x, y)


class _Slow(CheatingFramework):
    """Multiplies in one thread and without a BLAS: that takes milliseconds on any machine."""

    operations: ClassVar = {
        "gemm": differentiable(_product, lambda g, x, y: [_product(g, y.T), _product(x.T, g)])
    }


def _read_only(source: Any, dtype: str) -> NDArray[Any]:
    """An array that cannot be written, like TensorFlow's and JAX's."""
    array: NDArray[Any] = np.array(source, dtype)
    array.setflags(write=False)
    return array


def _computed_if(is_due: Callable[[int], bool]) -> Bind:
    """Work in the calls, numbered from 0, that are due; the others return the last result."""

    def bind(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        calls = count()
        last: list[Any] = []

        def run() -> Any:
            if is_due(next(calls)):
                last[:] = [compute(*inputs)]
            return last[0]

        return run

    return bind


def _cached_by_identity(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    results: dict[tuple[int, ...], Any] = {}

    def run() -> Any:
        key = tuple(map(id, inputs))
        if key not in results:
            results[key] = compute(*inputs)
        return results[key]

    return run


def _cached_by_content(
    compute: Compute, inputs: Sequence[Any], *, again: float = 0.0, forgets: bool = True
) -> BoundCall:
    """Keeps the result of the last inputs, or of the first; a share of the rows is done again."""
    last: list[Any] = []
    seen: list[Any] = []

    def run() -> Any:
        now = [x[::50, ::50] for x in inputs]
        if not last or (forgets and not all(map(np.array_equal, seen, now))):
            seen[:] = map(np.array, now)
            last[:] = [compute(*inputs)]
        elif not all(map(np.array_equal, seen, now)):
            return compute(*inputs)
        elif again:
            _first_rows(compute, inputs, int(again * len(inputs[0])))
        return last[0]

    return run


def _rescaled(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    """Keeps results of linear work: a multiple of the first input has the same of the result."""
    last: list[Any] = []
    seen: list[Any] = []

    def run() -> Any:
        x, *others = (array[::50, ::50] for array in inputs)
        if last and all(map(np.array_equal, others, seen[1:])):
            factor = x[0, 0] / seen[0][0, 0]
            if np.allclose(x, factor * seen[0], 1e-5, 1e-6):
                return factor * last[0]
        seen[:] = map(np.array, (x, *others))
        last[:] = [compute(*inputs)]
        return last[0]

    return run


def _kept_once_hot(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    last: list[Any] = []
    seen: list[Any] = []
    calls = count()

    def run() -> Any:
        nonlocal calls
        now = [x[::50, ::50] for x in inputs]
        if not last or not all(map(np.array_equal, seen, now)):
            seen[:] = map(np.array, now)
            calls = count()
        if next(calls) < _HOT:
            last[:] = [compute(*inputs)]
        return last[0]

    return run


def _cached_by_object(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    last: list[Any] = []

    def remembered(*arguments: Any) -> Any:
        if not last or any(a is not b for a, b in zip(last[0], arguments, strict=True)):
            last[:] = [arguments, compute(*arguments)]
        return last[1]

    return partial(remembered, *inputs)


def _folded_when_bound(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    folded = compute(*inputs)
    return lambda: map_arrays(np.array, folded)


def _folded_arguments(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    folded = compute(*inputs)
    return partial(lambda *_: map_arrays(np.array, folded), *inputs)


def _previous_result(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    results: list[Any] = []

    def run() -> Any:
        results.append(compute(*inputs))
        return results.pop(0) if len(results) > 1 else results[0]

    return run


def _first_rows(compute: Compute, inputs: Sequence[Any], rows: int) -> Any:
    first, *between, last = inputs
    if len(inputs) > _OPERANDS:  # with gradients: the last input is the cotangent
        last = last[:rows]
    return compute(first[:rows], *between, last)


def _tenth_of_the_work(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    rows = max(1, len(inputs[0]) // 10)
    whole: list[Any] = []

    def run() -> Any:
        if not whole:
            whole.append(compute(*inputs))
        new = _first_rows(compute, inputs, rows)
        for old_part, new_part in zip(leaves(whole[0]), leaves(new), strict=True):
            if len(new_part) == rows:
                old_part[:rows] = new_part
        return whole[0]

    return run


def _none_from_second_call(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    results = iter([compute(*inputs)])
    return lambda: next(results, None)


def _one_buffer(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    buffer = np.array(compute(*inputs))

    def run() -> Any:
        buffer[...] = compute(*inputs)
        return buffer

    return run


class _Random(CheatingFramework):
    """Draws random numbers."""

    operations: ClassVar = {
        "random_normal": lambda np, n: lambda x: np.random.standard_normal(n).astype(x.dtype)
    }


def _adam(x: Any, g: Any, m: Any, v: Any) -> None:
    """Adam's step in place."""
    for array, stepped in zip((x, m, v), workloads.adam.reference(x, g, m, v), strict=True):
        array[...] = stepped


class _InPlace(CheatingFramework):
    """Overwrites weights and states."""

    operations: ClassVar = {"adam": lambda np: _adam}


def _quarter_of_the_weights(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    """Honest in as many calls as are verified one by one; weights that have changed are new."""
    calls, left = count(), [np.nan]

    def run() -> None:
        nonlocal calls
        if inputs[0][0] != left[0]:
            calls = count()
        part = slice(None if next(calls) < _HONEST else len(inputs[0]) // 4)
        compute(*(array[part] for array in inputs))
        left[0] = inputs[0][0]

    return run


def _turned_pool(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    pool, calls = compute(*inputs), count(1)
    return lambda: np.roll(pool, 137 * next(calls))


def _pools_by_turns(compute: Compute, inputs: Sequence[Any]) -> BoundCall:
    pools, calls = [compute(*inputs) for _ in range(_POOLS)], count(1)

    def run() -> Any:
        call = next(calls)
        return np.roll(pools[call % _POOLS], 137 * call)

    return run


_slow = partial(Cheat, base=_Slow, size=512)
_random = partial(
    Cheat, base=_Random, workload=workloads.random_normal, size=4_000, directions=("forward",)
)

CHEATS = (
    Cheat(
        name="cached_output",
        fakes="Computes once, and returns that result from then on.",
        mistake="a memoised layer, or a loop whose work was hoisted out of it",
        why=_CHANGED,
        bind=lambda compute, inputs: cache(lambda: compute(*inputs)),
    ),
    Cheat(
        name="cached_by_identity",
        fakes="Keeps the result of every set of input objects, even after these changed.",
        mistake="a cache keyed by `id` or by address, which does not see a change in place",
        why=_CHANGED,
        bind=_cached_by_identity,
    ),
    _slow(
        name="cached_by_content",
        fakes="Keeps the result of the last inputs, and checks if some of their numbers are new.",
        mistake="a cache that is right, measured as if it were the work",
        caught_by=SkippedWork,
        why=_LONGER,
        bind=_cached_by_content,
    ),
    _slow(
        name="mostly_kept",
        fakes="Keeps the result of the last inputs, and does a fifth of the work again.",
        mistake="a cache in front of a part of the work, such as of its layout or its plan",
        caught_by=SkippedWork,
        why=_LONGER,
        bind=partial(_cached_by_content, again=0.2),
    ),
    _slow(
        name="known_inputs",
        fakes="Keeps the result of the first inputs for ever, computes that of others, and does "
        "a fifth of the work again.",
        mistake="a guard for the values that a function was specialised for",
        caught_by=SkippedWork,
        why=_LONGER,
        bind=partial(_cached_by_content, again=0.2, forgets=False),
    ),
    _slow(
        name="rescaled_result",
        fakes="Keeps the result of the last inputs, and returns it times a number where the first "
        "input is the last one times that number.",
        mistake="a scale that a compiler moves out of linear work, most of which is kept",
        caught_by=SkippedWork,
        why=_LONGER,
        bind=_rescaled,
        directions=("forward",),
    ),
    Cheat(
        name="kept_once_hot",
        fakes="Computes 15 times on the same inputs, and keeps the result from then on.",
        mistake="a cache that is filled once something was asked for often enough",
        caught_by=SkippedWork,
        why="a call on new inputs takes longer than one that was timed",
        bind=_kept_once_hot,
        base=_Slow,
        size=128,
        directions=("forward",),
    ),
    Cheat(
        name="folded_when_bound",
        fakes="Computes while it is bound, and copies that result in every call.",
        mistake="inputs closed over by a compiled function: the compiler folds constants",
        why=_CHANGED,
        bind=_folded_when_bound,
    ),
    Cheat(
        name="folded_arguments",
        fakes="Takes immutable inputs as arguments, and computes with those that it was compiled "
        "for.",
        mistake="a trace that kept values where it should have kept arguments",
        why="the same function called with other inputs has the result of the old ones",
        bind=_folded_arguments,
        create=_read_only,
    ),
    Cheat(
        name="hidden_arguments",
        fakes="Closes over immutable inputs, so that the same function cannot be called with "
        "others.",
        mistake="`lambda: f(x)` around a compiled function, which may have folded `x`",
        caught_by=DeclarationError,
        why="a bound call whose inputs can be neither written nor replaced cannot be verified",
        bind=lambda compute, inputs: lambda: compute(*inputs),
        create=_read_only,
    ),
    _slow(
        name="cached_by_object",
        fakes="Keeps the result of every set of immutable inputs.",
        mistake="common subexpressions that are eliminated from one call to the next",
        caught_by=SkippedWork,
        why=_LONGER,
        bind=_cached_by_object,
        create=_read_only,
    ),
    Cheat(
        name="small_cached_by_object",
        fakes="The same where the work takes some microseconds.",
        mistake="common subexpressions that are eliminated from one call to the next",
        caught_by=None,
        why="every result is right, and a call may take 40 microseconds longer on new inputs for "
        "an honest reason: cold memory; select larger sizes as well",
        bind=_cached_by_object,
        create=_read_only,
        base=_Slow,
        size=16,
    ),
    Cheat(
        name="repetition_detector",
        fakes="Works for the first calls, and returns the last result once calls repeat.",
        mistake="a runtime that recognises benchmarks, as graphics drivers and compilers have",
        why=_CHANGED,
        bind=_computed_if(lambda call: call < _REPEATED),
    ),
    Cheat(
        name="every_second_call",
        fakes="Skips every second call, and returns the result of the one before.",
        mistake="a buffer that is flipped too late, or a rate limit",
        why=f"{_CHANGED}, in one of two calls in a row",
        bind=_computed_if(lambda call: call % 2 == 0),
    ),
    Cheat(
        name="quarter_of_the_weights",
        fakes="Makes three honest steps of Adam in place after weights were written, and updates a "
        "quarter of them from then on.",
        mistake="lazy updates of rows that a batch has not touched",
        why="some of the numbers are compared with those of as many steps as were timed",
        bind=_quarter_of_the_weights,
        base=_InPlace,
        workload=workloads.adam,
        size=1_000,
        directions=("forward",),
    ),
    _random(
        name="turned_pool",
        fakes="Draws random numbers once, and returns them turned by some places in each call.",
        mistake="a pool of noise that was drawn ahead, timed as if it were a generator",
        why="the numbers of two calls must not be correlated, at any lag",
        bind=_turned_pool,
    ),
    _random(
        name="pools_by_turns",
        fakes="Draws five times as many random numbers once, and returns a fifth of them by turns, "
        "from another place on in each call.",
        mistake="a ring of buffers with noise, timed as if it were a generator",
        why="numbers in a row must not come again in later calls",
        bind=_pools_by_turns,
    ),
    Cheat(
        name="previous_result",
        fakes="Returns the result of the call before; the first call returns its own.",
        mistake="a pipeline of depth two whose last stage is never drained",
        why=_CHANGED,
        bind=_previous_result,
    ),
    Cheat(
        name="tenth_of_the_work",
        fakes="Computes all once, and from then on the part that the first tenth of the rows "
        "determines.",
        mistake="an incremental update that takes repeated work to be unchanged",
        why=_CHANGED,
        bind=_tenth_of_the_work,
    ),
    Cheat(
        name="none_from_second_call",
        fakes="Returns the result of the first call, and None from then on.",
        mistake="a generator that is used up, or a callback that is called once",
        caught_by=UnreadableResult,
        why="the results of later calls cannot be read",
        bind=_none_from_second_call,
    ),
    Cheat(
        name="one_buffer",
        fakes="Writes every result into the same array, which an earlier caller may still hold.",
        mistake="an output buffer that is reused, as static allocation does",
        caught_by=None,
        why="the work is done and its values are right; the allocation is saved, which frameworks "
        "that allocate statically (MXNet's `hybridize(static_alloc=True)`) save as well",
        bind=_one_buffer,
        directions=("forward",),
    ),
)
