"""Functions without a reference, held against themselves, and others' results of the same."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fwbench
from fwbench.cases.case import bind
from fwbench.cases.function import Kept, Returned, Shelf
from fwbench.errors import (
    DeclarationError,
    SkippedWork,
    UnfinishedWork,
    UnreadableResult,
    WrongResult,
)
from fwbench.frameworks.contract import Framework, HostFramework
from fwbench.processes.session import RESULTS_VARIABLE, SIDE_VARIABLE
from fwbench.records.facts import CaseFacts
from fwbench.testing import FakeFramework
from fwbench.workloads.function import Function
from support.fakes import Immutable, case_of, cell, fails, recorded


@dataclass
class Summary:
    mean: float
    rows: NDArray[Any]


def nested(x: Any) -> Any:
    return {"b": (x + 1, [Summary(float(x.mean()), x * 2)]), "a": None, "text": "as it was"}


def made(f: Callable[..., Any], **changes: Any) -> Function:
    given: dict[str, Any] = {
        "inputs": fwbench.Input("batch"),
        "sizes": (4,),
        "name": "made",
        "framework": "fake",
    }
    return fwbench.function(f, **{**given, **changes})


@pytest.mark.parametrize("framework", [FakeFramework, Immutable])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: 2 * x,
        nested,
        lambda x: x.sum(),
        lambda x: (x.T, 3),
        lambda x: int(1e6 * abs(x[0])) ** 9,  # of more than 64 bits
        lambda x: [Summary(number, x) for number in x.tolist() * 9],
    ],
)
def test_a_function_is_its_own_reference(f: Any, framework: type[FakeFramework]) -> None:
    facts = recorded(case_of(cell(made(f)), framework()))
    assert facts["verified_against"] == "its own plain call"
    assert facts["max_relative_error"] == 0.0
    assert facts["tolerance"] == pytest.approx(3e-6, rel=0.1)
    assert facts["inputs_digest"] > 0


class LazyDict(dict[str, Any]):
    """Values are computed when items are asked for."""

    def items(self) -> Any:
        return [(name, compute()) for name, compute in super().items()]


class LazyList(list[Any]):
    """Elements are computed when they are asked for, once."""

    def __iter__(self) -> Any:
        for place, element in enumerate(super().__iter__()):
            if callable(element):
                self[place] = element()
            yield self[place]


@pytest.mark.parametrize(
    "later",
    [
        lambda work: LazyDict(sum=lambda: float(work().sum())),
        lambda work: LazyDict(sum=work),
        lambda work: LazyList([work]),
    ],
)
def test_results_whose_parts_are_computed_when_they_are_read(later: Any) -> None:
    framework = FakeFramework()

    def lazy(x: Any) -> Any:
        def work() -> Any:
            framework.clock.spend(1.0)
            return 2 * x

        return later(work)

    fails(case_of(cell(made(lazy)), framework), UnfinishedWork, "before their work is done")


def test_texts_that_are_computed_when_they_are_shown() -> None:
    class Lazy(str):
        __slots__ = ("x",)

        def __repr__(self) -> str:
            return str(self.x)

    def shown(x: Any) -> Any:
        text = Lazy("sum")
        text.x = x
        return text

    fails(case_of(cell(made(shown))), WrongResult, "the same for other inputs")


def test_masks_are_a_part_of_results() -> None:
    """A number beneath one is none."""
    recorded(case_of(cell(made(lambda x: np.ma.masked_less(x, 0)))))
    beneath = made(lambda x: np.ma.array(x + next(_NUMBERS) * (x < 0), mask=x < 0))
    recorded(case_of(cell(beneath)))
    turned = made(lambda x: np.ma.array(x, mask=np.arange(4) == next(_NUMBERS) % 4))
    fails(case_of(cell(turned)), WrongResult, "two calls of made")


def test_a_data_frame_is_no_work_that_was_put_off() -> None:
    """Its columns are put into one array whenever it is read, and of a copy as well."""
    pandas = pytest.importorskip("pandas")
    framework: Any = FakeFramework()
    copied = HostFramework.copy_in_layout(framework, pandas.DataFrame({"x": np.ones(2)}))
    assert isinstance(copied, pandas.DataFrame)
    assert HostFramework.copy_in_layout(framework, np.ones(2)) is None


def test_a_dataclass_is_made_again_for_a_comparison() -> None:
    """Frozen, and with a field that its constructor does not take."""

    @dataclass(frozen=True)
    class Scaled:
        rows: Any
        unit: float = field(init=False, default=1.0)

    def compare(result: Scaled, expected: Scaled) -> bool:
        return result.unit == expected.unit and np.array_equal(result.rows, expected.rows)

    recorded(case_of(cell(made(lambda x: Scaled(2 * x), compare=compare))))


def test_a_function_without_inputs() -> None:
    recorded(case_of(cell(made(lambda: np.arange(3), inputs=(), sizes=None), size=1)))


_LATEST: dict[int, Any] = {}
_NUMBERS = itertools.count()


def _kept_by_address(x: Any) -> Any:
    """The result of the first call on an array, whatever it has since."""
    return _LATEST.setdefault(x.ctypes.data, (x, 2 * x))[1]


class _Awaited:
    """Its work is done when it is awaited."""

    def __await__(self) -> Any:
        yield


@pytest.mark.parametrize(
    ("f", "changes", "error", "said"),
    [
        (lambda x: None, {}, WrongResult, 'made returned None: .* changes="x"'),
        (lambda x: x + next(_NUMBERS), {}, WrongResult, "two calls of made .* random=True"),
        (
            lambda x: np.ones(3),
            {},
            WrongResult,
            "^made returned the same for other inputs; .* constant=True if it may",
        ),
        (lambda x: np.ones(3), {"random": True}, WrongResult, "constant=True if it may, or draw"),
        (_kept_by_address, {}, WrongResult, "results are kept from earlier calls"),
        (lambda x: x.__iadd__(1), {}, WrongResult, "the work changed input 0: .* changes="),
        (lambda x: [object()], {}, UnreadableResult, "return arrays, numbers and texts, or"),
        (lambda x: map(abs, x), {}, UnreadableResult, "iterate it within the function, as by `li"),
        (lambda x: _Awaited(), {}, UnreadableResult, "await it within the function"),
        (lambda x: [Fraction(1, 2)], {}, UnreadableResult, "return floats or whole numbers in pla"),
        (lambda x: Decimal(1), {}, UnreadableResult, "return floats or whole numbers in place of"),
        (abs, {"changes": 1}, DeclarationError, "change its argument 1, and has 1, from 0 on"),
        (
            abs,
            {"inputs": lambda size, rng: np.random.default_rng().random(size)},
            DeclarationError,
            "inputs= of made draws other numbers each time .* from the generator",
        ),
        (abs, {"compare": lambda a, b: False}, WrongResult, "compare= of made says.*: False"),
        (abs, {"compare": lambda a, b: "off"}, WrongResult, "says, beside the plain.*: off"),
        (abs, {"compare": lambda a, b: a[9]}, WrongResult, "says, beside the .*out of bounds"),
    ],
)
def test_what_is_found(f: Any, changes: dict[str, Any], error: Any, said: str) -> None:
    """Each is one sentence, and says how to declare what is intended."""
    fails(case_of(cell(made(f, **changes))), error, said)


@pytest.mark.parametrize(
    ("f", "changes"),
    [
        (lambda x: x + next(_NUMBERS), {"random": True}),
        (lambda x: next(_NUMBERS) // 3 % 2, {"random": True}),
        (lambda x: np.ones(3), {"constant": True}),
        (lambda x: x + 1e-3 * next(_NUMBERS), {"compare": lambda a, b: np.allclose(a, b, atol=9)}),
        (lambda x: x + next(_NUMBERS), {"compare": lambda a, b: a != b, "constant": True}),
        (lambda x: int(np.argmax(x)), {}),
        (lambda x: bool(x.sum() > -2.5), {}),  # of the first five, and of the nineteenth no more
    ],
)
def test_what_is_declared_is_no_mistake(f: Any, changes: dict[str, Any]) -> None:
    """Nor is a result that some inputs have in common."""
    recorded(case_of(cell(made(f, **changes))))


def test_random_results_have_one_form() -> None:
    function = made(lambda x: np.ones(3 + next(_NUMBERS)), random=True)
    fails(case_of(cell(function)), WrongResult, "has the shape")


def test_an_error_says_what_the_function_was_called_with() -> None:
    function = made(lambda x, y: x)
    with pytest.raises(TypeError) as caught:
        case_of(cell(function)).measure()
    (note,) = caught.value.__notes__
    assert note.startswith("made was called with float32[4] ")
    function = made(abs, inputs=lambda size: (np.ones(size),))
    with pytest.raises(TypeError) as caught:
        case_of(cell(function)).measure()
    (note,) = caught.value.__notes__
    assert note == "inputs= of made was called with 4 and a generator: correct it"


def test_a_cache_is_not_emptied_where_arguments_are_restored() -> None:
    assert "l2" in made(abs).toggles
    assert "l2" not in made(abs, changes=0).toggles


def test_arguments_that_are_changed_are_as_they_were_in_each_call() -> None:
    """A sort that is timed finds unsorted numbers, every time; what it leaves is verified."""
    seen: list[bool] = []

    def sort(x: Any) -> None:
        seen.append(bool(np.all(np.diff(x) >= 0)))
        x.sort()

    function = made(sort, changes=0, inputs=np.array([3.0, 1.0, 2.0]), sizes=None)
    case = case_of(cell(function, size=3, dtype="float64"), min_time=0.0)
    facts = recorded(case)
    assert facts["result_is_view"] is False
    timed = [*case.benchmark.stats.stats.data]
    assert sum(not was_sorted for was_sorted in seen) > len(timed)


def test_what_is_changed_and_what_is_returned_are_verified() -> None:
    function = made(lambda x: x.__imul__(next(_NUMBERS) + 2.0) is None, changes=0)
    fails(case_of(cell(function)), WrongResult, "two calls of made on the same inputs differ")


def test_an_execution_is_held_against_the_plain_call() -> None:
    class Compiling(FakeFramework):
        def forward(self, implementation: Any, inputs: Any, execution: str) -> Any:
            run = super().forward(implementation, inputs, execution)
            return run if execution == "eager" else lambda: 1.01 * run()

    assert recorded(case_of(cell(made(abs), execution="graph"), FakeFramework()))
    fails(
        case_of(cell(made(abs), execution="graph"), Compiling()),
        WrongResult,
        "plain call on new arrays .* if rounding explains it, declare terms=, tolerance=",
    )


# Others


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RESULTS_VARIABLE, str(tmp_path))


def _verified(function: Function, framework: str = "fake", **changes: Any) -> CaseFacts:
    loaded: Framework = FakeFramework()
    work = bind(cell(function, framework=framework, **changes), loaded)
    return work.verify(work.run())


@pytest.mark.usefixtures("folder")
def test_frameworks_are_held_against_each_other() -> None:
    """Lists and tuples are up to a framework, other numbers are not."""
    _verified(made(lambda x: (x, 2 * x)))
    _verified(made(lambda x: [x, 2 * x]), framework="other")
    with pytest.raises(WrongResult, match=r"do not compute the same: .* and the result of fake"):
        _verified(made(lambda x: (x, 2.001 * x)), framework="third")
    with pytest.raises(WrongResult, match=r"the result is array, and the result of fake \("):
        _verified(made(lambda x: 2 * x), framework="third")


def _sides(
    monkeypatch: pytest.MonkeyPatch, base: Function, contender: Function, **changes: Any
) -> CaseFacts:
    """Facts of the contender."""
    monkeypatch.setenv(SIDE_VARIABLE, "base")
    _verified(base, **changes)
    monkeypatch.setenv(SIDE_VARIABLE, "contender")
    return _verified(contender, **changes)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("large", [False, True])
def test_sides_whose_results_agree(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """Beyond four megabytes a sample of the numbers is compared, and their means."""
    size = {"size": 3_000_000 if large else 4}
    facts = _sides(monkeypatch, made(abs), made(lambda x: abs(x) * (1 + 1e-6)), **size)
    assert facts.side_error == pytest.approx(1e-6, rel=0.3)
    assert facts.different_results is None
    assert _sides(monkeypatch, made(abs), made(abs), **size).side_error == 0.0


def _spoiled(x: Any) -> Any:
    """Another number everywhere but where a sample is taken."""
    result = abs(x)
    kept = result[np.linspace(0, x.size - 1, 2**20).astype(int)]
    result += 0.01
    result[np.linspace(0, x.size - 1, 2**20).astype(int)] = kept
    return result


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("contender", "size", "said"),
    [
        (lambda x: 1.001 * abs(x), 4, "in the contender: largest relative error 0.001 .* base's"),
        (lambda x: (abs(x),), 4, r"result is \(float32\[4\]\), and the base's result float32\[4\]"),
        (lambda x: abs(x).astype("float64"), 4, "result is float64.* base's result float32"),
        (lambda x: abs(x)[:3], 4, r"float32\[3\], and the base's result float32\[4\]"),
        (_spoiled, 3_000_000, "mean and root mean square of array 0 of the result are"),
    ],
)
def test_sides_whose_results_differ(
    monkeypatch: pytest.MonkeyPatch, contender: Any, size: int, said: str
) -> None:
    """The case goes on: the comparison has a verdict for it."""
    facts = _sides(monkeypatch, made(abs), made(contender), size=size)
    assert facts.different_results is not None
    assert re.search(said, facts.different_results), facts.different_results
    assert facts.side_error is None


@pytest.mark.usefixtures("folder")
def test_columns_of_data_frames_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renamed one is another result, except to a framework that knows no names."""
    pandas = pytest.importorskip("pandas")

    def framed(*names: str) -> Function:
        return made(lambda x: [pandas.DataFrame(dict.fromkeys(names, x)), pandas.Series(x)])

    def named(name: str) -> Function:
        return made(lambda x: pandas.Series(x, name=name))

    assert _sides(monkeypatch, framed("a", "b"), framed("a", "b")).different_results is None
    told = _sides(monkeypatch, framed("a", "b"), framed("a", "c")).different_results
    assert told is not None
    assert "is [['a', 'c'] of float32[4, 2], float32[4]], and the base's result [['a', 'b']" in told
    assert _sides(monkeypatch, named("a"), named("b")).different_results is not None
    monkeypatch.delenv(SIDE_VARIABLE)
    _verified(framed("a", "b"))
    _verified(made(lambda x: [np.stack([x, x], 1), x]), framework="other")


