"""Timed work is verified: frameworks that are right once, and then cheat, get no number.

Most cheats are in :mod:`fwbench_extras.cheats`, and tried by extras/tests/cheats.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.cases.case import Case
from fwbench.cases.work import OperationWork
from fwbench.errors import (
    DeclarationError,
    FwbenchError,
    NotACopy,
    NotOnDevice,
    TooLargeToVerify,
    UnreadableResult,
    VerificationError,
    WrongGradient,
    WrongResult,
)
from fwbench.options.options import Selection
from fwbench.records.entry import identity
from fwbench.records.facts import CaseFacts
from fwbench.report import ranking
from fwbench.testing import FakeFramework
from fwbench.workloads import from_list, from_numpy, grid
from fwbench.workloads.gaps import value_gap
from fwbench.workloads.operation import Operation
from fwbench_extras.cheats.cheat import map_arrays
from support.fakes import Immutable, case_of, cell, fails, operation, recorded, square, variant
from support.grids import RICH
from support.tables import tabled

#: Makes a call of an honest one.
Cheat = Callable[[Callable[[], Any]], Callable[[], Any]]

both_directions = pytest.mark.parametrize("direction", ["forward", "backward"])


def _by(cheat: Cheat) -> FakeFramework:
    """A framework whose bound calls are what ``cheat`` makes of the honest ones."""

    class Cheating(FakeFramework):
        def forward(self, *arguments: Any) -> Any:
            return self.slow(cheat(super().forward(*arguments)))

        def backward(self, *arguments: Any) -> Any:
            return self.slow(cheat(super().backward(*arguments)))

        def slow(self, run: Callable[[], Any]) -> Callable[[], Any]:
            """Calls that take no time are repeated forever."""
            return lambda: (self.clock.spend(self.dispatch_s), run())[1]

    return Cheating()


@both_directions
def test_less_work_once_it_was_verified(direction: str) -> None:
    """The result of the last timed call is verified as the first was: here a tenth of it is."""

    def tenth(array: NDArray[Any]) -> NDArray[Any]:
        return np.where(np.arange(array.size) < array.size / 10, array, 0.0)

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        honest = iter(range(2))
        return lambda: run() if next(honest, None) is not None else map_arrays(tenth, run())

    message = (
        "^the result of the last timed call is wrong though the first was right: the result is"
    )
    fails(square(direction, _by(cheat)), WrongResult, message)


@both_directions
@pytest.mark.parametrize("before", [0, 1])
def test_work_that_is_done_every_second_time(direction: str, before: int) -> None:
    """Each call has inputs of its own."""

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        results: list[Any] = []

        def call() -> Any:
            results.append(run() if len(results) % 2 == 0 else results[-1])
            return results[-1]

        for _ in range(before):
            call()
        return call

    message = "^a call on .* inputs.* is wrong though the first call was right"
    fails(square(direction, _by(cheat)), FwbenchError, message)


def linear(framework: FakeFramework) -> Case:
    return case_of(cell(direction="backward"), framework)


@pytest.mark.parametrize("make", [partial(square, "backward"), linear], ids=["square", "linear"])
@pytest.mark.parametrize(
    ("part", "error"), [("result", WrongResult), ("gradients", WrongGradient)], ids=str
)
def test_half_of_it_is_cached(make: Any, part: str, error: type[VerificationError]) -> None:
    """Gradients of linear work depend on the cotangent alone, which changes with the inputs."""

    def cheat(run: Callable[[], Any]) -> Callable[[], Any]:
        result, gradients = run()
        return lambda: (result, run()[1]) if part == "result" else (run()[0], gradients)

    message = (
        "^a call on changed inputs is wrong though the first call was right, so results are kept"
    )
    fails(make(_by(cheat)), error, message)


@both_directions
def test_honest_work_passes(direction: str) -> None:
    """On arrays that can be written; and the record has the largest error of all calls."""
    facts = recorded(square(direction))
    assert facts["max_relative_error"] <= facts["tolerance"]
    assert facts["precision_bits"] == 23
    assert facts["changed_seed"] == OperationWork.changed_seed


def branching(value: Any = np.square, **changes: Any) -> Operation:
    """An operation whose branches a processor would learn; it squares four numbers."""
    return operation(value, reference=np.square, **{"branching": True, **changes})


@pytest.mark.parametrize(
    ("workload", "framework", "changes", "sets"),
    [
        (branching(), Immutable, {}, 256),
        (branching(sizes=(60_000,)), Immutable, {"size": 60_000}, 4),
        (branching(sizes=(400_001,)), Immutable, {"size": 400_001}, 1),
        (branching(), Immutable, {"device": "gpu:0"}, 1),
        (branching(), Immutable, {"toggles": (("inputs", "zeros"),)}, 1),
        (branching(branching=False), Immutable, {}, 1),
        (branching(), FakeFramework, {}, 1),
    ],
    ids=[
        *("few numbers", "many", "more than are learned", "a GPU learns nothing", "zeros"),
        *("no branches", "the call can be given no others"),
    ],
)
def test_calls_take_turns_on_sets_of_operands(
    workload: Operation, framework: type[FakeFramework], changes: dict[str, Any], sets: int
) -> None:
    """So that a processor cannot learn the branches of one set."""
    assert recorded(case_of(cell(workload, **changes), framework()))["operand_sets"] == sets


def test_no_set_comes_again_before_all_others() -> None:
    """Neither while it is timed, nor while it is warmed up."""
    seen: list[float] = []

    def value(x: NDArray[Any]) -> Any:
        seen.append(float(x[0]))
        return np.square(x)

    case_of(cell(branching(value)), Immutable(), max_time=60.0).measure()
    first = seen[0]
    starts = [position for position, number in enumerate(seen) if number == first]
    start, end = max(pairwise(starts), key=lambda places: places[1] - places[0])
    assert end - start == len({*seen[start:end]}) == 256


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("all but the first", "the result of the last timed call"), ("the sixth", "a call on one of")],
)
def test_results_of_other_sets_are_verified(
    wrong: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that was timed last, and one that is chosen afterwards."""
    monkeypatch.setattr("fwbench.cases.work.secrets.choice", lambda sets: sets[5])
    known: list[bytes] = []

    def value(x: NDArray[Any]) -> Any:
        if x.tobytes() not in known:
            known.append(x.tobytes())
        number = known.index(x.tobytes())
        is_wrong = number == 5 if wrong == "the sixth" else 0 < number < 256
        return np.square(x) + is_wrong

    fails(case_of(cell(branching(value)), Immutable()), WrongResult, f"^{message}.* is wrong")


