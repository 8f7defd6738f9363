"""A case that a gang does: bound in every role, checked, timed round by round, checked again."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, cast

from fwbench.cases.case import Case
from fwbench.errors import ProbeError
from fwbench.gangs import facts, judgement, memory
from fwbench.gangs.clock import GangClock, Round
from fwbench.gangs.gang import Gang
from fwbench.gangs.judgement import Answers
from fwbench.gangs.places import Composition, composition_of
from fwbench.gangs.shares import Task
from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.records.facts import CaseFacts, Checked, GangFacts, Serving
from fwbench.terms.link import link_of
from fwbench.terms.straggler import NOBODY, straggler_of
from fwbench.terms.strategy import WITH_SERVERS
from fwbench.toggles import asynchronous
from fwbench.workloads.collectives import all_reduce

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

#: Steps of a pilot, and how many a round has at least: single steps say little, since replicas
#: leave a barrier one by one; of ten the median round was within 1.4 % of the truth.
_PILOT_STEPS = 3
_STEPS_AT_LEAST = 10

#: How long a round is at least.
_ROUND_S = 0.05

#: Steps with known results, before and after the timing.
CHECKED_STEPS = 3

#: What is expected of the slowest wire when nothing is known of it yet.
_SLOWEST_BYTES_PER_S = 1e6

#: How long building a model, compiling it and computing its reference may take, as long as
#: anything of it runs.
_BIND_S = 60.0

#: How many arrays of an exchange a role has at once. Seen were 3.8 to 5.3, in NumPy and PyTorch,
#: with 2 and 3 replicas, arrays of 24 million numbers and every exchange: what it has, what it
#: gets, what is on its way, and, when that is checked, what is right and where it is not.
_ARRAYS = 6.0

#: Gives the gang of a composition, started if it is not alive.
Gangs = Callable[[Composition], Gang]


class GangCase(Case):
    """A case that replicas do together: worker 0's steps are timed, in rounds of ten or more."""

    statistic = "median"

    #: How gangs are found, which engine starts them, and the threads of a role; set by
    #: :meth:`with_gangs`.
    _gangs: Gangs
    _engine: str
    _threads: int
    _are_here: bool

    #: Whether parameter servers update what they have, or only add up what they are sent.
    servers_update: ClassVar[bool] = True

    #: What took no steps while rounds were timed.
    _serving: Sequence[Serving] = ()

    def with_gangs(
        self, gangs: Gangs, engine: str, threads: int, *, are_here: bool = True
    ) -> GangCase:
        """This case, with what it needs in addition to others.

        Args:
            gangs: gives the gang of a composition.
            engine: the name of what starts it.
            threads: of each role.
            are_here: whether all roles take this machine's memory.
        """
        self._gangs, self._engine, self._threads = gangs, engine, threads
        self._are_here = are_here
        return self

    @property
    @abstractmethod
    def elements(self) -> int:
        """How many numbers replicas exchange in a step."""

    @property
    def held(self) -> float:
        """How many numbers a role has in memory at once, about, on the average."""
        return _ARRAYS * self.elements

    @property
    def loop(self) -> Mapping[str, Any] | None:
        """What an epoch is made of; None for what has no epochs."""
        return None

    @abstractmethod
    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """Whether the steps of a check were right.

        Args:
            answers: of all replicas.
            when: they were taken, for messages.

        Raises:
            VerificationError: they were not.
        """

    @property
    def checked_steps(self) -> int:
        """How many steps with known results come before the timing."""
        return CHECKED_STEPS

    def _probed(self, probe: Any) -> None:
        """Refuse probes, which look into a single process.

        Raises:
            ProbeError: always.
        """
        raise ProbeError(
            f"a case of {self.cell.replicas} replicas cannot be profiled, nor its memory measured: "
            "that looks into one process"
        )

    def _measure(self) -> None:
        with self._unused_on_failure():
            composition = self._composition
            arrays_bytes = self.held * ITEMSIZE_BYTES[self.cell.dtype]
            if self._are_here:
                memory.refuse_too_large(composition, arrays_bytes)
            gang = self._gangs(composition)
            try:
                found, checked, pilot_s = self._begin(gang)
            except BaseException:
                gang.kill()  # what its roles are doing is not known
                raise
        if not self._benchmark.enabled:
            self._benchmark.leave_unused()
            return
        with self._discarded_on_failure():
            try:
                timed = self._time(gang, pilot_s)
                again = self._look_again(gang, pilot_s)
                alone_s = self.alone_s(gang)
            except BaseException:
                gang.kill()
                raise
        checked |= Checked.unchecked({"steps_timed": again.steps})
        rounds = cast("GangClock", self._clock).rounds
        own = self._gang_facts(gang, checked, alone_s)
        self._record(found | timed | self.throughput(rounds) | own)

    @property
    def _composition(self) -> Composition:
        framework = self.framework
        own = composition_of(self.cell, framework.coordinator, self._threads, framework.version)
        return replace(own, updating=self._has_servers and self.servers_update)

    @property
    def _has_servers(self) -> bool:
        return self.cell.toggle("strategy") in WITH_SERVERS

    @property
    def least_bytes(self) -> float:
        """What all processes must send in a step, together.

        Every worker pushes to servers and pulls from them what it has; an all-reduce takes less.
        """
        replicas = self.cell.replicas
        times = 2.0 * replicas if self._has_servers else all_reduce.sent(replicas)
        return times * self.exchanged_bytes

    @property
    def exchanged_bytes(self) -> int:
        """The size of what replicas exchange in a step."""
        return self.elements * ITEMSIZE_BYTES[self.cell.dtype]

    def _begin(self, gang: Gang) -> tuple[CaseFacts, Checked, float]:
        """Bind, take one step, check, and run a pilot; returns what was found, and its step."""
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
            late=asdict(late) if (late := straggler_of(cell.toggle("straggler"))) else None,
            loop=self.loop,
        )
        doing, quiet_s = f"building {cell.id}", self._quiet_s(gang)
        gang.ask("bind", asdict(task), limit_s=_BIND_S, doing=doing, quiet_s=quiet_s)
        slow_s = max(quiet_s, self.least_bytes / _SLOWEST_BYTES_PER_S)
        first = self._round(
            gang, 1, _BIND_S + slow_s, f"taking the first step of {cell.id}", quiet_s
        )
        quiet_s = max(quiet_s, gang.limits.of(first.step_s))
        steps = self.checked_steps
        found, checked = self._check(gang, steps, first.step_s, "before the timing", quiet_s)
        pilot = self._round(gang, _PILOT_STEPS, gang.limits.of(_PILOT_STEPS * first.step_s))
        found |= CaseFacts(first_call_in_process_s=first.step_s)
        return found, checked, pilot.step_s

    def _check(
        self, gang: Gang, steps: int, step_s: float, when: str, quiet_s: float
    ) -> tuple[CaseFacts, Checked]:
        """Take steps with known results, and judge what everyone did."""
        limit_s, before = _BIND_S + gang.limits.of(steps * step_s), gang.used()
        doing = f"checking {steps} steps"
        answers = gang.ask("check", steps, limit_s=limit_s, doing=doing, quiet_s=quiet_s)
        after = gang.used()
        found, checked = self.judge(answers, when)
        checked |= judgement.served(before, after, self.updates(steps, checked=True), when)
        moved, who = (
            judgement.sent(answers, before, after),
            f"{steps} steps of {self.cell.replicas}",
        )
        least_bytes, what = steps * self.least_bytes, f"{self.elements:,} numbers"
        judgement.refuse_silence(f"{who} replicas", moved, least_bytes, what)
        return found, checked | Checked.unchecked({"sent_bytes": moved})

    def _quiet_s(self, gang: Gang) -> float:
        """How long all roles may sleep in a step: for as long as its bytes are on their way."""
        link, late = link_of(gang.composition.network), straggler_of(self.cell.toggle("straggler"))
        wire_s = self.least_bytes / link.bytes_per_s + link.delay_s if link else 0.0
        return gang.limits.of(wire_s + (late.delay_s if late else 0.0))

    def _round(
        self, gang: Gang, steps: int, limit_s: float, doing: str = "", quiet_s: float = math.inf
    ) -> Round:
        doing = doing or f"taking {steps} steps of {self.cell.id}"
        return Round(steps, gang.ask("round", steps, limit_s=limit_s, doing=doing, quiet_s=quiet_s))

    def _time(self, gang: Gang, pilot_s: float) -> CaseFacts:
        """Warm up, and time rounds."""
        steps = max(_STEPS_AT_LEAST, math.ceil(_ROUND_S / pilot_s))
        limit_s = gang.limits.of(steps * pilot_s)
        clock = cast("GangClock", self._clock)
        warmup_s, warmup_calls = 0.0, _PILOT_STEPS
        while warmup_s < self._warmup_s:
            warmup = self._round(gang, steps, limit_s)
            warmup_s += steps * warmup.step_s
            warmup_calls += steps

        def run() -> None:
            clock.add(self._round(gang, steps, limit_s))

        rounds = self._benchmark.rounds_of(steps * pilot_s)
        before = gang.used()
        with self._other_processes:
            self._benchmark.time_rounds(run, setup=lambda: None, rounds=rounds)
        taken = sum(each.steps for each in clock.rounds)
        after = gang.used()
        judgement.served(before, after, self.updates(taken), "in the timed rounds")
        self._serving = facts.serving(gang.serving, before, after, taken)
        told = [rank for each in clock.rounds for rank in each.ranks]
        self.judge_timed(judgement.sent(told, before, after), taken)
        return CaseFacts(
            warmup_calls=warmup_calls,
            warmup_s=warmup_s,
            steady=None,
            threads=gang.hello[0]["threads"],
        )

    def _look_again(self, gang: Gang, pilot_s: float) -> Checked:
        """What the timed steps have left is right, and so are steps from the beginning."""
        limit_s, quiet_s = _BIND_S + gang.limits.of(pilot_s), gang.limits.of(pilot_s)
        doing = "looking at what was timed"
        self.judge_left(gang.ask("look", limit_s=limit_s, doing=doing, quiet_s=quiet_s))
        return self._check(gang, CHECKED_STEPS, pilot_s, "after the timing", quiet_s)[1]

    def updates(self, steps: int, *, checked: bool = False) -> int:
        """How often servers update each array of parameters in so many steps, or their check."""
        return steps if self.cell.direction == "train" else 0

    def judge_timed(self, moved: int | None, steps: int) -> None:
        """Whether as much was sent in timed steps as must be, if their check cannot tell.

        Args:
            moved: the bytes that all processes have sent; None where that is not known.
            steps: in which they have.

        Raises:
            VerificationError: it was not.
        """

    def judge_left(self, answers: Answers) -> None:
        """Whether what the last timed step has left is right; roles have looked themselves.

        Raises:
            VerificationError: it is not.
        """

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """What went through in a second, of all rounds; nothing where nothing is counted.

        Args:
            rounds: that were timed.
        """
        return CaseFacts()

    def alone_s(self, gang: Gang) -> float | None:
        """What a step takes without its exchange; None where that is not known."""
        return None

    def _gang_facts(self, gang: Gang, checked: Checked, alone_s: float | None) -> CaseFacts:
        rounds = cast("GangClock", self._clock).rounds
        ranks = facts.replicas(gang.hello, rounds)
        medians_s = [rank.step_s for rank in ranks]
        sent = [each.sent_bytes for each in ranks] + [each.sent_bytes for each in self._serving]
        late = self.cell.toggle("straggler")
        return CaseFacts(
            gang=GangFacts(
                replicas=gang.composition.replicas,
                strategy=gang.composition.strategy,
                equal_work=not asynchronous(self.cell.toggles),
                servers=gang.composition.servers,
                engine=self._engine,
                network=gang.network,
                **facts.of_link(gang.composition.network, ranks),
                straggler=None if late == NOBODY else late,
                oversubscribed=facts.oversubscribed(gang.everyone),
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
            ),
        )

    def rates(self, step_s: float) -> Mapping[str, float]:
        """What the gang's record has besides, by the median time of worker 0's steps."""
        return {}
