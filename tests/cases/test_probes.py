"""The memory of a case is that of its calls: what binding takes for a moment does not count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.case import Case
from fwbench.cases.networks import ForwardBackwardCase, InferenceCase
from fwbench.cases.probes import forward_memory, memory, profile
from fwbench.errors import ProbeError, WrongResult
from fwbench.frameworks import profiler
from fwbench.frameworks.contract import BoundCall, Saved
from fwbench.frameworks.learner import Job
from fwbench.frameworks.probes import planned_bytes, with_plan
from fwbench.frameworks.profiler import Operator, Profiler
from fwbench.measure import resources as measure
from fwbench.measure.clock import Clock
from fwbench.records.facts import CaseFacts, Memory, Profile
from fwbench.testing import FakeFramework
from fwbench.workloads import mlp
from fwbench.workloads.models.passes import FORWARD_BACKWARDS, INFERENCES
from support import fake_learner
from support.fake_learner import FakeLearner, Trainer
from support.fakes import case_of, cell, operation

pytestmark = pytest.mark.usefixtures("load")

Probe = Callable[[Case, Clock], CaseFacts]


class Held:
    """The memory of a process, moved by hand: 100 bytes, and a peak that can be forgotten."""

    def __init__(self) -> None:
        self.now = self.peak = 100

    def take(self, size: int, moment: int = 0) -> None:
        """Hold so much more, and ``moment`` in addition for a moment."""
        self.now += size
        self.peak = max(self.peak, self.now + moment)

    def forget(self) -> bool:
        """As the system does."""
        self.peak = self.now
        return True


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    """What the process is said to hold."""
    process = Held()
    monkeypatch.setattr(measure, "reset_peak_memory", process.forget)
    monkeypatch.setattr(measure, "peak_memory_bytes", lambda: process.peak)
    return process


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

    def backward(self, *arguments: Any) -> BoundCall:
        """As forward passes, without a plan."""
        return super().backward(*arguments)

    def saved_for_backward(self, run: BoundCall) -> Saved:
        """Two tensors; the call is made."""
        run()
        return Saved(20, 2)

    def learner(self, job: Job) -> FakeLearner:
        """A model takes 50 bytes, a step 40 for a moment, gradients 35, and inference 15."""
        self.held.take(50, moment=900)
        learner = super().learner(job)
        step = learner.step

        def held_step(*arguments: Any) -> Any:
            self.held.take(0, moment=40)
            return step(*arguments)

        learner.step = held_step  # type: ignore[method-assign]

        def inference(examples: Any) -> BoundCall:
            return self._taking(15, self.in_use(len(examples)))

        learner.inference = inference  # type: ignore[method-assign]
        learner.forward_backward = (  # type: ignore[method-assign]
            lambda examples, labels: self._taking(35)
        )
        learner.planned_bytes = lambda training: 33 if training else 11  # type: ignore[method-assign]
        return learner

    def in_use(self, examples: int) -> NDArray[Any]:
        """The same logit for each of ten classes, as the learner answers."""
        return np.zeros((examples, 10))

    def _taking(self, moment: int, result: Any = None) -> BoundCall:
        def call() -> Any:
            self.held.take(0, moment=moment)
            return result

        return call


@pytest.fixture
def framework(held: Held) -> Holding:
    """The framework of the process."""
    made = Holding()
    made.held = held
    return made


def found(probe: Probe, make: Callable[..., Any], *arguments: Any, **more: Any) -> CaseFacts:
    """What a probe finds out about a case."""
    facts: list[CaseFacts] = []
    make(*arguments, **more, probe=lambda *given: facts.append(probe(*given))).measure()
    return facts[0]


def test_the_peak_is_that_of_calls(framework: Holding) -> None:
    """Above what was held before, and above what is held with the inputs placed."""
    measured = found(memory, case_of, cell(operation()), framework).memory
    assert measured is not None
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


def test_of_a_gradient_what_is_saved_is_told(framework: Holding) -> None:
    """By one more call, after the peak is known; without a planner nothing is planned."""
    cases = cell(operation(), direction="backward", device="gpu:0")
    measured = found(memory, case_of, cases, framework).memory
    assert measured is not None
    assert (measured.saved_bytes, measured.saved_tensors) == (20, 2)
    assert measured.planned_bytes is None
    assert (measured.device_peak_bytes or 0) > 0


@pytest.mark.parametrize("of", [mlp, mlp.step], ids=["loop", "step"])
def test_training_and_forward_pass_apart(framework: Holding, of: Any) -> None:
    """Of a loop, a step; the forward pass keeps nothing for a gradient, so nothing is saved."""
    step = found(memory, fake_learner.case, framework, of=of).memory
    assert step is not None
    assert (step.above_bytes, step.calls_bytes) == (90, 40)
    assert (step.planned_bytes, step.saved_bytes) == (33, 20)
    forward = found(forward_memory, fake_learner.case, framework, of=of).forward_memory
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
    """Inference, and forward with backward pass, are what is called."""
    cases = cell(workload, size=8, direction=workload.directions[0])
    measured = found(memory, case_of, cases, framework, kind=kind).memory
    assert measured is not None
    assert (measured.calls_bytes, measured.planned_bytes, measured.saved_bytes) == expected


def test_inference_that_answers_otherwise_has_no_memory(framework: Holding) -> None:
    """A case of training times no inference: what it is worth is found out where it is called."""
    framework.in_use = lambda examples: np.eye(examples, 10)  # type: ignore[method-assign]
    with pytest.raises(WrongResult, match=r"and the answer of the learner that is trained 0"):
        found(forward_memory, fake_learner.case, framework, of=mlp.step)


@pytest.mark.usefixtures("held")
def test_a_learner_that_only_trains_answers_for_the_test_set() -> None:
    """It has no inference of its own."""
    framework = Trainer()
    forward = found(forward_memory, fake_learner.case, framework).forward_memory
    assert forward is not None
    assert forward.gap is None
    assert framework.learners[0].of("logits") == [[8]] * 3


def test_of_a_loader_its_pass_is_measured(framework: Holding) -> None:
    """No step is made."""
    measured = found(memory, fake_learner.case, framework, of=mlp.loader).memory
    assert measured is not None
    assert measured.planned_bytes is None
    assert framework.called == []


def test_where_the_system_does_not_tell(
    framework: Holding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is claimed of the process."""
    monkeypatch.setattr(measure, "reset_peak_memory", lambda: False)
    measured = found(memory, case_of, cell(operation()), framework).memory
    assert measured is not None
    assert (measured.peak_bytes, measured.above_bytes, measured.calls_bytes) == (None, None, None)
    assert measured.planned_bytes == 25


