"""The memory of a case is that of its calls: what binding takes for a moment does not count."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases import probes
from fwbench.cases.case import Case
from fwbench.cases.inputs import OPERAND_CACHE
from fwbench.cases.networks import ForwardBackwardCase, InferenceCase
from fwbench.cases.probes import forward_memory, memory, profile
from fwbench.errors import ProbeError, WrongResult
from fwbench.frameworks import profiler
from fwbench.frameworks.contract import BoundCall, Saved
from fwbench.frameworks.learner import Job
from fwbench.frameworks.probes import planned_bytes, with_plan
from fwbench.frameworks.profiler import Counts, Operator, Profiler
from fwbench.measure import core_speed
from fwbench.measure import resources as measure
from fwbench.measure.clock import Clock
from fwbench.records.facts import CaseFacts, Memory, Profile
from fwbench.testing import FakeFramework
from fwbench.workloads import mlp
from fwbench.workloads.models.passes import FORWARD_BACKWARDS, INFERENCES
from support import fake_learner
from support.fake_learner import FakeLearner, Trainer
from support.fakes import assert_not_recorded, case_of, cell, operation

pytestmark = pytest.mark.usefixtures("load")

Probe = Callable[[Case, Clock], CaseFacts]


class Held:
    """The memory of a process, moved by hand: 100 bytes, and a peak that can be forgotten."""

    def __init__(self) -> None:
        self.now = self.peak = 100

    def take(self, size: int, moment: int = 0) -> None:
        """Hold ``size`` bytes more, and ``moment`` in addition for a moment."""
        self.now += size
        self.peak = max(self.peak, self.now + moment)

    def forget(self) -> bool:
        self.peak = self.now
        return True


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    process = Held()
    monkeypatch.setattr(measure, "reset_peak_memory", process.forget)
    monkeypatch.setattr(measure, "peak_memory_bytes", lambda: process.peak)
    monkeypatch.setattr(measure, "_children", lambda *_: [])
    return process


class HoldingLearner(FakeLearner):
    """A step takes 40 bytes for a moment, gradients 35, and inference 15."""

    by: Any

    def step(self, *arguments: Any) -> Any:
        self.by.held.take(0, moment=40)
        return super().step(*arguments)

    def inference(self, examples: Any) -> BoundCall:
        return self._taking(15, self.by.in_use(len(examples)))

    def forward_backward(self, examples: Any, labels: Any) -> BoundCall:
        return self._taking(35)

    def planned_bytes(self, training: bool) -> int:
        return 33 if training else 11

    def _taking(self, moment: int, result: Any = None) -> BoundCall:
        def call() -> Any:
            self.by.held.take(0, moment=moment)
            return result

        return call


class Holding(Trainer):
    """The fake framework that trains, with a planner, and with calls that hold memory."""

    held: Held

    def forward(self, *arguments: Any) -> BoundCall:
        """Inputs take 10 bytes, and 500 for a moment; calls take 30 for a moment."""
        self.held.take(10, moment=500)
        run = super().forward(*arguments)

        def call() -> Any:
            self.held.take(0, moment=30)
            return run()

        return with_plan(call, lambda: 25)

    def saved_for_backward(self, run: BoundCall) -> Saved:
        run()
        return Saved(20, 2)

    def learner(self, job: Job) -> FakeLearner:
        """A model takes 50 bytes."""
        self.held.take(50, moment=900)
        return super().learner(job)

    def in_use(self, examples: int) -> NDArray[Any]:
        """The same logit for each of ten classes, as the learner answers."""
        return np.zeros((examples, 10))


@pytest.fixture
def framework(held: Held) -> Holding:
    made = Holding(kind=HoldingLearner)
    made.held = held
    return made


def probe_case(probe: Probe, make: Callable[..., Any], *arguments: Any, **more: Any) -> CaseFacts:
    """Probe a case, of which nothing is verified, timed or recorded."""
    facts: list[CaseFacts] = []
    case = make(*arguments, **more, probe=lambda *given: facts.append(probe(*given)))
    case.measure()
    assert_not_recorded(case)
    return facts[0]


def test_the_peak_is_that_of_calls(framework: Holding) -> None:
    """Above what was held before, and above what is held with the inputs placed."""
    measured = probe_case(memory, case_of, cell(), framework).memory
    assert measured == {
        "before_bytes": 100,
        "bound_bytes": 110,
        "peak_bytes": 140,
        "device_peak_bytes": None,
        "planned_bytes": 25,
        "saved_bytes": None,
        "saved_tensors": None,
    }
    assert (measured.above_bytes, measured.calls_bytes) == (40, 30)
    assert len(framework.called) == 3
    assert Memory.checked(dict(measured)) == measured


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_numbers_that_inputs_are_placed_from_are_not_kept(
    framework: Holding, direction: str
) -> None:
    """They would be a part of the peak, in float64: the calls of this process are all there are."""
    OPERAND_CACHE.arrays("another case's", lambda: [np.zeros(3)])
    kept_bytes = OPERAND_CACHE.size_bytes
    probe_case(memory, case_of, cell(operation(name="drawn_once"), direction=direction), framework)
    assert OPERAND_CACHE.size_bytes == kept_bytes


def test_arrays_saved_for_a_gradient_are_counted(framework: Holding) -> None:
    """By one more call, after the peak is known; without a planner nothing is planned."""
    cases = cell(direction="backward", device="gpu:0")
    measured = probe_case(memory, case_of, cases, framework).memory
    assert measured is not None
    assert (measured.saved_bytes, measured.saved_tensors) == (20, 2)
    assert measured.planned_bytes is None
    assert (measured.device_peak_bytes or 0) > 0


@pytest.mark.parametrize("workload", [mlp, mlp.step], ids=["loop", "step"])
def test_training_and_forward_pass_apart(framework: Holding, workload: Any) -> None:
    step = probe_case(memory, fake_learner.case, framework, workload=workload).memory
    assert step is not None
    assert (step.above_bytes, step.calls_bytes) == (90, 40)
    assert (step.planned_bytes, step.saved_bytes) == (33, 20)
    forward = probe_case(
        forward_memory, fake_learner.case, framework, workload=workload
    ).forward_memory
    assert forward is not None
    assert (forward.calls_bytes, forward.planned_bytes, forward.saved_bytes) == (15, 11, None)


@pytest.mark.parametrize(
    ("workload", "kind", "expected"),
    [
        (INFERENCES[0], InferenceCase, (15, 11, None)),
        (FORWARD_BACKWARDS[0], ForwardBackwardCase, (35, 33, 20)),
    ],
    ids=["inference", "gradients"],
)
def test_networks_without_an_update(
    framework: Holding, workload: Any, kind: type[Case], expected: tuple[int | None, ...]
) -> None:
    cases = cell(workload, size=8, direction=workload.directions[0])
    measured = probe_case(memory, case_of, cases, framework, kind=kind).memory
    assert measured is not None
    assert (measured.calls_bytes, measured.planned_bytes, measured.saved_bytes) == expected


def test_inference_that_answers_otherwise_has_no_memory(framework: Holding) -> None:
    """A case of training times no inference: it is verified where it is called."""
    framework.in_use = lambda examples: np.eye(examples, 10)  # type: ignore[method-assign]
    with pytest.raises(WrongResult, match=r"and the answer of the learner that is trained 0"):
        probe_case(forward_memory, fake_learner.case, framework, workload=mlp.step)


@pytest.mark.usefixtures("held")
def test_a_learner_that_only_trains_answers_for_the_test_set() -> None:
    framework = Trainer()
    forward = probe_case(forward_memory, fake_learner.case, framework).forward_memory
    assert forward is not None
    assert forward.gap is None
    assert framework.learners[0].events_of("logits") == [[8]] * 3


def test_of_a_loader_its_pass_is_measured(framework: Holding) -> None:
    measured = probe_case(memory, fake_learner.case, framework, workload=mlp.loader).memory
    assert measured is not None
    assert measured.planned_bytes is None
    assert framework.called == []


def test_the_peak_may_be_unknown(framework: Holding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "reset_peak_memory", lambda: False)
    measured = probe_case(memory, case_of, cell(), framework).memory
    assert measured is not None
    assert (measured.peak_bytes, measured.above_bytes, measured.calls_bytes) == (None, None, None)
    assert measured.planned_bytes == 25


def test_most_work_has_no_plan() -> None:
    assert planned_bytes(FakeFramework().forward(lambda np: np.copy, [1.0], "eager")) is None


@dataclass
class Seen(Profiler):
    """A profiler with operators of a test: what a call has of them, or what each block has."""

    operators: Sequence[Operator] = ()
    of_block: Callable[[int], Sequence[Operator]] | None = None
    calls: list[int] = field(default_factory=list)
    framework: FakeFramework | None = None

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """The operators; counts the calls in it."""
        assert self.framework is not None
        before = len(self.framework.called)
        work()
        self.calls.append(len(self.framework.called) - before)
        trace.write_text("{}", encoding="utf-8")
        operators = self.of_block(len(self.calls)) if self.of_block else self.operators
        number = self.calls[-1]
        return [replace(op, time_s=number * op.time_s, calls=number * op.calls) for op in operators]


class Profiled(FakeFramework):
    seen: Any = None

    def profiler(self, device: str) -> Profiler | None:
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen


def profiled(seen: Any, folder: Path) -> CaseFacts:
    framework = Profiled()
    framework.seen = seen
    if isinstance(seen, Seen):
        seen.framework = framework
    return probe_case(partial(profile, folder=folder), case_of, cell(), framework)


def test_a_profile_is_recorded(tmp_path: Path) -> None:
    """Shares by class, operators of a call with most time first, and the trace's name."""
    seen = Seen(
        [
            Operator("conv", "convolution", 2.0**-5, 2),
            Operator("relu", "elementwise", 2.0**-6, 1),
            Operator("conv", "convolution", 2.0**-6, 1),
        ]
    )
    recorded_profile = profiled(seen, tmp_path).profile
    assert recorded_profile is not None
    assert recorded_profile.shares == {"convolution": 0.75, "elementwise": 0.25}
    assert recorded_profile.operators_s == 2.0**-4
    assert [
        (operator.name, operator.time_s, operator.calls)
        for operator in recorded_profile.operators or ()
    ] == [*(("conv", 3 * 2.0**-6, 3.0), ("relu", 2.0**-6, 1.0))]
    assert recorded_profile.call_s == 2.0**-10 + 2.0**-4
    assert recorded_profile.calls == 12 * 2  # blocks of a tenth of a second
    assert recorded_profile.shares_within == 0.0
    assert (recorded_profile.events or {}).keys() >= {"page_faults"}
    assert [path.name for path in tmp_path.iterdir()] == [recorded_profile.trace]
    assert recorded_profile.trace == "double-fake-cpu-eager-forward-float32-4.json"
    assert Profile.checked(dict(recorded_profile)) == recorded_profile
    assert seen.calls == [1, 3, *[2] * 13]


