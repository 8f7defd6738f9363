"""The memory of a case: a few calls in a process that has done nothing else.

The peak is that of the calls. What binding takes for a moment, such as random numbers that inputs
are drawn from, is forgotten before the first one.

Nothing is compared with a reference here. Only a case that was verified and timed is run for its
memory, by the same code with the same options; its float64 reference would take more memory than
the case, and for published sizes minutes. The inference of a training is the one call that its own
case does not make. With its memory known it is compared with the learner's own logits, which the
check after the timing holds against the loss of its steps.
"""

import gc
import math
import re
import statistics
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from fwbench.cases import verify
from fwbench.cases.case import Case, computing_cpus
from fwbench.cases.inputs import OPERAND_CACHE, read_result
from fwbench.cases.models import ModelInferenceCase, ModelStepCase
from fwbench.cases.networks import ForwardBackwardCase, InferenceCase
from fwbench.cases.sampling import RepeatedCall, sampled
from fwbench.cases.training import LoopCase, StepCase, TrainingCase
from fwbench.errors import ProbeError
from fwbench.frameworks import libraries, probes
from fwbench.frameworks.contract import BoundCall, Framework
from fwbench.frameworks.learner import Learner, Placed, Predictor
from fwbench.frameworks.models import ModelLearner, arrays_of
from fwbench.frameworks.probes import Plan, planned_bytes
from fwbench.frameworks.profiler import CLASSES, COMPILATION, Operator, Profiler, counted
from fwbench.measure import counters
from fwbench.measure.clock import Clock
from fwbench.measure.resources import PeakMemory
from fwbench.measure.warmup import warm_up
from fwbench.records.facts import CaseFacts, Memory, Profile, ProfiledOperator, Sampled
from fwbench.records.units import count, time
from fwbench.turns import visits
from fwbench.workloads.objective import Batch

#: Two runs in the dtype of the case are compared, each of which may be off by the tolerance.
_BOTH = 2.0

#: The first one compiles, and allocates what others use again.
_CALLS = 3


def _accepted(_: Any) -> None:
    """A result that nothing is compared with."""


class _Bound(NamedTuple):
    """Work, and what is planned for it.

    Attributes:
        run: one call.
        plan: tells what its planner reserves.
        differentiates: whether a call has a backward pass.
        strategies: tells what its planner would reserve by each of its strategies.
        check: raises an error if the result of a call is wrong; called once all is measured.
    """

    run: BoundCall
    plan: Plan
    differentiates: bool
    strategies: Callable[[], dict[str, int] | None] = lambda: None
    check: Callable[[Any], None] = _accepted


def memory(case: Case, clock: Clock) -> CaseFacts:
    """The memory of the calls that are timed; of a training loop, of a step.

    Args:
        case: which; it is bound, and neither verified nor timed.
    """
    bind = _BINDS.get(type(case), _called)
    return CaseFacts(memory=_measured(case, clock, partial(bind, case)))


def forward_memory(case: Case, clock: Clock) -> CaseFacts:
    """The memory of inference on a batch, for which nothing is saved for gradients.

    Raises:
        WrongResult: the answers are not those that the learner's steps are verified by.
    """
    return CaseFacts(forward_memory=_measured(case, clock, partial(_checked_inference, case)))


def _measured(case: Case, clock: Clock, bind: Callable[[], _Bound]) -> Memory:
    framework = case.framework
    device_peak_bytes = framework.watch_memory(case.cell.device)
    host = PeakMemory()
    with OPERAND_CACHE.keeping_nothing():  # a call has its inputs alone, not what they were
        bound = bind()
    gc.collect()
    bound_bytes = host.restart()
    for _ in range(_CALLS):
        _, result = clock.time(bound.run)
    host.pause()
    device_bytes = device_peak_bytes()
    saved = framework.saved_for_backward(bound.run) if bound.differentiates else None
    strategies = bound.strategies()
    bound.check(result)
    measured = Memory(
        before_bytes=host.before_bytes,
        bound_bytes=bound_bytes,
        peak_bytes=host.peak_bytes,
        device_peak_bytes=device_bytes,
        planned_bytes=strategies["both"] if strategies else bound.plan(),
        saved_bytes=None if saved is None else saved.size_bytes,
        saved_tensors=None if saved is None else saved.tensors,
    )
    return measured | Memory(planned_by_strategy=strategies) if strategies else measured


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
    return _bound(learner, learner.forward_backward(*_batch(learner)[1]), training=True)


