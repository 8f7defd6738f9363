"""What records say of replicas."""

from __future__ import annotations

from typing import Any

from fwbench.terms.replicas import LOOPBACK, link_of


def gang(
    replicas: int = 2, step_s: float = 1e-3, host: str = "here", **facts: Any
) -> dict[str, Any]:
    """The facts of a gang whose replicas all take the same time.

    Args:
        replicas: how many.
        step_s: the time of a step.
        host: on which all of them ran.
        facts: others than an all-reduce of 4 MB over loopback has.
    """
    size_bytes = 4e6
    rank = {
        "host": host,
        "cpus": 2,
        "threads": 1,
        "step_s": step_s,
        "p90_s": step_s,
        "max_s": step_s,
        "cpu_s": step_s / 2,
        "preempted": 0,
        "sent_bytes": 2 * (replicas - 1) / replicas * size_bytes,
    }
    link = link_of(facts.get("network", LOOPBACK))
    return {
        "replicas": replicas,
        "strategy": "allreduce",
        "servers": 0,
        "engine": "local",
        "network": "loopback",
        "oversubscribed": False,
        "start_s": 1.5,
        "steps_per_round": 10,
        "ranks": [{**rank, "rank": number} for number in range(replicas)],
        "serving": [],
        "skew": 0.0,
        "least_bytes_per_step": 2 * (replicas - 1) * size_bytes,
        "bytes_per_step": 2 * (replicas - 1) * size_bytes,
        "bus_bytes_per_s": 2 * (replicas - 1) / replicas * size_bytes / step_s,
        "equal_work": True,
        "verified": {"steps": 3},
        **({} if link is None else {"link_bytes_per_s": link.bytes_per_s}),
        **facts,
    }