@pytest.mark.parametrize(("direction", "new"), [("forward", "x"), ("backward", "xg")])
def test_data_are_new_in_every_turn_and_weights_stay(direction: str, new: str) -> None:
    """A framework may lay weights out once: they change where results are verified, and back."""
    written: list[int] = []

    class Writes(FakeFramework):
        def write(self, array: Any, source: Any) -> bool:
            written.append(array.size)
            return super().write(array, source)

    sizes = {"x": 6, "w": 3, "g": 2}
    product = operation(
        lambda x, w: x.reshape(2, 3) @ w,
        lambda g, x, w: [np.outer(g, w).ravel(), g @ x.reshape(2, 3)],
        inputs=lambda size, rng: (rng.standard_normal(6), rng.standard_normal(3)),
        reference=lambda x, w: x.reshape(2, 3) @ w,
        terms=lambda _: 3,
    )
    framework = Writes(work_s=2.0**-14, dispatch_s=2.0**-14)  # two turns
    recorded(case_of(cell(product, direction=direction), framework))
    counts = {name: written.count(size) for name, size in sizes.items()}
    assert counts["w"] == 2
    assert all(counts[name] >= 4 for name in new)


def test_arrays_that_are_closed_over() -> None:
    """A call that cannot be given others is refused, and the message says what to return."""
    closed = variant(write=lambda *_: False)()
    fails(square("forward", closed), DeclarationError, "return functools.partial")


def test_arrays_that_are_not_written() -> None:
    faulty = variant(write=lambda *_: True)()
    fails(square("forward", faulty), WrongResult, "fake's write returned True, and did not")


