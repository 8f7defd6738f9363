"""Cases that a gang does: bound in every role, checked, timed round by round, checked again."""

import math
import statistics
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, ClassVar, Self, cast

from fwbench.cases import learning
from fwbench.cases.case import Case
from fwbench.errors import WrongTraining
from fwbench.gangs import checks
from fwbench.gangs import rounds as facts
from fwbench.gangs.checks import Answers
from fwbench.gangs.gang import Composition, Gang, composition_of, refuse_too_large
from fwbench.gangs.rounds import GangClock, Round
from fwbench.gangs.shares import Task
from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.records.facts import CaseFacts, Checked, GangFacts, Serving
from fwbench.terms.replicas import NO_STRAGGLER, WITH_SERVERS, link_of, straggler_of
from fwbench.terms.toggles import asynchronous
from fwbench.workloads.collectives import all_reduce
from fwbench.workloads.models.stable_weights import to_share
from fwbench.workloads.training import Trains

#: Steps of a pilot, and the least steps of a round: single steps say little, since replicas leave a
#: barrier one by one; of ten the median round was within 1.4 % of the truth.
_PILOT_STEPS = 3
_STEPS_AT_LEAST = 10

#: How long a round is at least.
_ROUND_S = 0.05

#: Steps with known results, before and after the timing.
CHECKED_STEPS = 3

#: The rate that is expected of the slowest wire when nothing is known of it yet.
_SLOWEST_BYTES_PER_S = 1e6

#: How long building a model, compiling it and computing its reference may take, as long as
#: anything of it runs.
_BIND_S = 60.0

#: How many arrays of an exchange a role has at once. Seen were 3.8 to 5.3, in NumPy and PyTorch,
#: with 2 and 3 replicas, arrays of 24 million numbers and every exchange: the source, the result,
#: parts on their way, and, while that is checked, the expected result and the differences.
_ARRAYS = 6.0

#: How often steps are timed without an exchange.
_ROUNDS_ALONE = 3

#: How much longer than other steps these may take: rounds vary, and some exchange next to nothing.
_ALONE = 1.2

#: How often a role has each parameter. Seen were 10.9, in PyTorch with momentum, of 10.8 million
#: parameters: weights, gradients, buckets of the exchange, momenta, the initial weights, and those
#: of the reference with their gradients in float64. Adam has one more.
_PARAMETERS = 12.0

#: A result of a layer, and its gradient.
_RESULTS = 2.0

#: Gives the gang of a composition, started if it is not alive.
Gangs = Callable[[Composition], Gang]


