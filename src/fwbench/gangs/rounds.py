"""Rounds of steps that all replicas take together: timed, counted by a clock, and summed up."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwbench.frameworks.member import Member, Place
from fwbench.measure.clock import Clock, RoundFacts, preempted_rounds
from fwbench.measure.resources import CpuUse, cpu_use, sent_bytes
from fwbench.records.facts import Replica, Serving
from fwbench.terms.replicas import link_of

#: An answer of a role.
Answer = Mapping[str, Any]


def timed_round(
    member: Member, run: Callable[[], Any], wait: Callable[[], Any] | None, steps: int
) -> dict[str, Any]:
    """Pass a barrier, then take steps, timed.

    Messages of the controller come before the barrier and after the last reading, so they are in no
    time. Clocks of two processes are never compared.

    Args:
        wait: waits until the device is idle; None if a step is done when it returns.
        steps: a single one would say little, as replicas leave a barrier one by one.

    Returns:
        ``seconds`` of all steps, ``cpu_s`` and ``preempted`` of this process, and ``sent_bytes``
        without those of the barrier, None if the system does not count them.
    """
    before = cpu_use()
    collects = gc.isenabled()
    gc.disable()
    try:
        member.barrier()
        sent = sent_bytes()
        start = time.perf_counter()
        for _ in range(steps):
            run()
        if wait is not None:
            wait()
        seconds = time.perf_counter() - start
    finally:
        if collects:
            gc.enable()
    used, now = cpu_use() - before, sent_bytes()
    return {
        "seconds": seconds,
        "cpu_s": used.cpu_s,
        "preempted": used.preempted,
        "sent_bytes": None if sent is None or now is None else now - sent,
    }


def usage() -> dict[str, Any]:
    """The resources that this process has used since its start, named as by :func:`timed_round`."""
    cpu_s, preempted = cpu_use()
    return {"cpu_s": cpu_s, "preempted": preempted, "sent_bytes": sent_bytes()}


@dataclass(frozen=True)
class Round:
    """Steps that all replicas took together."""

    steps: int
    #: The answer of :func:`timed_round` in each replica.
    ranks: Sequence[Answer]
    #: Whether a record counts the round, as it does an epoch, and not its steps.
    whole: bool = False

    @property
    def counted(self) -> int:
        """The number that a record would count."""
        return 1 if self.whole else self.steps

    @property
    def step_s(self) -> float:
        """Seconds of a step, by worker 0's clock."""
        return float(self.ranks[0]["seconds"]) / self.steps


class GangClock(Clock):
    """A timer for pytest-benchmark that shows the time of worker 0's clock.

    A controller's messages take time, too. So the clock that pytest-benchmark reads before and
    after a round stands still but for :meth:`add`, by the seconds of one step or epoch.
    """

    #: A step's time is that of many, divided: it is finer than any reading.
    precision_s = 1e-9

    def __init__(self) -> None:
        self._now_s = 0.0
        self.rounds: list[Round] = []
        super().__init__(lambda: self._now_s)
        self.__name__ = "gang"

    def __call__(self) -> float:
        """The sum of the seconds of a step, or of the epoch, of each round so far."""
        return self._now_s

    def add(self, done: Round) -> None:
        """Add a round, by the time of one of its steps, or of the epoch."""
        self.rounds.append(done)
        self.pass_by(float(done.ranks[0]["seconds"]) / done.counted)

    def pass_by(self, seconds: float) -> None:
        """Let time pass that is in no round."""
        self._now_s += seconds

    def facts(self, rounds_s: Sequence[float], iterations: int) -> RoundFacts:
        """Facts of all replicas in the rounds just measured, in seconds of a step or an epoch."""
        rounds = self.rounds[-len(rounds_s) :]
        return {
            "completion_s": statistics.median(rounds_s),
            "cpu_s": sum(rank["cpu_s"] / done.counted for done in rounds for rank in done.ranks),
            "wall_s": sum(rounds_s),
            "preempted": sum(map(_was_preempted, rounds)) / len(rounds),
        }


def _was_preempted(done: Round) -> bool:
    return any(
        preempted_rounds(1, rank["seconds"], CpuUse(rank["cpu_s"], rank["preempted"]))
        for rank in done.ranks
    )


def replicas(greetings: Sequence[Answer], rounds: Sequence[Round]) -> list[Replica]:
    """The facts of every replica."""
    return [_replica(rank, greeting, rounds) for rank, greeting in enumerate(greetings)]


def _replica(rank: int, greeting: Answer, rounds: Sequence[Round]) -> Replica:
    answers = [(done.steps, done.ranks[rank]) for done in rounds]
    steps_s = [answer["seconds"] / steps for steps, answer in answers]
    steps = sum(steps for steps, _ in answers)
    sent = [answer["sent_bytes"] for _, answer in answers]
    return Replica(
        rank=rank,
        host=greeting["host"],
        cpus=greeting["cpus"],
        threads=greeting["threads"],
        step_s=statistics.median(steps_s),
        p90_s=float(np.percentile(steps_s, 90)),
        max_s=max(steps_s),
        cpu_s=sum(answer["cpu_s"] for _, answer in answers) / steps,
        preempted=sum(answer["preempted"] for _, answer in answers),
        sent_bytes=None if None in sent else sum(sent) / steps,
    )


def link_facts(network: str, ranks: Sequence[Replica]) -> dict[str, float]:
    """The link of each replica and its utilization; empty for replicas joined by memory."""
    link = link_of(network)
    if link is None:
        return {}
    facts = {"link_bytes_per_s": link.bytes_per_s, "link_delay_s": link.delay_s}
    sent = [rank.sent_bytes for rank in ranks if rank.sent_bytes is not None]
    if sent:
        facts["link_utilization"] = max(sent) / ranks[0].step_s / link.bytes_per_s
    return facts


def oversubscribed(greetings: Sequence[Answer]) -> bool:
    """Return whether the processes on any machine have more threads than it has CPUs."""
    threads: dict[str, int] = {}
    cpus: dict[str, int] = {}
    for greeting in greetings:
        host = greeting["host"]
        threads[host] = threads.get(host, 0) + (greeting["threads"] or 1)
        cpus[host] = max(cpus.get(host, 0), greeting["cpus"])
    return any(threads[host] > cpus[host] for host in threads)


def serving_facts(
    places: Sequence[tuple[Place, Answer]],
    before: Sequence[Answer],
    after: Sequence[Answer],
    steps: int,
) -> list[Serving]:
    """The facts of every process that takes no steps."""
    return [
        Serving(
            role=place.role,
            rank=place.rank,
            cpus=greeting["cpus"],
            threads=greeting["threads"],
            cpu_s=(now["cpu_s"] - then["cpu_s"]) / steps,
            preempted=now["preempted"] - then["preempted"],
            sent_bytes=None
            if None in (now["sent_bytes"], then["sent_bytes"])
            else (now["sent_bytes"] - then["sent_bytes"]) / steps,
        )
        for (place, greeting), then, now in zip(places, before, after, strict=True)
    ]