def _creating(change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> FakeFramework:
    create = FakeFramework.creator
    return variant(creator=lambda *arguments: change(create(*arguments)))()


@pytest.mark.parametrize(
    "workload", [from_numpy, from_list], ids=lambda workload: str(workload.name)
)
def test_a_creation_that_is_kept(workload: Any) -> None:
    """The source changes, and the array that is made of it must be another one."""
    made: dict[int, Any] = {}
    keeps = _creating(lambda create: lambda source: made.setdefault(id(source), create(source)))
    fails(case_of(cell(workload), keeps), WrongResult, "^a call on changed inputs is wrong")


def test_a_creation_that_copies_twice() -> None:
    def twice(create: Callable[..., Any]) -> Callable[..., Any]:
        copies = iter([True, True])
        return lambda source: (create(source), np.asarray(source))[not next(copies, False)]

    message = "^the result of the last timed call is wrong though the first was right: the created"
    fails(case_of(cell(from_numpy), _creating(twice)), NotACopy, message)


def test_a_result_that_is_freed() -> None:
    """An error while it is read fails the case, with the framework's own words."""

    class Freed(FakeFramework):
        def to_numpy(self, array: Any) -> Any:
            if array.flags.writeable is False:
                raise RuntimeError("array has been deleted\nat 0x1234")
            return super().to_numpy(array)

        def _rounded(self, result: Any) -> Any:
            result.flags.writeable = False
            return result

    message = (
        r"the result \(ndarray\) cannot be read back: fake raised RuntimeError: array has been"
    )
    fails(square("forward", Freed()), UnreadableResult, message)


def test_a_result_that_is_gone_when_it_is_waited_for() -> None:
    gone = variant(read_element=lambda self, array: None.shape)()  # type: ignore[attr-defined]
    message = "cannot be read back: fake raised AttributeError: 'NoneType' object has no attribute"
    fails(square("forward", gone), UnreadableResult, message)


@pytest.mark.parametrize(
    ("value", "reference", "right"),
    [
        (lambda x: x + 1j * x, lambda x: x + 1j * x, True),
        (lambda x: x, lambda x: x + 1j * x, False),
        (lambda x: x + 1j * x, lambda x: x, False),
        (np.argsort, np.argsort, True),
        (lambda x: np.argsort(x) + (x == x.max()), np.argsort, False),
        (lambda x: np.full(4, 2**60), lambda x: np.full(4, 2**60 + 1), False),
        (lambda x: x > 0, lambda x: x > 0, True),
        (lambda x: x > 0, lambda x: x <= 0, False),
    ],
    ids=["complex", "real", "not real", "integer", "another", "large", "boolean", "opposite"],
)
def test_numbers_of_every_kind_are_compared(value: Any, reference: Any, right: bool) -> None:
    """Complex ones in both parts; integers and booleans must be equal, however large."""
    case = case_of(cell(operation(value, reference=reference)))
    if right:
        assert recorded(case)["max_relative_error"] < 1e-6
    else:
        fails(case, WrongResult, "the result is wrong")


def test_a_case_too_large_to_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the sizes; nothing is timed."""
    memory = type("Memory", (), {"available": 100})
    monkeypatch.setattr("fwbench.cases.inputs.psutil.virtual_memory", lambda: memory)
    message = "to verify 4 elements of results against 4 of inputs takes 0.00 GiB of memory, and"
    fails(square("forward", FakeFramework()), TooLargeToVerify, message)


def zeros(
    workload: Operation | None = None, framework: FakeFramework | None = None, **more: Any
) -> Case:
    """A case that is timed on zeros."""
    return case_of(cell(workload, toggles=(("inputs", "zeros"),), **more), framework)


@pytest.mark.parametrize("framework", [FakeFramework, Immutable])
def test_all_that_is_timed_are_zeros(framework: type[FakeFramework]) -> None:
    """The first call is verified on ordinary numbers, and so are two after the rounds."""
    seen: list[bool] = []

    def value(x: NDArray[Any]) -> Any:
        seen.append(not np.any(x))
        return 2.0 * x

    case = zeros(operation(value), framework())
    facts = recorded(case)
    first, *others = seen
    timed = [*takewhile(bool, others)]
    assert (first, others[-1]) == (False, False)
    rounds = len(case.benchmark.stats.stats.data)
    assert len(timed) >= facts["warmup_calls"] + rounds > 10
    assert len(others) - len(timed) >= 2
    assert facts["toggles"]["inputs"] == facts["inputs"] == "zeros"
    assert facts["max_relative_error"] <= facts["tolerance"]


def test_cotangents_are_zeros_too() -> None:
    """A gradient of ordinary numbers would move them through the same kernels."""
    seen = []

    def gradient(g: NDArray[Any], x: NDArray[Any]) -> list[NDArray[Any]]:
        seen.append((np.any(g), np.any(x)))
        return [2.0 * g]

    recorded(zeros(operation(gradient=gradient), direction="backward"))
    assert {*seen} == {(True, True), (False, False)}
    assert seen[0] == seen[-1] == (True, True)
    assert seen.count((False, False)) > 10


@both_directions
def test_work_that_is_right_on_zeros_alone_is_wrong(direction: str) -> None:
    """Three times zero is twice zero: the first call is on other numbers."""
    case = zeros(operation(lambda x: 3.0 * x), direction=direction)
    fails(case, WrongResult, "^the result is wrong: largest relative error")


def test_work_that_ends_with_the_first_call_is_wrong() -> None:
    """The rounds leave zeros, and the call on changed inputs has other numbers."""
    calls = []

    def lazy(x: NDArray[Any]) -> Any:
        calls.append(True)
        return 2.0 * x if len(calls) == 1 else np.zeros_like(x)

    message = "^a call on changed inputs is wrong though the first call was right"
    fails(zeros(operation(lazy)), WrongResult, message)


def test_inputs_that_calls_change_are_found() -> None:
    def careless(x: NDArray[Any]) -> Any:
        if not np.any(x):
            x += 1.0
        return 2.0 * x

    fails(zeros(operation(careless)), WrongResult, "the work changed input 0")


def test_zeros_are_created() -> None:
    assert recorded(zeros(workloads.from_numpy))["result_is_view"] is False


def test_steps_on_zeros_are_not_counted() -> None:
    """An operand that calls overwrite; the step that is verified is the first again."""

    def step(x: NDArray[Any], g: NDArray[Any]) -> None:
        x -= g

    workload = Operation(
        name="steps",
        inputs=lambda size, rng: tuple(rng.standard_normal((2, size))),
        reference=lambda x, g: x - g,
        sizes=(4,),
        differentiable=False,
        updates=(0,),
        implementations={"fake": lambda np: step},
    )
    facts = recorded(zeros(workload))
    assert facts["max_relative_error"] <= facts["tolerance"]


@tabled
def test_not_every_operation_takes_zeros(name: str, gap: str | None) -> None:
    """The reference tells; the inputs that it draws are always taken."""
    workload = getattr(workloads, name)
    assert value_gap(workload, "inputs", "zeros") == gap
    assert value_gap(workload, "inputs", "normal") is None


def test_only_zeros_are_a_part_of_the_id() -> None:
    """A case that nobody asked it of has the id that it always had; networks do not take zeros."""
    selection = Selection(devices=("cpu",), executions=("eager",), sizes=(8,))
    requested = grid.GridRequest({"inputs": ("normal", "zeros")})
    grid_cells = [*grid.cells([workloads.gemm], selection, {"rich": RICH}, more=requested)]
    plain = "gemm-rich-cpu-eager-forward-float32-8"
    assert [made_cell.id for made_cell in grid_cells] == [
        f"{plain}-inputs:normal",
        f"{plain}-inputs:zeros",
    ]
    assert [cell_.gap for cell_ in grid_cells] == [None, None]
    (unasked,) = grid.cells([workloads.gemm], selection, {"rich": RICH})
    assert unasked.id == plain
    assert "inputs" not in workloads.mlp.toggles


def test_zeros_are_ranked_among_themselves() -> None:
    """They are other work; a record of an earlier version was of ordinary numbers."""
    zeros, normal, earlier = (
        ranking.work(identity(cell(operation())) | CaseFacts(toggles=toggles))
        for toggles in ({"inputs": "zeros"}, {"inputs": "normal"}, {})
    )
    assert normal == earlier != zeros


@pytest.mark.parametrize("elsewhere", ["an input", "the result"])
def test_arrays_of_another_device_are_refused(elsewhere: str) -> None:
    """TensorFlow computes on the CPU what has no kernel on a GPU, unless it is told not to."""
    asked: list[Any] = []

    def device_of(_framework: FakeFramework, array: Any) -> str:
        asked.append(array)
        return "cpu" if (elsewhere == "an input") == (len(asked) == 1) else "gpu:0"

    case = case_of(cell(device="gpu:0"), variant(device_of=device_of)())
    fails(case, WrongResult, f"{elsewhere} is on cpu instead of gpu:0: fake has computed or kept")


def test_a_case_without_a_kernel_on_its_device_is_a_gap() -> None:
    """It cannot be declared: it shows when the case is called. Gaps of the CPU are declared."""

    def missing(x: Any) -> Any:
        raise NotImplementedError("no kernel of double for GPUs")

    says = variant(lacks=lambda self, error: str(error))()
    for device, error in (("gpu:0", NotOnDevice), ("cpu", NotImplementedError)):
        fails(case_of(cell(operation(missing), device=device), says), error, "no kernel of double")
