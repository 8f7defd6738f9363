"""Facts of replicas: part of a case's record (:mod:`fwbench.records.facts`)."""

from __future__ import annotations

from fwbench.records.checks import NOT_NEGATIVE, POSITIVE
from fwbench.records.table import Table, fact
from fwbench.records.units import BYTES, COUNT, NATS, PER_SECOND, SECONDS, SHARE

_NO_COUNTER = "where the system does not count what a process sends"


class Replica(Table):
    """One replica, by its own clock."""

    rank: int = fact("which replica, from 0", COUNT, NOT_NEGATIVE)
    host: str | None = fact("name of the machine that it ran on")
    cpus: int = fact("CPUs that it may use", COUNT, POSITIVE)
    threads: int | None = fact(
        "threads that it computes with", COUNT, POSITIVE, null="where the framework does not tell"
    )
    step_s: float = fact("median time of its steps", SECONDS, POSITIVE)
    p90_s: float = fact("time that nine in ten rounds do not exceed, of a step", SECONDS, POSITIVE)
    max_s: float = fact("longest round, of a step", SECONDS, POSITIVE)
    cpu_s: float = fact("processor time of a step", SECONDS, NOT_NEGATIVE)
    preempted: int = fact("how often it lost a processor", COUNT, NOT_NEGATIVE)
    sent_bytes: float | None = fact(
        "bytes that it sent in a step", BYTES, NOT_NEGATIVE, null=_NO_COUNTER
    )


class Serving(Table):
    """A process that takes no steps itself: a parameter server, or what works for a coordinator."""

    role: str = fact("what it is: `server`, or a `worker` that a coordinator gives work")
    rank: int = fact("which one of its role, from 0", COUNT, NOT_NEGATIVE)
    cpus: int = fact("CPUs that it may use", COUNT, POSITIVE)
    threads: int | None = fact(
        "threads that it computes with", COUNT, POSITIVE, null="where the framework does not tell"
    )
    cpu_s: float = fact("processor time of a step", SECONDS, NOT_NEGATIVE)
    preempted: int = fact("how often it lost a processor", COUNT, NOT_NEGATIVE)
    sent_bytes: float | None = fact(
        "bytes that it sent in a step", BYTES, NOT_NEGATIVE, null=_NO_COUNTER
    )


class Checked(Table):
    """Verification of replicas, before and after the timing."""

    steps: int = fact("steps with known results, before the timing", COUNT, POSITIVE)
    steps_timed: int | None = fact("the same once more, after the timing", COUNT, POSITIVE)
    sent_bytes: int | None = fact(
        "bytes that all processes sent in the first of them", BYTES, NOT_NEGATIVE, null=_NO_COUNTER
    )
    shard_loss_spread: float | None = fact(
        "largest difference between losses of replicas at a step: they learn from different "
        "examples",
        NATS,
        NOT_NEGATIVE,
    )
    gradient_error: float | None = fact(
        "error of the gradient that was exchanged in the first step, against the reference", SHARE,
        NOT_NEGATIVE, null="of narrow dtypes, or where a framework does not tell",
    )  # fmt: skip
    weights_equal: bool | None = fact("whether all replicas had the same weights after every step")
    updates: int | None = fact(
        "updates that servers made in them, by their own count: as many as were sent",
        COUNT, POSITIVE,
    )  # fmt: skip


class GangFacts(Table):
    """The processes that did a case together."""

    replicas: int = fact("workers that shared the case", COUNT, POSITIVE)
    strategy: str = fact("how they agreed")
    equal_work: bool = fact(
        "whether they did the work of one process: asynchronous workers do not, and are not ranked "
        "with others"
    )
    servers: int = fact("parameter servers", COUNT, NOT_NEGATIVE)
    engine: str = fact("what started them")
    network: str = fact(
        "what joined them: `loopback` is this machine's memory, not a wire; `real` is what lies "
        "between several machines"
    )
    link_bytes_per_s: float | None = fact(
        "what the link of each worker carries in each direction; absent of `loopback`",
        PER_SECOND,
        POSITIVE,
    )
    link_delay_s: float | None = fact(
        "how long everything takes from a worker to another, in addition; absent of `loopback`",
        SECONDS,
        NOT_NEGATIVE,
    )
    link_utilization: float | None = fact(
        "what the busiest worker sent in a step, over what its link carries meanwhile; absent of "
        "`loopback`",
        SHARE,
        NOT_NEGATIVE,
    )
    straggler: str | None = fact(
        "worker that slept in every step, and how long; absent where none did"
    )
    oversubscribed: bool = fact("whether they had more threads than CPUs: times show no scaling")
    start_s: float = fact("time until all were connected", SECONDS, POSITIVE)
    steps_per_round: int = fact("steps between two readings of worker 0's clock", COUNT, POSITIVE)
    ranks: list[Replica] = fact(
        "every worker; where a coordinator gives them work, the coordinator alone", filled=True
    )
    serving: list[Serving] = fact("every other process")
    skew: float = fact("longest median step of a worker over the shortest, minus 1", SHARE)
    least_bytes_per_step: float = fact(
        "bytes that all processes together must send in a step at least", BYTES, NOT_NEGATIVE
    )
    bytes_per_step: float | None = fact(
        "bytes that they sent", BYTES, NOT_NEGATIVE, null=_NO_COUNTER
    )
    bus_bytes_per_s: float | None = fact(
        "bus bandwidth of an exchange, as nccl-tests defines it: size / time, of an all-reduce "
        "x 2 (W - 1) / W, of its halves x (W - 1) / W",
        PER_SECOND, POSITIVE,
    )  # fmt: skip
    alone_s: float | None = fact(
        "median time of worker 0's steps without an exchange, on its share", SECONDS, POSITIVE
    )
    verified: Checked = fact("what was verified")

    @property
    def communication_share(self) -> float | None:
        """The part of a step that it is longer by than without its exchange."""
        return None if self.alone_s is None else max(0.0, 1 - self.alone_s / self.ranks[0].step_s)

    @property
    def places(self) -> str:
        """Where its workers were, machine by machine, without their names: ``2 x 4 CPUs``."""
        by_host: dict[str | None, list[int]] = {}
        for rank in self.ranks:
            by_host.setdefault(rank.host, []).append(rank.cpus)
        return " + ".join(
            f"{len(of_host)} x {'/'.join(map(str, sorted({*of_host})))} CPUs"
            for of_host in by_host.values()
        )