def _inference(case: Case) -> _Bound:
    return _answers(cast("TrainingCase", case).predictor())


def _checked_inference(case: Case) -> _Bound:
    network = cast("TrainingCase", case).predictor()
    if not isinstance(network, Learner):
        return _answers(network)
    return _answers(network, partial(_check_answers, case.framework, network))


def _check_answers(framework: Framework, learner: Learner, result: Any) -> None:
    """The first result of a call has the learner's logits for the same batch."""
    (on_host, _), _ = _batch(learner)
    answers = [read_result(framework, array) for array in arrays_of(result)]
    allowed = _BOTH * verify.LOGIT_TOLERANCES[learner.job.verified_as]
    if isinstance(learner, ModelLearner):
        answers = learner.restored(answers)
        allowed *= learner.model.tolerance
    learner.reset(exact=True)
    expected = np.asarray(learner.logits(on_host), np.float64)
    verify.compare(answers[0], expected, allowed, "answer of the learner that is trained")


def _answers(network: Predictor, check: Callable[[Any], None] = _accepted) -> _Bound:
    (on_host, _), (examples, _) = _batch(network)
    try:
        run = network.inference(examples)
    except NotImplementedError:  # a learner that only trains answers for the test set
        assert isinstance(network, Learner)  # noqa: S101 (others must answer)
        network.reset(exact=True)
        run, check = partial(network.logits, on_host), _accepted
    return _bound(network, run, training=False)._replace(check=check)


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


#: PyTorch's allocator gets pages from the system in the first 50 steps of LeNet: elementwise
#: operators, which touch them first, take 16 % of the time then, and 4 % afterwards.
_WARMUP_S, _WARMUP_AT_LEAST_S = 1.0, 0.5

#: Blocks of calls go on until the shares of no class in their quarters differ by more. A block
#: takes a tenth of a second, with what the profiler needs to read its events.
_REPEATS_WITHIN = 0.03
_QUARTERS = 4
_BLOCK_S = 0.1
#: Calls of the first trial. The second shows how long a block is besides its calls.
_TRIAL_CALLS, _TRIALS = 3, 2


class _Limits(NamedTuple):
    """The number of blocks at least and at most, and how long they may take.

    Attributes:
        calls: of a block at most.
        lead_in_s: how long calls go on before those of a block, unless one takes longer.
    """

    least: int
    most: int
    longest_s: float
    calls: int = 50
    lead_in_s: float = 0.0


#: Of a profile that stands alone, and of one that is compared with that of the other side, in
#: turns: there an operator's difference has an error of its own, and a block finds what the other
#: side has left in caches.
_ALONE, _IN_TURNS = _Limits(12, 100, 10.0), _Limits(8, 24, 3.0, 200, 5e-3)

#: What operators may take together, in parts of a call's time on all threads.
_OF_CALL = 1.5

#: Operators that are recorded by their names.
_RECORDED = 100

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")

#: Of each operator, by its name and class: its time in a call, and how often a call calls it.
_Seen = Mapping[tuple[str, str], tuple[float, float]]
_NONE = 0.0, 0.0


class _Profiled(NamedTuple):
    """A block of calls under the profiler.

    Attributes:
        calls_s: seconds of each.
        seen: their operators.
        took_s: with what the profiler needs to read its events.
        is_fast: whether the CPUs were at full speed before and after.
    """

    calls_s: Sequence[float]
    seen: _Seen
    took_s: float
    is_fast: bool


