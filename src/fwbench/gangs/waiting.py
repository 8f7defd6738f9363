"""How long a controller waits for the roles of a gang, and what it waits for."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fwbench.processes.process import START_TIMEOUT_S
from fwbench.processes.role import RoleProcess, ready

#: How often roles are looked at while nothing is timed.
_LOOK_S = 0.25


@dataclass(frozen=True)
class GangTimeouts:
    """How long the roles of a gang may take to answer.

    Attributes:
        start_s: until every role has imported its framework.
        join_s: until all are connected.
        least_s: to any other request at least, ...
        times: ... and so many times what it is expected to take.
    """

    start_s: float = START_TIMEOUT_S
    join_s: float = 30.0
    least_s: float = 5.0
    times: float = 20.0

    def of(self, expected_s: float) -> float:
        """For a request that is expected to take so many seconds."""
        return max(self.least_s, self.times * expected_s)


USUAL = GangTimeouts()


def arrived(roles: Sequence[RoleProcess], until_s: float, quiet_s: float) -> list[RoleProcess]:
    """The roles that have answered, or ended; none if the time is over, or all slept too long.

    Args:
        roles: of the whole gang, also those that have answered: others may wait for them.
        until_s: when the time is over, by the monotonic clock.
        quiet_s: how long all roles may sleep; infinite while they are timed, and not looked at.
    """
    awake_s = time.monotonic()
    while True:
        left_s = max(0.0, until_s - time.monotonic())
        answered = ready(roles, left_s if quiet_s == math.inf else min(_LOOK_S, left_s))
        if answered or time.monotonic() >= until_s:
            return answered
        if not all(role.body.is_asleep() for role in roles):
            awake_s = time.monotonic()
        elif time.monotonic() - awake_s > quiet_s:
            return []


def moved(
    roles: Sequence[RoleProcess],
    before: Sequence[int | None],
    after: Sequence[int | None],
    seconds: float,
) -> str:
    """What links have carried between two readings, where that is known, as a clause.

    Args:
        roles: whose links they are.
        before: the first readings.
        after: the second ones.
        seconds: between them.
    """
    carried = [
        f"{role.name}: {now - then:,} B"
        for role, then, now in zip(roles, before, after, strict=True)
        if then is not None and now is not None
    ]
    return f"; moved in its last {seconds} s: {', '.join(carried)}" if carried else ""
