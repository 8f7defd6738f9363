"""Random results: their moments are verified, and that no call repeats the numbers of another."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.case import Case, bind
from fwbench.cases.random import check_moments, check_new, check_range, check_unrelated
from fwbench.errors import DeclarationError, WrongResult
from fwbench.testing import FakeFramework
from fwbench.workloads.operation import Moments, Operation, discrete
from support.fakes import case_of, cell, fails, recorded

SIZE = 4_000

UNIFORM = Moments(1 / 2, 1 / 12, 9 / 5, 0.0, 1.0)


def drawing(draw: Callable[..., Any], moments: Moments = UNIFORM, **changes: Any) -> Operation:
    """An operation that the fake framework computes with ``draw(generator, operand)``."""
    generator = np.random.default_rng(7)
    facts: dict[str, Any] = {
        "name": "draw",
        "inputs": lambda size, rng: (np.ones(1),),
        "reference": lambda x, n: np.zeros(n),
        "sizes": (SIZE,),
        "differentiable": False,
        "moments": lambda size, *_: moments,
        "parameters": lambda size: (size,),
        "implementations": {"fake": lambda np, *_: lambda x: draw(generator, x)},
    }
    return Operation(**{**facts, **changes})


def made(operation: Operation, dtype: str = "float32") -> Case:
    return case_of(cell(operation, size=SIZE, dtype=dtype))


def uniform(generator: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
    return generator.random(SIZE).astype(like.dtype)


def test_a_pool_is_refused() -> None:
    """Numbers are drawn once, and turned by some places in each call."""
    rng = np.random.default_rng(3)
    pool = rng.random(SIZE)

    def draw(_: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
        return np.roll(pool, rng.integers(1, SIZE)).astype(like.dtype)

    fails(made(drawing(draw)), WrongResult, "of two calls have a correlation of")


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_honest_numbers_are_unrelated(size: int) -> None:
    """Exponential ones, too, and those that are one of two."""
    rng = np.random.default_rng(3)
    for _ in range(200_000 // size):
        check_unrelated(*rng.standard_normal((2, size)))
        check_unrelated(*(rng.standard_exponential((2, size)) - 1.0))
        check_unrelated(*(np.where(rng.random(size) < 0.05, 4.36, -0.23) for _ in range(2)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_honest_numbers_are_measured(dtype: str) -> None:
    """They are timed; the record claims no error, for there is no right result."""
    facts = recorded(made(drawing(uniform), dtype))
    assert facts["completion_s"] > 0
    assert "max_relative_error" not in facts


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rng, like: rng.random(SIZE, "f4") * 0.9, "mean"),
        (lambda rng, like: np.float32(0.25) + 0.5 * rng.random(SIZE, "f4"), "variance"),
        (lambda rng, like: rng.random(SIZE, "f4") * 2 - np.float32(0.5), "are between"),
        (lambda rng, like: np.linspace(0, rng.uniform(0.99, 1), SIZE, dtype="f4"), "correlation"),
        (lambda rng, like: np.repeat(rng.random(SIZE // 2, "f4"), 2), "correlation"),
        (lambda rng, like: rng.random(SIZE), "float64, and the case is in float32"),
        (lambda rng, like: rng.random(SIZE // 2, "f4"), "shape"),
        (lambda rng, like: (rng.random(SIZE, "f4"),) * 2, "2 results"),
        (lambda rng, like: np.full(SIZE, np.nan, "f4"), "infinities or NaNs"),
    ],
    ids=["mean", "variance", "range", "ramp", "pairs", "dtype", "shape", "two", "nan"],
)
def test_other_numbers_are_wrong(draw: Callable[..., Any], message: str) -> None:
    fails(made(drawing(draw)), WrongResult, message)


def paired(numbers: NDArray[Any]) -> NDArray[Any]:
    """Numbers of which every fourth one is the one before."""
    numbers[1::4] = numbers[::4]
    return numbers


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rng: 0.95 * rng.random(10_000), "mean"),
        (lambda rng: 0.125 + 0.75 * rng.random(10_000), "variance"),
        (lambda rng: np.r_[rng.random(5_000), np.linspace(0, 1, 5_000)], "correlation"),
        (lambda rng: paired(rng.random(10_000)), "correlation"),
    ],
    ids=["mean", "variance", "ramp", "pairs"],
)
def test_numbers_half_as_wrong_are_wrong(
    draw: Callable[[np.random.Generator], NDArray[Any]], message: str
) -> None:
    """Half as far off, a ramp or pairs in half of the numbers: 10,000 show it."""
    with pytest.raises(WrongResult, match=message):
        check_moments(draw(np.random.default_rng(7)), UNIFORM, 0.0)


@pytest.mark.parametrize(("seed", "place"), [(64_681, 0), (351_562, 1)], ids=["variance", "pairs"])
def test_skewed_numbers_may_be_far_off_by_chance(seed: int, place: int) -> None:
    drawn = np.random.default_rng(seed).standard_exponential(1_000)
    x = drawn - 1
    off = [(np.var(x) - 1) / np.sqrt(8), np.mean(x[1:] * x[:-1])]
    assert off[place] > 5.5 / np.sqrt(1_000), "NumPy's generator draws other numbers than it did"
    check_moments(drawn, Moments(1.0, 1.0, 9.0, 0.0), 0.0)


def test_the_same_numbers_in_every_call_are_wrong() -> None:
    """A key that stands for itself, or a constant that a compiler has folded."""
    fails(
        made(drawing(lambda rng, like: np.random.default_rng(0).random(SIZE, "f4"))),
        WrongResult,
        "those of the first call",
    )


def _by_turns(
    pools: int, changed: Callable[[NDArray[Any]], NDArray[Any]]
) -> Callable[[np.random.Generator, NDArray[Any]], NDArray[Any]]:
    """Numbers of as many pools, by turns, each changed in some way whenever it is used."""
    kept: list[NDArray[Any]] = []
    calls = itertools.count()

    def draw(rng: np.random.Generator, _: NDArray[Any]) -> NDArray[Any]:
        if len(kept) < pools:
            kept.append(rng.random(SIZE, "f4"))
        return changed(kept[next(calls) % pools])

    return draw


@pytest.mark.parametrize("pools", [2, 3, 5, 8])
@pytest.mark.parametrize("turned", [False, True])
def test_numbers_of_pools_are_wrong(pools: int, *, turned: bool) -> None:
    """Also of some that are used by turns, from another place on or in reverse order."""
    rng = np.random.default_rng()
    change = (lambda x: np.roll(x, rng.integers(x.size))) if turned else (lambda x: x[::-1].copy())
    fails(made(drawing(_by_turns(pools, change))), WrongResult, "draw new ones in each")


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "u1", "?"])
@pytest.mark.parametrize("levels", [2, 1_000_000])
def test_numbers_that_are_new_are_right(dtype: str, levels: int) -> None:
    """However few different ones there are: rows of these come again by chance."""
    rng = np.random.default_rng(3)
    draws = [(rng.integers(levels, size=300_000) / levels).astype(dtype) for _ in range(9)]
    check_new(draws[0], draws[1:])


def test_numbers_that_repeat_once_inputs_are_restored_are_wrong() -> None:
    """New numbers in timed calls do not excuse those that depend on the inputs alone later."""
    kept: list[NDArray[Any]] = []

    def draw(rng: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
        kept.append(rng.random(SIZE, "f4"))
        return kept[-1] if like[0] == 1.0 and not changed else kept[0]

    changed: list[bool] = []
    framework = FakeFramework()
    work = bind(cell(drawing(draw), size=SIZE), framework)
    work.verify(work.run())
    last = work.run()
    changed.append(True)
    with pytest.raises(WrongResult, match="after one on others"):
        work.verify_again(last)


def test_a_changed_operand_is_noticed() -> None:
    """Dropout of another array has other elements; the one that was placed first is not enough."""
    first: list[NDArray[Any]] = []

    def dropped(rng: np.random.Generator, x: NDArray[Any], *, stale: bool) -> NDArray[Any]:
        first.append(x.copy())
        return np.where(rng.random(SIZE) < 0.5, 2 * (first[0] if stale else x), 0).astype("f4")

    moments = discrete((0.0, 2.0), (0.5, 0.5), drawn=lambda y, x: y / x)
    facts: dict[str, Any] = {
        "inputs": lambda size, rng: (rng.uniform(1, 2, size),),
        "reference": lambda x: x,
        "parameters": lambda size: (),
    }
    made(drawing(lambda rng, x: dropped(rng, x, stale=False), moments, **facts)).measure()
    first.clear()
    fails(
        made(drawing(lambda rng, x: dropped(rng, x, stale=True), moments, **facts)),
        WrongResult,
        "no such number",
    )


def test_a_permutation_has_every_number_once() -> None:
    """Moments alone would let numbers through that are drawn with replacement."""
    rng = np.random.default_rng(3)
    moments = discrete(range(SIZE), [1 / SIZE] * SIZE, distinct=True)
    check_range(rng.permutation(SIZE).astype(float), moments, 0.0)
    with pytest.raises(WrongResult, match="occurs twice"):
        check_range(rng.integers(SIZE, size=SIZE).astype(float), moments, 0.0)
    with pytest.raises(WrongResult, match="correlation"):
        check_moments(np.arange(SIZE, dtype=float), moments, 0.0)


def test_coarse_numbers_may_be_off_by_their_grain() -> None:
    """Eight bits of bfloat16, rounded down, have a mean that float32's must not have."""
    coarse = np.floor(np.random.default_rng(5).random(10_000_000) * 256) / 256
    check_moments(coarse, UNIFORM, 2.0**-7)
    with pytest.raises(WrongResult, match="mean"):
        check_moments(coarse, UNIFORM, 2.0**-23)


def test_moments_of_a_few_values() -> None:
    die = discrete(range(1, 7), [1 / 6] * 6)
    assert (die.mean, die.variance) == pytest.approx((3.5, 35 / 12))
    assert die.kurtosis == pytest.approx(303 / 175)
    assert die.values == (1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("facts", [{"moments": lambda n: UNIFORM}, {"updates": (0,)}])
def test_a_gradient_that_cannot_be_verified_is_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="differentiable=False"):
        Operation("odd", lambda size, rng: (), np.asarray, (8,), **facts)