def test_most_work_has_no_plan() -> None:
    """Nobody is asked for one."""
    assert planned_bytes(FakeFramework().forward(lambda np: np.copy, [1.0], "eager")) is None


# Profiles


@dataclass
class Seen(Profiler):
    """A profiler that has seen what a test says."""

    operators: Sequence[Operator] = ()
    calls: list[int] = field(default_factory=list)
    framework: FakeFramework | None = None

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """Returns them, and counts the calls before it and in it."""
        assert self.framework is not None
        self.calls.append(len(self.framework.called))
        work()
        self.calls.append(len(self.framework.called))
        trace.write_text("{}", encoding="utf-8")
        return self.operators


class Profiled(FakeFramework):
    """The fake framework with a profiler."""

    seen: Any = None

    def profiler(self, device: str) -> Profiler | None:
        """Returns it, or raises what it is."""
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen


def profiled(seen: Any, folder: Path) -> tuple[CaseFacts, Case]:
    """What the probe finds out about a case, and the case."""
    framework = Profiled()
    framework.seen = seen
    if isinstance(seen, Seen):
        seen.framework = framework
    found: list[CaseFacts] = []

    def probe(case: Case, clock: Clock) -> None:
        found.append(profile(case, clock, folder))

    case = case_of(cell(operation()), framework, probe=probe)
    case.measure()
    return found[0], case


def test_a_profile_is_recorded(tmp_path: Path) -> None:
    """Shares by class, operators of a call with most time first, and the trace's name."""
    seen = Seen(
        [
            Operator("conv", profiler.CONVOLUTION, 3.0, 6),
            Operator("relu", profiler.ELEMENTWISE, 1.5, 3),
            Operator("conv", profiler.CONVOLUTION, 1.5, 3),
        ]
    )
    facts, case = profiled(seen, tmp_path)
    found = facts.profile
    assert found is not None
    assert found.shares == {profiler.CONVOLUTION: 0.75, profiler.ELEMENTWISE: 0.25}
    assert found.operators_s == 2.0
    assert [(each.name, each.time_s, each.calls) for each in found.operators or ()] == [
        *(("conv", 1.5, 3.0), ("relu", 0.5, 1.0))
    ]
    assert found.call_s == 2.0**-10 + 2.0**-4
    assert found.calls == 3
    assert [path.name for path in tmp_path.iterdir()] == [found.trace]
    assert found.trace == "double-fake-cpu-eager-forward-float32-4.json"
    assert Profile.checked(dict(found)) == found
    # Nothing is verified or timed, and nobody complains about it.
    assert seen.calls == [3, 6]
    assert case.benchmark.extra_info == {}


def test_ten_operators_are_kept(tmp_path: Path) -> None:
    """Shares are of all of them."""
    many = [Operator(f"op{n}", profiler.OTHER, 1.0, 1) for n in range(20)]
    facts, _ = profiled(Seen([*many, Operator("top", profiler.MATMUL, 20.0, 1)]), tmp_path)
    found = facts.profile
    assert found is not None
    assert found.shares == pytest.approx({profiler.MATMUL: 0.5, profiler.OTHER: 0.5})
    assert [each.name for each in found.operators or ()][:2] == ["top", "op0"]
    assert len(found.operators or ()) == 10


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (None, "fake has no profiler"),
        (ImportError("No module named 'x'"), "of fake cannot be imported: No module named 'x'"),
        (Seen(), "the profiler of fake has seen no operator"),
    ],
    ids=["no profiler", "not importable", "nothing seen"],
)
def test_what_has_no_profile_says_why(seen: Any, reason: str, tmp_path: Path) -> None:
    """One sentence, from which the gap in the record is made."""
    with pytest.raises(ProbeError, match=reason):
        profiled(seen, tmp_path)


def test_the_overhead_is_against_the_time_of_a_call() -> None:
    """Of a training loop, against that of a step."""
    found = Profile(call_s=3.0)
    assert CaseFacts(completion_s=2.0, profile=found).profile_overhead == 0.5
    assert CaseFacts(completion_s=200.0, step_s=2.0, profile=found).profile_overhead == 0.5
    assert CaseFacts(completion_s=2.0, profile=Profile(gap="none")).profile_overhead is None
    assert CaseFacts(completion_s=2.0).profile_overhead is None