def profile(case: Case, clock: Clock, folder: Path) -> CaseFacts:
    """The profile of a case, whose trace is written.

    Args:
        case: which; it is bound, and neither verified nor timed. Where its framework has no
            profiler, its functions are sampled, and there is no trace.

    Raises:
        ProbeError: the profiler has seen nothing, or more than calls take; or nothing samples.
    """
    profiler = _profiler(case)
    turn = partial(case.alone, probes.PROFILE)
    if profiler is None:
        return CaseFacts(sampled=_sampled(case, clock, turn))
    trace = folder / f"{_NOT_IN_NAMES.sub('-', case.cell.id)}.json"
    run, onednn_isa = libraries.onednn_isa(
        partial(_bound_and_called, case), case.framework.onednn_log()
    )
    warmup = warm_up(run, clock, _WARMUP_S, _WARMUP_AT_LEAST_S)
    cpus = computing_cpus(case.cell, clock, is_parallel=warmup.is_parallel is not False)
    call, seen = partial(clock.time, run), partial(_seen, profiler, trace)
    with cpus.reached() if cpus is not None else nullcontext():
        are_fast = cpus.are_fast if cpus is not None else lambda: True
        blocks = _Blocks(call, seen, clock, are_fast, turn).until_alike()
    operators = _typical(blocks)
    call_s = statistics.median(statistics.mean(block.calls_s) for block in blocks)
    total_s = sum(operator.time_s for operator in operators)
    _check_total(total_s, call_s, case.framework)
    with turn():
        events = _events(call, math.ceil(_BLOCK_S / call_s))
    facts = events | Profile(
        calls=sum(len(block.calls_s) for block in blocks),
        call_s=call_s,
        operators_s=total_s,
        shares={name: min(1.0, share) for name, share in _shares(operators).items()},
        shares_within=_within(blocks) if len(blocks) >= _QUARTERS else None,
        operators=_recorded(operators, blocks),
        trace=trace.name,
    )
    told = Profile(onednn_isa=onednn_isa) if onednn_isa else Profile()
    return CaseFacts(profile=facts | told)


def _bound_and_called(case: Case) -> BoundCall:
    run = case.bind().run
    run()
    return run


def _events(call: Callable[[], object], number: int) -> Profile:
    """The events of a call: the mean over so many, without a profiler."""
    number = min(number, _ALONE.calls)
    events, gap = counters.counted(lambda: deque((call() for _ in range(number)), maxlen=0))
    of_call = Profile(events={name: of_all / number for name, of_all in events.items()})
    return of_call | Profile(events_gap=gap) if gap else of_call


@dataclass(frozen=True)
class _Blocks:
    """Blocks of profiled calls.

    Attributes:
        call: makes a call, and returns its seconds first.
        profiled: does something that makes so many calls, and tells what they show.
        are_fast: looks whether the CPUs that compute are at full speed.
        turn: a block within which the other side of a comparison does nothing.
    """

    call: Callable[[], tuple[float, Any]]
    profiled: Callable[[Callable[[], object], int], _Seen]
    clock: Clock
    are_fast: Callable[[], bool]
    turn: Callable[[], AbstractContextManager[None]]

    def until_alike(self) -> Sequence[_Profiled]:
        """Blocks until what they show is alike, without trials.

        Those at full speed, if they are enough: a CPU that is slow for as long as the blocks of
        one side of a comparison take would be a cause there.
        """
        limits = _IN_TURNS if visits.are_taken() else _ALONE
        self._block(1, limits)  # a profiler's first start may take a second
        number, spent_s = _TRIAL_CALLS, 0.0
        for _ in range(_TRIALS):
            spent_s = self._block(number, limits).took_s
            number = min(limits.calls, math.ceil(_BLOCK_S * number / max(spent_s, 1e-9)))
        blocks: list[_Profiled] = []
        while len(blocks) < limits.most and (not blocks or spent_s < limits.longest_s):
            blocks.append(self._block(number, limits))
            spent_s += blocks[-1].took_s
            fast = [block for block in blocks if block.is_fast]
            if len(fast) >= limits.least and _within(fast) <= _REPEATS_WITHIN:
                break
        return fast if len(fast) >= _QUARTERS else blocks

    def _block(self, number: int, limits: _Limits) -> _Profiled:
        with self.turn():
            was_fast = self.are_fast()
            start_s = self.clock.read()
            _lead_in(self.call, self.clock, limits.lead_in_s)
            calls_s: list[float] = []
            work = partial(calls_s.extend, (self.call()[0] for _ in range(number)))
            seen = self.profiled(work, number)
            took_s = self.clock.read() - start_s
            return _Profiled(calls_s, seen, took_s, self.are_fast() and was_fast)


def _lead_in(call: Callable[[], object], clock: Clock, for_s: float) -> None:
    """Make calls that are not profiled for so long; none where there is no time for one."""
    until_s = clock.read() + for_s
    while clock.read() < until_s:
        call()