def _two(of_the_first: float) -> list[Operator]:
    """Two operators of different classes, that share the time of a call."""
    other_s = (1 - of_the_first) * 2.0**-5
    return [
        Operator("conv", "convolution", of_the_first * 2.0**-5, 1),
        Operator("relu", "elementwise", other_s, 1),
    ]


@pytest.mark.parametrize(
    ("shares", "blocks", "share", "within"),
    [
        (lambda block: 0.75 if block % 3 else 0.25, 12, 0.75, 0.0),
        (lambda block: 0.25 if block < 5 else 0.75, 26, 0.75, 0.0),
        (lambda block: 0.5 + block / 1000, 12, 0.5075, 0.009),
        (lambda block: block / 100, 80, 0.4, 0.6),
    ],
    ids=["one block in three disturbed", "other shares at first", "a small trend", "no end"],
)
def test_blocks_go_on_until_their_quarters_are_alike(
    shares: Callable[[int], float], blocks: int, share: float, within: float, tmp_path: Path
) -> None:
    """For ten seconds at most; the medians of all of them are recorded, but not the first start."""
    seen = Seen(of_block=lambda block: _two(shares(block - 2)))
    recorded_profile = profiled(seen, tmp_path).profile
    assert recorded_profile is not None
    assert len(seen.calls) - 3 == pytest.approx(blocks, rel=0.1)
    assert (recorded_profile.shares or {})["convolution"] == pytest.approx(share, rel=0.2)
    assert recorded_profile.shares_within == pytest.approx(within, abs=0.3 * within)