@pytest.mark.usefixtures("folder")
def test_the_stricter_tolerance_of_both_sides_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    contender = made(lambda x: 1.001 * abs(x), tolerance=1e6)
    assert _sides(monkeypatch, made(abs), contender).different_results is not None


@pytest.mark.usefixtures("folder")
def test_sides_are_compared_as_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever dtypes and tolerances: it gets the result as it was returned."""

    def compare(result: Any, expected: Any) -> Any:
        assert [*result] == [*expected] == ["x"]
        return bool(np.allclose(result["x"], expected["x"], rtol=0.1)) or "too far"

    near, far = (made(lambda x, k=k: {"x": x * k}, compare=compare) for k in (1.01, 2.0))
    base = made(lambda x: {"x": x}, compare=compare)
    assert _sides(monkeypatch, base, near).side_error == 0.0
    told = _sides(monkeypatch, base, far).different_results
    assert told == "in the contender: compare= of made says, beside the base's result: too far"


@pytest.mark.usefixtures("folder")
def test_results_of_other_inputs_or_of_chance_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = made(abs, inputs=lambda size, rng: rng.random(size))
    facts = _sides(monkeypatch, made(abs), other)
    assert (facts.side_error, facts.different_results) == (None, None)
    chance = made(lambda x: x + next(_NUMBERS), random=True)
    facts = _sides(monkeypatch, chance, chance, size=8)
    assert (facts.side_error, facts.different_results) == (None, None)


@pytest.mark.usefixtures("folder")
def test_a_side_finds_its_case_in_another_environment() -> None:
    """And no other case: not of another execution, toggle or framework."""
    kept = Kept.of(Returned("x", [np.ones(2)], None), 1, 0.1, whole=False)
    for name in ("fake@new", "faker"):
        kept.write(Shelf(cell(made(abs), framework=name), side="base").file)
    shelf = Shelf(cell(made(abs)), side="contender")
    found = shelf.other_side()
    assert found is not None
    assert found[1].name.startswith("fake@new+")
    assert Shelf(cell(made(abs), execution="graph"), side="contender").other_side() is None
    assert Shelf(cell(made(abs)), side="").other_side() is None
    assert [
        name for name, _ in Shelf(cell(made(abs)), side="base").other_frameworks(["faker"])
    ] == ["faker", "fake@new"]


@pytest.mark.parametrize("inputs", [fwbench.Input("batch"), np.arange(40), np.arange(40.0)])
@pytest.mark.parametrize("changes", [(), 0])
def test_results_that_are_kept_by_what_inputs_are(inputs: Any, changes: Any) -> None:
    """Right ones, of numbers with fractions or whole ones, also where these are overwritten."""
    framework, known = FakeFramework(work_s=2.0**-20, dispatch_s=2.0**-20), dict[bytes, Any]()

    def f(x: Any) -> Any:
        if (key := x.tobytes()) not in known:
            framework.clock.spend(2.0**-6)
            known[key] = 2 * x
        if changes == ():
            return known[key]
        x[:] = known[key]
        return None

    sizes = (4,) if isinstance(inputs, fwbench.Input) else None
    size = 4 if sizes else inputs.size
    function = made(f, inputs=inputs, sizes=sizes, changes=changes)
    fails(case_of(cell(function, size=size), framework), SkippedWork, "at least on new data")


def test_a_function_may_have_branches_that_are_learned() -> None:
    """Calls take turns on sets of inputs then, unless these are overwritten."""
    facts = recorded(case_of(cell(made(np.sort), size=4_000), Immutable()))
    assert facts["operand_sets"] == 51
    in_place = made(lambda x: x.sort(), changes=0)
    assert recorded(case_of(cell(in_place, size=4_000)))["operand_sets"] == 1
