"""What rounds of a gang come to, replica by replica, for the record."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fwbench.gangs.clock import Round
from fwbench.gangs.places import Place
from fwbench.records.facts import Replica, Serving
from fwbench.terms.link import link_of

Said = Mapping[str, Any]


def replicas(hello: Sequence[Said], rounds: Sequence[Round]) -> list[Replica]:
    """The facts of every replica.

    Args:
        hello: what each said of itself when it was started.
        rounds: that were timed.
    """
    return [_replica(rank, said, rounds) for rank, said in enumerate(hello)]


def of_link(network: str, ranks: Sequence[Replica]) -> dict[str, float]:
    """What each replica's link is, and what was made of it; nothing where memory joins them.

    Args:
        network: as the toggle ``network`` calls it.
        ranks: of all replicas.
    """
    link = link_of(network)
    if link is None:
        return {}
    found = {"link_bytes_per_s": link.bytes_per_s, "link_delay_s": link.delay_s}
    sent = [rank.sent_bytes for rank in ranks if rank.sent_bytes is not None]
    if sent:
        found["link_utilization"] = max(sent) / ranks[0].step_s / link.bytes_per_s
    return found


def oversubscribed(hello: Sequence[Said]) -> bool:
    """Whether the processes on any machine have more threads than it has CPUs.

    Args:
        hello: what each said of itself when it was started.
    """
    threads: dict[str, int] = {}
    cpus: dict[str, int] = {}
    for said in hello:
        host = said["host"]
        threads[host] = threads.get(host, 0) + (said["threads"] or 1)
        cpus[host] = max(cpus.get(host, 0), said["cpus"])
    return any(threads[host] > cpus[host] for host in threads)


def _replica(rank: int, said: Said, rounds: Sequence[Round]) -> Replica:
    own = [(each.steps, each.ranks[rank]) for each in rounds]
    steps_s = [told["seconds"] / steps for steps, told in own]
    steps = sum(steps for steps, _ in own)
    sent = [told["sent_bytes"] for _, told in own]
    return Replica(
        rank=rank,
        host=said["host"],
        cpus=said["cpus"],
        threads=said["threads"],
        step_s=statistics.median(steps_s),
        p90_s=float(np.percentile(steps_s, 90)),
        max_s=max(steps_s),
        cpu_s=sum(told["cpu_s"] for _, told in own) / steps,
        preempted=sum(told["preempted"] for _, told in own),
        sent_bytes=None if None in sent else sum(sent) / steps,
    )


def serving(
    places: Sequence[tuple[Place, Said]], before: Sequence[Said], after: Sequence[Said], steps: int
) -> list[Serving]:
    """The facts of every process that takes no steps.

    Args:
        places: each with what it said of itself when it was started.
        before: what each had used before the timed rounds.
        after: the same behind them.
        steps: of all these rounds.
    """
    return [
        Serving(
            role=place.role,
            rank=place.rank,
            cpus=said["cpus"],
            threads=said["threads"],
            cpu_s=(now["cpu_s"] - then["cpu_s"]) / steps,
            preempted=now["preempted"] - then["preempted"],
            sent_bytes=None
            if None in (now["sent_bytes"], then["sent_bytes"])
            else (now["sent_bytes"] - then["sent_bytes"]) / steps,
        )
        for (place, said), then, now in zip(places, before, after, strict=True)
    ]
