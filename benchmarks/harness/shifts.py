"""Count the shifts that ``fwbench report --history`` sees, with and without a shift.

Made-up histories: noise of two sizes, normal, with heavy tails (Student's t with three degrees of
freedom), or normal with one run in twenty half as slow again; and 1 % with a second speed, 10 %
slower, in 30 % of runs. Then the same with the second half 10 % slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from bounds import Finding, arguments, conclude
from numpy.typing import NDArray

from fwbench.report.history import shifts

_SHIFT = 0.1

#: How far from its place a shift may be found, in runs.
_NEAR = 2

Noise = Callable[[np.random.Generator, int, float], NDArray[np.float64]]

_NOISES: dict[str, Noise] = {
    "normal": lambda random, runs, size: random.normal(0.0, size, runs),
    "heavy tails": lambda random, runs, size: random.standard_t(3, runs) * size,
    "outliers": lambda random, runs, size: (
        random.normal(0.0, size, runs) + (random.random(runs) < 1 / 20) * np.log(1.5)
    ),
    "two speeds": lambda random, runs, size: (
        random.normal(0.0, size, runs) + (random.random(runs) < 0.3) * np.log(1.1)
    ),
}

_ONE_SPEED = ("normal", "heavy tails", "outliers")
_BY_SIZE = {0.02: _ONE_SPEED, 0.1: _ONE_SPEED, 0.01: ("two speeds",)}


def _share(trials: int, succeeds: Callable[[], bool]) -> float:
    return sum(succeeds() for _ in range(trials)) / trials


def _findings(runs: int, size: float, name: str, trials: int) -> Finding:
    random = np.random.default_rng([runs, round(1_000 * size), len(name)])

    def history(shift: float) -> list[float]:
        logs = _NOISES[name](random, runs, size)
        logs[runs // 2 :] += np.log1p(shift)
        return [float(time) for time in np.exp(logs)]

    false = _share(trials, lambda: bool(shifts(history(0.0))))
    right = _share(
        trials, lambda: any(abs(shift.at - runs // 2) <= _NEAR for shift in shifts(history(_SHIFT)))
    )
    figure = f"{false:.1%} of unchanged histories, {right:.0%} of those with a shift"
    return Finding(f"{runs} runs, {name}, {size:.0%}", figure)


def main() -> int:
    """Draw the histories, and print the table."""
    given = arguments(__doc__, 1, trials=1_000)
    return conclude(
        [
            _findings(runs, size, name, given.trials)
            for size, names in _BY_SIZE.items()
            for name in names
            for runs in (10, 30, 100, 300)
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
