"""Steps that all replicas take together, timed by each on its own clock."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from fwbench.frameworks.member import Member
from fwbench.measure.resources import cpu_use
from fwbench.measure.traffic import sent_bytes


def timed_round(
    member: Member,
    run: Callable[[], Any],
    wait: Callable[[], Any] | None,
    steps: int,
    read: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Meet the others, then take steps.

    What a controller says and hears lies before the barrier and after the last reading, so it is in
    no time. No two processes' clocks are compared.

    Args:
        member: this replica.
        run: one step.
        wait: waits until the device is idle; None if a step is done when it returns.
        steps: how many; a single one would say little, as replicas leave a barrier one by one.
        read: this process' clock.

    Returns:
        ``seconds`` of all steps, ``cpu_s`` and ``preempted`` of this process, and ``sent_bytes``
        with those of the barrier, None where the system does not tell.
    """
    before, sent = cpu_use(), sent_bytes()
    collects = gc.isenabled()
    gc.disable()
    try:
        member.barrier()
        start = read()
        for _ in range(steps):
            run()
        if wait is not None:
            wait()
        seconds = read() - start
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


def used() -> dict[str, Any]:
    """What this process has used since it was started, as :func:`timed_round` tells of a round."""
    cpu_s, preempted = cpu_use()
    return {"cpu_s": cpu_s, "preempted": preempted, "sent_bytes": sent_bytes()}