def _seen(profiler: Profiler, trace: Path, work: Callable[[], object], calls: int) -> _Seen:
    """The operators of a call, in a block of so many, and what the framework counts in addition."""
    before = profiler.counts()
    operators = [*profiler.profile(work, trace), *counted(before, profiler.counts())]
    seen: dict[tuple[str, str], tuple[float, float]] = {}
    for operator in operators:
        key = operator.name, operator.operator_class
        time_s, number = seen.get(key, (0.0, 0.0))
        seen[key] = time_s + operator.time_s / calls, number + operator.calls / calls
    return seen


def _recorded(operators: Sequence[Operator], blocks: Sequence[_Profiled]) -> list[ProfiledOperator]:
    """The operators that take the most, and everything that is counted, with their errors."""
    recorded = []
    for number, operator in enumerate(operators):
        if number < _RECORDED or operator.operator_class == COMPILATION:
            key = operator.name, operator.operator_class
            error_s = _error_s([block.seen.get(key, _NONE)[0] for block in blocks])
            recorded.append(ProfiledOperator(**asdict(operator), error_s=error_s))
    return recorded


def _error_s(times_s: Sequence[float]) -> float | None:
    """Standard error of the median of blocks, by their middle half; None of too few."""
    if len(times_s) < _QUARTERS:
        return None
    low, _, high = statistics.quantiles(times_s, n=4, method="inclusive")
    # A normal distribution's middle half is 1.35 deviations wide.
    return (high - low) / 1.35 * math.sqrt(math.pi / 2 / len(times_s))


def _typical(blocks: Sequence[_Profiled]) -> list[Operator]:
    """Operators of a call by the medians of blocks, most time first.

    A process that has to wait for a processor does so in some operator, in one block of many.
    """
    typical = []
    for key in {key for block in blocks for key in block.seen}:
        times_s, calls = zip(*(block.seen.get(key, _NONE) for block in blocks), strict=True)
        typical.append(Operator(*key, statistics.median(times_s), sum(calls) / len(blocks)))
    return sorted(typical, key=lambda operator: (-operator.time_s, operator.name))


def _within(blocks: Sequence[_Profiled]) -> float:
    """The largest difference between a class's shares in two quarters of the blocks."""
    ends = [len(blocks) * quarter // _QUARTERS for quarter in range(_QUARTERS + 1)]
    shares = [_shares(_typical(blocks[start:end])) for start, end in pairwise(ends)]
    by_class = [[of_quarter.get(name, 0.0) for of_quarter in shares] for name in CLASSES]
    return max(max(of_class) - min(of_class) for of_class in by_class)


def _check_total(total_s: float, call_s: float, framework: Framework) -> None:
    """Refuse operators that take nothing, or longer than there was time on all threads."""
    if not total_s:
        raise ProbeError(f"the profiler of {framework.name} has seen no operator")
    threads = framework.threads() or 1
    if total_s > _OF_CALL * threads * call_s:
        raise ProbeError(
            f"the profiler of {framework.name} says that operators took {time(total_s)} in calls "
            f"of {time(call_s)} on {count(threads, 'thread')}"
        )


def _profiler(case: Case) -> Profiler | None:
    name = case.framework.name
    try:
        return case.framework.profiler(case.cell.device)
    except ImportError as error:
        raise ProbeError(f"the profiler of {name} cannot be imported: {error}") from error


def _sampled(case: Case, clock: Clock, turn: Callable[[], AbstractContextManager[None]]) -> Sampled:
    """Functions that a call of a case spends its time in."""
    run = case.bind().run
    warm_up(run, clock, _WARMUP_S, _WARMUP_AT_LEAST_S)
    ended = clock.wait
    wait = None if ended is None else lambda _: ended()
    with turn():
        calls_s = [clock.time(run)[0] for _ in range(_TRIAL_CALLS)]
        try:
            return sampled(RepeatedCall(run, statistics.median(calls_s), wait=wait))
        except ProbeError as error:
            raise ProbeError(f"{case.framework.name} has no profiler; {error}") from error


def _shares(operators: Sequence[Operator]) -> dict[str, float]:
    """Shares of the operators' time by class."""
    total_s = sum(operator.time_s for operator in operators)
    shares: defaultdict[str, float] = defaultdict(float)
    for operator in operators:
        shares[operator.operator_class] += operator.time_s / total_s if total_s else 0.0
    return shares
