"""Liars that remember: what they computed once is given out again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DeclarationError, FwbenchError, SkippedWork, UnreadableResult
from fwbench.frameworks.contract import BoundCall
from fwbench_extras.cheats.honest import Compute, differentiable
from fwbench_extras.cheats.liar import Liar, each, leaves

_CHANGED = "the call on changed inputs has the result of the old ones"

_LONGER = "a call on changed inputs takes many times as long as those that were timed"

#: Calls after which work counts as repeated.
_REPEATED = 8


class CachedOutput(Liar):
    """Computes once, and returns that result from then on."""

    mistake = "a memoised layer, or a loop whose work was hoisted out of it"
    why = _CHANGED

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that returns the result of the first one."""
        return cache(lambda: compute(*inputs))


class CachedByIdentity(Liar):
    """Keeps the result of every set of input objects, whatever their contents are by now."""

    mistake = "a cache keyed by `id` or by address, which does not see a change in place"
    why = _CHANGED

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The result that belongs to these objects."""
        kept: dict[tuple[int, ...], Any] = {}

        def run() -> Any:
            key = tuple(map(id, inputs))
            if key not in kept:
                kept[key] = compute(*inputs)
            return kept[key]

        return run


def _product(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return np.einsum("ij,jk->ik", x, y)


class _Slow(Liar):
    """Multiplies in one thread and without a BLAS: that takes milliseconds on any machine."""

    operations: ClassVar = {
        "gemm": differentiable(_product, lambda g, x, y: [_product(g, y.T), _product(x.T, g)])
    }
    size = 512


class CachedByContent(_Slow):
    """Keeps the result of the last inputs, and looks whether some of their numbers are new."""

    mistake = "a cache that is right, measured as if it were the work"
    caught_by = SkippedWork
    why = _LONGER

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The kept result while the inputs look the same."""
        kept: list[Any] = []
        seen: list[Any] = []

        def run() -> Any:
            now = [x[::50, ::50] for x in inputs]
            if not kept or not all(map(np.array_equal, seen, now)):
                seen[:] = map(np.array, now)
                kept[:] = [compute(*inputs)]
            return kept[0]

        return run


class FoldedWhenBound(Liar):
    """Computes while it is bound, and copies that result in every call."""

    mistake = "inputs closed over by a compiled function: the compiler folds constants"
    why = _CHANGED

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A new array with the old result, so that no two calls return the same object."""
        folded = compute(*inputs)
        return lambda: each(np.array, folded)


class _Immutable(Liar):
    """A framework whose arrays cannot be written, like TensorFlow's and JAX's."""

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """Arrays that are read-only."""
        create = super().creator(device, dtype)

        def frozen(source: Any) -> Any:
            array = create(source)
            array.setflags(write=False)
            return array

        return frozen


class FoldedArguments(_Immutable):
    """Takes immutable inputs as arguments, and computes with those that it was compiled for."""

    mistake = "a trace that kept values where it should have kept arguments"
    why = "the same function called with other inputs has the result of the old ones"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A function of arguments that it does not look at."""
        folded = compute(*inputs)
        return partial(lambda *_: each(np.array, folded), *inputs)


class HiddenArguments(_Immutable):
    """Closes over immutable inputs, so that nobody can call the same function with others."""

    mistake = "`lambda: f(x)` around a compiled function, which may have folded `x`"
    caught_by = DeclarationError
    why = "a bound call whose inputs can be neither written nor replaced cannot be verified"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The work, without its arguments."""
        return lambda: compute(*inputs)


class CachedByObject(_Immutable, _Slow):
    """Keeps the result of every set of immutable inputs."""

    mistake = "common subexpressions that are eliminated from one call to the next"
    caught_by: ClassVar[type[FwbenchError] | None] = SkippedWork
    why = _LONGER

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The result that belongs to these objects."""
        kept: list[Any] = []

        def remembered(*arguments: Any) -> Any:
            if not kept or any(a is not b for a, b in zip(kept[0], arguments, strict=True)):
                kept[:] = [arguments, compute(*arguments)]
            return kept[1]

        return partial(remembered, *inputs)