@pytest.mark.parametrize(("slow", "conv_s"), [(range(3, 13), 1.0), (range(3, 200), 2.0)])
def test_blocks_while_a_cpu_is_slow(
    slow: Sequence[int], conv_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in no figure, unless nearly all of them are: then it is as fast as that."""

    class Cpus(core_speed.Cpus):
        def are_fast(self) -> bool:
            return len(seen.calls) not in slow

    cpus = Cpus({}, core_speed.SetAside())
    monkeypatch.setattr(probes, "computing_cpus", lambda *_, **__: cpus)
    times_s = {True: 2.0, False: 1.0}
    seen = Seen(of_block=lambda n: [Operator("conv", "matmul", times_s[n in slow] * 2**-6, 1)])
    recorded_profile = profiled(seen, tmp_path).profile
    assert recorded_profile is not None
    (operator,) = recorded_profile.operators or []
    assert operator.time_s == conv_s * 2**-6


def test_operators_that_take_time_are_kept(tmp_path: Path) -> None:
    """A hundred at most; others are in the shares alone."""
    many = [Operator(f"op{n}", profiler.OTHER, 2.0**-12, 1) for n in range(120)]
    seen = Seen([*many, Operator("top", "matmul", 2.0**-6, 1), Operator("small", "loss", 1e-9, 1)])
    recorded_profile = profiled(seen, tmp_path).profile
    assert recorded_profile is not None
    names = [operator.name for operator in recorded_profile.operators or ()]
    assert (names[:2], len(names)) == (["top", "op0"], 100)
    assert "loss" in (recorded_profile.shares or {})


def test_the_error_of_an_operator_is_by_blocks(tmp_path: Path) -> None:
    """The middle half of 12 blocks is 1 ms wide: 1 / 1.35 / sqrt(2 * 12 / pi) of that."""
    times_s = [5e-3, 6e-3]
    seen = Seen(of_block=lambda n: [Operator("conv", "convolution", times_s[n % 2], 1)])
    recorded_profile = profiled(seen, tmp_path).profile
    assert recorded_profile is not None
    (operator,) = recorded_profile.operators or []
    assert operator.time_s == pytest.approx(5.5e-3)
    assert operator.error_s == pytest.approx(1e-3 / 1.35 / math.sqrt(24 / math.pi))


def test_what_a_framework_counts_is_recorded(tmp_path: Path) -> None:
    """By call, with its time; it is an operator that no profiler has seen."""

    class Compiling(Seen):
        def counts(self) -> Counts:
            assert self.framework is not None
            number = len(self.framework.called)
            return {"compilations": (number, number * 2.0**-7), "breaks": (2 * number, 0.0)}

    seen = Compiling([Operator("conv", "convolution", 2.0**-6, 1)])
    recorded_profile = profiled(seen, tmp_path).profile
    assert recorded_profile is not None
    assert [
        (operator.name, operator.operator_class, operator.time_s, operator.calls)
        for operator in recorded_profile.operators or ()
    ] == [
        ("conv", "convolution", 2.0**-6, 1.0),
        ("compilations", profiler.COMPILATION, 2.0**-7, 1.0),
        ("breaks", profiler.COMPILATION, 0.0, 2.0),
    ]


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (None, "fake has no profiler"),
        (ImportError("No module named 'x'"), "of fake cannot be imported: No module named 'x'"),
        (Seen(), "the profiler of fake has seen no operator"),
        (
            Seen([Operator("conv", "convolution", 9.0, 3)]),
            "says that operators took 9 s in calls of 63.5 ms on 2 threads",
        ),
    ],
    ids=["no profiler", "not importable", "nothing seen", "more than there is"],
)
def test_a_missing_profile_has_a_reason(
    seen: Any, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions are sampled in place of operators only where pyinstrument is installed."""
    monkeypatch.setitem(sys.modules, "pyinstrument", None)
    with pytest.raises(ProbeError, match=reason):
        profiled(seen, tmp_path)


def test_the_overhead_is_against_the_time_of_a_call() -> None:
    recorded_profile = Profile(call_s=3.0)
    assert CaseFacts(completion_s=2.0, profile=recorded_profile).profile_overhead == 0.5
    assert (
        CaseFacts(completion_s=200.0, step_s=2.0, profile=recorded_profile).profile_overhead == 0.5
    )
    assert CaseFacts(completion_s=2.0, profile=Profile(gap="none")).profile_overhead is None
    assert CaseFacts(completion_s=2.0).profile_overhead is None