class GangCase(Case):
    """A case that replicas do together: worker 0's steps are timed, in rounds of ten or more."""

    statistic = "median"

    #: Set by :meth:`with_gangs`.
    _gangs: Gangs
    _engine: str
    _threads: int
    _are_here: bool

    #: Whether parameter servers update parameters, or only add up what they are sent.
    servers_update: ClassVar[bool] = True

    #: The processes that took no steps while rounds were timed.
    _serving: Sequence[Serving] = ()

    def with_gangs(self, gangs: Gangs, engine: str, threads: int, *, are_here: bool = True) -> Self:
        """Give this case what it needs in addition to others, and return it."""
        self._gangs, self._engine, self._threads = gangs, engine, threads
        self._are_here = are_here
        return self

    @property
    @abstractmethod
    def elements(self) -> int:
        """The number of array elements that replicas exchange in a step."""

    @property
    def role_numbers(self) -> float:
        """The number of array elements that a role has in memory at once, on the average."""
        return _ARRAYS * self.elements

    @property
    def loop(self) -> Mapping[str, Any] | None:
        """The contents of an epoch; None for a case without epochs."""
        return None

    @abstractmethod
    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Verify the steps of a check."""

    @property
    def checked_steps(self) -> int:
        """The number of steps with known results before the timing."""
        return CHECKED_STEPS

    def _measure(self) -> None:
        with self._unused_on_failure():
            composition = self._composition
            arrays_bytes = self.role_numbers * ITEMSIZE_BYTES[self.cell.dtype]
            if self._are_here:
                refuse_too_large(composition, arrays_bytes)
            gang = self._gangs(composition)
            try:
                facts, checked, step_s = self._begin(gang)
            except BaseException:
                gang.kill()  # the state of its roles is unknown
                raise
        if not self._benchmark.enabled:
            self._benchmark.leave_unused()
            return
        with self._discarded_on_failure():
            try:
                timed = self._time(gang, step_s)
                # Of a loop, which was not checked before, all steps.
                steps = CHECKED_STEPS if checked else self.checked_steps
                made = (timed.warmup_calls or 0) + sum(
                    done.steps for done in cast("GangClock", self._clock).rounds
                )
                again, verified = self._verify_timed(gang, steps, made)
                alone_s = self.alone_s(gang)
            except BaseException:
                gang.kill()
                raise
        checked = verified | checked | Checked.unchecked({"steps_timed": verified.steps})
        rounds = cast("GangClock", self._clock).rounds
        gang_facts = self._gang_facts(gang, checked, alone_s)
        self._record(again | facts | timed | self.throughput(rounds) | gang_facts)

    @property
    def _composition(self) -> Composition:
        framework = self.framework
        composition = composition_of(
            self.cell, framework.capabilities.coordinator, self._threads, framework.version
        )
        return replace(composition, updating=self._has_servers and self.servers_update)

    @property
    def _has_servers(self) -> bool:
        return self.cell.toggle("strategy") in WITH_SERVERS

    @property
    def least_bytes(self) -> float:
        """The bytes that all replicas together must send in a step.

        Of an all-reduce they are those of the best algorithm; with servers, every worker fetches
        all parameters and sends an update of all.
        """
        replicas = self.cell.replicas
        times = 2.0 * replicas if self._has_servers else all_reduce.sent(replicas)
        return times * self.exchanged_bytes

    @property
    def exchanged_bytes(self) -> int:
        """The size of the arrays that replicas exchange in a step."""
        return self.elements * ITEMSIZE_BYTES[self.cell.dtype]

    def _begin(self, gang: Gang) -> tuple[CaseFacts, Checked, float]:
        """Bind and check; returns facts of the case and of its check, and the seconds of a step."""
        cell = self.cell
        quiet_s = self._quiet_s(gang)
        self._bind(gang, quiet_s)
        slow_s = max(quiet_s, self.least_bytes / _SLOWEST_BYTES_PER_S)
        first = self._round(
            gang, 1, _BIND_S + slow_s, f"taking the first step of {cell.id}", quiet_s
        )
        quiet_s = max(quiet_s, gang.limits.limit_s(first.step_s))
        steps = self.checked_steps
        case_facts, checked = self._check(gang, steps, first.step_s, "before the timing", quiet_s)
        pilot = self._round(gang, _PILOT_STEPS, gang.limits.limit_s(_PILOT_STEPS * first.step_s))
        case_facts |= CaseFacts(first_call_in_process_s=first.step_s)
        return case_facts, checked, pilot.step_s

    def _bind(self, gang: Gang, quiet_s: float) -> None:
        cell = self.cell
        task = Task(
            cell.workload.name,
            cell.batch,
            cell.device,
            cell.execution,
            cell.dtype,
            sparse=cell.toggle("sparse") == "on",
            shape="" if isinstance(cell.size, int) else str(cell.size),
            recompute=cell.toggle("recompute") == "on",
            synchronized=cell.toggle("normalization") == "synchronized",
            late=asdict(late) if (late := straggler_of(cell.toggle("straggler"))) else None,
            loop=self.loop,
        )
        doing = f"building {cell.id}"
        gang.ask("bind", asdict(task), limit_s=_BIND_S, doing=doing, quiet_s=quiet_s)

    def _check(
        self, gang: Gang, steps: int, step_s: float, when: str, quiet_s: float
    ) -> tuple[CaseFacts, Checked]:
        """Take steps with known results, and verify them in all processes."""
        limit_s, before = _BIND_S + gang.limits.limit_s(steps * step_s), gang.usage()
        doing = f"checking {steps} steps"
        answers = gang.ask("check", steps, limit_s=limit_s, doing=doing, quiet_s=quiet_s)
        after = gang.usage()
        case_facts, checked = self.judge(answers, when)
        checked |= checks.served(before, after, self.updates(steps, checked=True), when)
        sent = checks.sent(answers, before, after)
        who = f"{steps} steps of {self.cell.replicas} replicas"
        checks.refuse_silence(who, sent, steps * self.least_bytes, f"{self.elements:,} numbers")
        return case_facts, checked | Checked.unchecked({"sent_bytes": sent})

    def _quiet_s(self, gang: Gang) -> float:
        """The time that all roles may sleep in a step: while its bytes are on their way."""
        link, late = link_of(gang.composition.network), straggler_of(self.cell.toggle("straggler"))
        wire_s = self.least_bytes / link.bytes_per_s + link.delay_s if link else 0.0
        return gang.limits.limit_s(wire_s + (late.delay_s if late else 0.0))

    def _round(
        self, gang: Gang, steps: int, limit_s: float, doing: str = "", quiet_s: float = math.inf
    ) -> Round:
        doing = doing or f"taking {steps} steps of {self.cell.id}"
        return Round(steps, gang.ask("round", steps, limit_s=limit_s, doing=doing, quiet_s=quiet_s))

    def _judge_rounds(self, gang: Gang, before: Answers, when: str) -> None:
        """Verify what all timed rounds have sent, and servers updated, since this usage."""
        rounds, after = cast("GangClock", self._clock).rounds, gang.usage()
        taken = sum(done.steps for done in rounds)
        checks.served(before, after, self.updates(taken), when)
        self._serving = facts.serving_facts(gang.serving, before, after, taken)
        answers = [rank for done in rounds for rank in done.ranks]
        self.judge_timed(checks.sent(answers, before, after), taken, len(rounds))

    def _time(self, gang: Gang, step_s: float) -> CaseFacts:
        steps = max(_STEPS_AT_LEAST, math.ceil(_ROUND_S / step_s))
        limit_s = gang.limits.limit_s(steps * step_s)
        clock = cast("GangClock", self._clock)
        warmup_s, warmup_calls = 0.0, _PILOT_STEPS
        while warmup_s < self._warmup_s:
            warmup = self._round(gang, steps, limit_s)
            warmup_s += steps * warmup.step_s
            warmup_calls += steps

        def run() -> None:
            clock.add(self._round(gang, steps, limit_s))

        rounds = self._benchmark.rounds_of(steps * step_s)
        before = gang.usage()
        with self._other_processes:
            self._benchmark.time_rounds(run, setup=lambda: None, rounds=rounds)
        self._judge_rounds(gang, before, "in the timed rounds")
        return CaseFacts(
            warmup_calls=warmup_calls,
            warmup_s=warmup_s,
            steady=None,
            threads=gang.greetings[0]["threads"],
        )

    def _verify_timed(self, gang: Gang, steps: int, made: int) -> tuple[CaseFacts, Checked]:
        """Verify the steps made so far, of which replicas of a model repeat all, and others."""
        step_s = cast("GangClock", self._clock).rounds[-1].step_s
        quiet_s = gang.limits.limit_s(step_s)
        doing, limit_s = "verifying the timed steps", _BIND_S + gang.limits.limit_s(made * step_s)
        self.judge_last(gang.ask("verify_last", limit_s=limit_s, doing=doing, quiet_s=quiet_s))
        return self._check(gang, steps, step_s, "after the timing", quiet_s)

    def updates(self, steps: int, *, checked: bool = False) -> int:
        """The number of updates of each array of parameters in some steps, or in their check."""
        return steps if self.cell.direction == "train" else 0

    def judge_timed(self, sent: int | None, steps: int, rounds: int) -> None:
        """Verify that enough was sent in timed steps, but for one a round: it may be on its way."""
        who = f"{steps} timed steps of {self.cell.replicas} replicas"
        least_bytes = (steps - rounds) * self.least_bytes
        checks.refuse_silence(who, sent, least_bytes, f"{self.elements:,} numbers")

    def judge_last(self, answers: Answers) -> None:
        """Verify the answers of roles, which have verified their last timed step themselves."""

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """The throughput of all timed rounds; empty if nothing is counted."""
        return CaseFacts()

    def alone_s(self, gang: Gang) -> float | None:
        """The seconds of a step without its exchange; None if that is not known."""
        return None

    def _gang_facts(self, gang: Gang, checked: Checked, alone_s: float | None) -> CaseFacts:
        rounds = cast("GangClock", self._clock).rounds
        ranks = facts.replicas(gang.greetings, rounds)
        medians_s = [rank.step_s for rank in ranks]
        sent = [rank.sent_bytes for rank in ranks]
        sent += [process.sent_bytes for process in self._serving]
        late = self.cell.toggle("straggler")
        return CaseFacts(
            gang=GangFacts(
                replicas=gang.composition.replicas,
                strategy=gang.composition.strategy,
                equal_work=not asynchronous(self.cell.toggles),
                servers=gang.composition.servers,
                engine=self._engine,
                network=gang.network,
                **facts.link_facts(gang.composition.network, ranks),
                straggler=None if late == NO_STRAGGLER else late,
                oversubscribed=facts.oversubscribed(gang.all_greetings),
                start_s=gang.start_s,
                steps_per_round=rounds[-1].steps,
                ranks=ranks,
                serving=[*self._serving],
                skew=max(medians_s) / min(medians_s) - 1.0,
                least_bytes_per_step=self.least_bytes,
                bytes_per_step=None if None in sent else float(sum(map(float, filter(None, sent)))),
                alone_s=alone_s,
                verified=checked,
                **self.rates(medians_s[0]),
            )
        )

    def rates(self, step_s: float) -> Mapping[str, float]:
        """Further facts of the gang, by the median time of worker 0's steps."""
        return {}