class SmallCachedByObject(CachedByObject):
    """The same where the work takes less than a millisecond."""

    mistake = CachedByObject.mistake
    caught_by = None
    why = (
        "every result is right, and so short a call may take longer on changed inputs for honest "
        "reasons: cold memory, threads that sleep; ask for larger sizes as well"
    )
    size = 32


class RepetitionDetector(Liar):
    """Works for the first calls, and returns the last result once calls repeat."""

    mistake = "a runtime that recognises benchmarks, as graphics drivers and compilers have"
    why = _CHANGED

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that computes eight times, and then returns the last result again."""
        calls = count()
        kept: list[Any] = []

        def run() -> Any:
            if next(calls) < _REPEATED:
                kept[:] = [compute(*inputs)]
            return kept[0]

        return run


class EverySecondCall(Liar):
    """Skips every second call, and returns the result of the one before."""

    mistake = "a buffer that is flipped too late, or a rate limit"
    why = _CHANGED + ", in one of two calls in a row"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """Honest in calls of even number, from 0."""
        calls = count()
        kept: list[Any] = []

        def run() -> Any:
            if next(calls) % 2 == 0:
                kept[:] = [compute(*inputs)]
            return kept[0]

        return run


class PreviousResult(Liar):
    """Returns the result of the call before; the first call returns its own."""

    mistake = "a pipeline of depth two whose last stage nobody drains"
    why = _CHANGED

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that returns the result of the one before it."""
        kept: list[Any] = []

        def run() -> Any:
            kept.append(compute(*inputs))
            return kept.pop(0) if len(kept) > 1 else kept[0]

        return run


class TenthOfTheWork(Liar):
    """Computes all once, and from then on what depends on the first tenth of the rows."""

    mistake = "an incremental update that takes what it is asked for again to be unchanged"
    why = _CHANGED

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The old result with a few new rows."""
        rows = max(1, len(inputs[0]) // 10)
        kept: list[Any] = []

        def run() -> Any:
            if not kept:
                kept.append(compute(*inputs))
            first, *between, last = inputs
            if isinstance(kept[0], tuple):  # with gradients: the last input is the cotangent
                last = last[:rows]
            new = compute(first[:rows], *between, last)
            for old_part, new_part in zip(leaves(kept[0]), leaves(new), strict=True):
                if len(new_part) == rows:
                    old_part[:rows] = new_part
            return kept[0]

        return run


class NoneFromSecondCall(Liar):
    """Returns the result of the first call, and None from then on."""

    mistake = "a generator that is used up, or a callback that is called once"
    caught_by = UnreadableResult
    why = "what later calls return cannot be read"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """A call that returns one result, and then nothing."""
        results = iter([compute(*inputs)])
        return lambda: next(results, None)


class OneBuffer(Liar):
    """Writes every result into the same array, which an earlier caller may still hold."""

    mistake = "an output buffer that is reused, as static allocation does"
    caught_by = None
    why = (
        "the work is done and its values are right; what is saved is the allocation, which "
        "frameworks that allocate statically (MXNet's `hybridize(static_alloc=True)`) save as well"
    )
    directions: ClassVar = ("forward",)

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The same array, filled again."""
        buffer = np.array(compute(*inputs))

        def run() -> Any:
            buffer[...] = compute(*inputs)
            return buffer

        return run


LIARS = (
    CachedOutput,
    CachedByIdentity,
    CachedByContent,
    FoldedWhenBound,
    FoldedArguments,
    HiddenArguments,
    CachedByObject,
    SmallCachedByObject,
    RepetitionDetector,
    EverySecondCall,
    PreviousResult,
    TenthOfTheWork,
    NoneFromSecondCall,
    OneBuffer,
)
