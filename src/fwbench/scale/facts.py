"""What rounds of a gang come to, replica by replica, for the record."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fwbench.records.gangs import Replica
from fwbench.scale.clock import Round


def replicas(hello: Sequence[Mapping[str, Any]], rounds: Sequence[Round]) -> list[Replica]:
    """The facts of every replica.

    Args:
        hello: what each said of itself when it was started.
        rounds: that were timed.
    """
    return [_replica(rank, said, rounds) for rank, said in enumerate(hello)]


def _replica(rank: int, said: Mapping[str, Any], rounds: Sequence[Round]) -> Replica:
    own = [(each.steps, each.ranks[rank]) for each in rounds]
    steps_s = [told["seconds"] / steps for steps, told in own]
    steps = sum(steps for steps, _ in own)
    sent = [told["sent_bytes"] for _, told in own]
    return Replica(
        rank=rank,
        cpus=said["cpus"],
        threads=said["threads"],
        step_s=statistics.median(steps_s),
        p90_s=float(np.percentile(steps_s, 90)),
        max_s=max(steps_s),
        cpu_s=sum(told["cpu_s"] for _, told in own) / steps,
        preempted=sum(told["preempted"] for _, told in own),
        sent_bytes=None if None in sent else sum(sent) / steps,
    )