class SharedStepCase(GangCase):
    """A training step that replicas share."""

    @cached_property
    def _objective(self) -> Any:
        objective = cast("Trains", self.cell.workload).at(self.cell.size)
        return to_share(objective, *self._checked_as)

    @property
    def _checked_as(self) -> tuple[int, int]:
        """The batch size, and the number of parts of it that are normalized in the check."""
        together = self.cell.toggle("normalization") == "synchronized"
        return self.cell.batch, 1 if together else self.cell.replicas

    @property
    def elements(self) -> int:
        """The number of parameters, of each of which a gradient is exchanged."""
        return int(self._objective.parameters)

    @property
    def role_numbers(self) -> float:
        """The parameters, and the results of the layers for a share of the batch."""
        results = sum(math.prod(node.output) for node in self._objective.graph.nodes)
        share = self.cell.batch / self.cell.replicas
        return _PARAMETERS * self.elements + _RESULTS * share * results

    @property
    def checked_steps(self) -> int:
        """The number for one worker."""
        timed = self._benchmark.enabled
        return int(self._objective.checked_steps) if timed else learning.CHECKED_UNTIMED

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Verify that the mean losses are the reference's, and all weights equal."""
        judged = (answers, self._objective, self._checked_as, self.cell.dtype, when)
        return self._with_model(*checks.training(*judged))

    def _with_model(self, case_facts: CaseFacts, checked: Checked) -> tuple[CaseFacts, Checked]:
        """Add the facts that the record of one worker has, too."""
        model = CaseFacts(parameters=self.elements, checked_steps=checked.steps)
        return case_facts | model, checked

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """Images or tokens per second, by the median of steps, as a single process has them."""
        return self._rate([statistics.median(done.step_s for done in rounds)])

    def _rate(self, steps_s: Sequence[float]) -> CaseFacts:
        """The rate of processes that each take as large a part of every batch."""
        objective = self._objective
        units = self.cell.batch * objective.units_per_example / len(steps_s)
        rate: dict[str, Any] = {f"{objective.unit}_per_s": sum(units / s for s in steps_s)}
        return CaseFacts(**rate)

    def alone_s(self, gang: Gang) -> float | None:
        """The median of a few rounds, after which the copies of the model differ.

        None as well where replicas have not trained in them, or have exchanged, or took longer.
        """
        clock = cast("GangClock", self._clock)
        steps, step_s = clock.rounds[-1].steps, clock.rounds[-1].step_s
        limit_s = gang.limits.limit_s(steps * step_s)
        doing = "taking steps without an exchange"
        rounds = [
            gang.ask("alone", steps, limit_s=limit_s, doing=doing) for _ in range(_ROUNDS_ALONE)
        ]
        ranks = [rank for round_ranks in rounds for rank in round_ranks]
        if None in ranks or not all(rank["trained"] for rank in ranks):
            return None
        alone_s = statistics.median(Round(steps, ranks).step_s for ranks in rounds)
        is_quiet = (checks.sent(ranks) or 0) < len(rounds) * steps * self.least_bytes / 2
        typical_s = statistics.median(done.step_s for done in clock.rounds)
        return alone_s if is_quiet and alone_s <= _ALONE * typical_s else None

    def judge_last(self, answers: Answers) -> None:
        """Verify that all weights are equal after the timing, and others than before."""
        checks.same_weights(answers, "after the timing", "the timed steps")
        checks.refuse_wrong(answers, "after the timing", WrongTraining)


class AsynchronousStepCase(SharedStepCase):
    """A training step of workers that do not wait for each other."""

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """The sum of all workers' rates, each by its own clock: none waits for slower ones."""
        of_all = ([rank["seconds"] / of.steps for rank in of.ranks] for of in rounds)
        clocks = zip(*of_all, strict=True)
        return self._rate([statistics.median(steps_s) for steps_s in clocks])

    @property
    def _checked_as(self) -> tuple[int, int]:
        """A share of one worker."""
        return self.cell.batch // self.cell.replicas, 1

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Verify that one worker alone has the reference's losses, and all together learn."""
        share, _ = self._checked_as
        dtype = self.cell.dtype
        return self._with_model(*checks.asynchronous(answers, self._objective, share, dtype, when))

    def updates(self, steps: int, *, checked: bool = False) -> int:
        """One of each worker in a step; in the check, one of them takes as many steps alone."""
        return steps * (self.cell.replicas + checked)

    def judge_last(self, answers: Answers) -> None:
        """Verify that servers have made all timed updates."""
        checks.all_made(answers, "after the timing")
