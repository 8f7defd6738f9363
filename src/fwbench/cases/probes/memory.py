"""The memory of a case: a few calls in a process that has done nothing else.

The peak is that of the calls. What binding takes for a moment, such as random numbers that inputs
are drawn from, is forgotten before the first one.

Nothing is compared with a reference here. Only a case that was verified and timed is run for its
memory, by the same code with the same options; its float64 reference would take more memory than
the case, and for published sizes minutes. The inference of a training is the one call that its own
case does not make: ``<network>_inference`` verifies it, and the check after the timing holds the
learner's answers against the loss of its steps.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, cast

from fwbench.cases.case import Case
from fwbench.cases.models import ModelInferenceCase, ModelStepCase
from fwbench.cases.networks import ForwardBackwardCase, InferenceCase
from fwbench.cases.training import LoopCase, StepCase, TrainingCase
from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.learner import Learner, Placed, Predictor
from fwbench.frameworks.plans import Plan, planned_bytes
from fwbench.measure.clock import Clock
from fwbench.measure.memory import PeakMemory
from fwbench.records.facts import CaseFacts
from fwbench.records.probed import Memory
from fwbench.workloads.objective import Batch

#: The first one compiles, and allocates what others use again.
_CALLS = 3


class _Bound(NamedTuple):
    """Work, and what is planned for it.

    Attributes:
        run: one call.
        plan: tells what its planner reserves.
        differentiates: whether a call has a backward pass.
        strategies: tells what its planner would reserve by each of its strategies.
    """

    run: BoundCall
    plan: Plan
    differentiates: bool
    strategies: Callable[[], dict[str, int] | None] = lambda: None


def memory(case: Case, clock: Clock) -> CaseFacts:
    """The memory of the calls that are timed; of a training loop, of a step.

    Args:
        case: which; it is bound, and neither verified nor timed.
        clock: waits for the case's device.
    """
    bind = _BINDS.get(type(case), _called)
    return CaseFacts(memory=_measured(case, clock, partial(bind, case)))


def forward_memory(case: Case, clock: Clock) -> CaseFacts:
    """The memory of inference on a batch, for which nothing is kept for gradients.

    Args:
        case: of training.
        clock: waits for the case's device.
    """
    return CaseFacts(forward_memory=_measured(case, clock, partial(_inference, case)))


def _measured(case: Case, clock: Clock, bind: Callable[[], _Bound]) -> Memory:
    framework = case.framework
    device_peak_bytes = framework.watch_memory(case.cell.device)
    host = PeakMemory()
    bound = bind()
    gc.collect()
    bound_bytes = host.restart()
    for _ in range(_CALLS):
        clock.time(bound.run)
    host.pause()
    device_bytes = device_peak_bytes()
    saved = framework.saved_for_backward(bound.run) if bound.differentiates else None
    strategies = bound.strategies()
    found = Memory(
        before_bytes=host.before_bytes,
        bound_bytes=bound_bytes,
        peak_bytes=host.peak_bytes,
        device_peak_bytes=device_bytes,
        planned_bytes=strategies["both"] if strategies else bound.plan(),
        saved_bytes=None if saved is None else saved.size_bytes,
        saved_tensors=None if saved is None else saved.tensors,
    )
    return found | Memory(planned_by_strategy=strategies) if strategies else found


def _called(case: Case) -> _Bound:
    run = case.bind().run
    return _Bound(run, partial(planned_bytes, run), case.cell.direction == "backward")


def _batch(network: Predictor) -> tuple[Batch, Placed]:
    """A batch of a network's: on the host, and on its device."""
    (batch,) = network.job.training.check_batches(network.job.batch, 1)
    return batch, network.place(batch)


def _step(case: Case) -> _Bound:
    learner = cast("TrainingCase", case).learner()
    _, placed = _batch(learner)
    learner.reset(exact=False)
    return _bound(learner, partial(learner.step, *placed), training=True)


def _gradients(case: Case) -> _Bound:
    learner = cast("TrainingCase", case).learner()
    _, placed = _batch(learner)
    return _bound(learner, learner.forward_backward(*placed), training=True)


def _inference(case: Case) -> _Bound:
    network = cast("TrainingCase", case).predictor()
    (on_host, _), (examples, _) = _batch(network)
    try:
        run = network.inference(examples)
    except NotImplementedError:  # a learner that only trains answers for the test set
        assert isinstance(network, Learner)  # noqa: S101 (others must answer)
        network.reset(exact=True)
        run = partial(network.logits, on_host)
    return _bound(network, run, training=False)


def _bound(network: Predictor, run: BoundCall, *, training: bool) -> _Bound:
    plan = partial(network.planned_bytes, training=training)
    strategies = partial(network.planned_by_strategy, training=training)
    return _Bound(run, plan, training, strategies)


#: What is bound of a case that a learner does; of others what is timed.
_BINDS: Mapping[type[Case], Callable[[Case], _Bound]] = {
    StepCase: _step,
    LoopCase: _step,
    ForwardBackwardCase: _gradients,
    InferenceCase: _inference,
    ModelStepCase: _step,
    ModelInferenceCase: _inference,
}
