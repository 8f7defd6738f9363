"""Noise of machines: recorded launches, with the noise of other machines on top.

Each model takes a pool of the self-test's launches and gives one in which every time is multiplied
by what that machine would have made of it. What was recorded keeps its shape: for the machines that
are quiet but for one thing, its deviations are scaled down to what a quiet machine has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.records.measurement import MEDIAN, MINIMUM, Measurement
from fwbench_extras.self_test import Pool

Floats = NDArray[np.float64]

#: The median deviation of launches on a quiet machine: 1 % of standard deviation.
_QUIET = 0.0067

#: By how much cases are slowed; the suite has some of these forms, as recorded.
_SLOWED = (5, 10, 20)

#: Launches of a job that sees the whole drift.
_DRIFTING = 30

#: Gives the logarithms of the factors of N launches.
Machine = Callable[[np.random.Generator, int], Floats]


def _quiet(_: np.random.Generator, launches: int) -> Floats:
    return np.zeros(launches)


def _noise(share: float) -> Machine:
    return lambda draw, launches: draw.normal(0, share, launches)


def _outliers(draw: np.random.Generator, launches: int) -> Floats:
    """One launch in four takes 10 to 100 % more."""
    return np.where(draw.random(launches) < 0.25, np.log(draw.uniform(1.1, 2.0, launches)), 0.0)


def _drift(_: np.random.Generator, launches: int) -> Floats:
    """The machine slows down by 30 % over every thirty launches, which is a job with a finding."""
    return np.log(1.3) * np.arange(launches) / _DRIFTING


def _speeds(draw: np.random.Generator, launches: int) -> Floats:
    """A machine with two speeds, each for ten launches or so."""
    return np.log(1.4) * (np.cumsum(draw.random(launches) < 0.1) % 2)


def _waves(draw: np.random.Generator, launches: int) -> Floats:
    """Launches near each other are alike: a spread of 6 % that comes and goes."""
    logs = draw.normal(0, 0.06, launches)
    for i in range(1, launches):
        logs[i] = 0.9 * logs[i - 1] + (1 - 0.9**2) ** 0.5 * logs[i]
    return logs


def _phases(draw: np.random.Generator, launches: int) -> Floats:
    """Two speeds that change within launches, so that a case meets either of them by chance."""
    return np.log(1.4) * (draw.random(launches) < 0.5)


def _tails(draw: np.random.Generator, launches: int) -> Floats:
    """Student's t of 1.5 degrees of freedom, which has no variance."""
    return 0.01 * draw.standard_t(1.5, launches)


def _on(machine: Machine, *, together: bool = False) -> Callable[[Pool], Pool]:
    """A model: a quiet machine, but for one thing.

    Args:
        machine: that thing.
        together: whether it befalls all cases of a launch at once.
    """

    def model(pool: Pool) -> Pool:
        draw = np.random.default_rng(0)
        common = machine(draw, pool.launches)

        def changed(sample: Measurement) -> Measurement:
            noise = common if together else machine(draw, pool.launches)
            return _scaled(sample, np.exp(noise))

        cases = {key: _calmed(sample) for key, sample in pool.cases.items()}
        forms = [
            _slowed(cases[key], percent) for percent in _SLOWED for key in pool.forms(_SLOWED[0])
        ]
        return Pool([changed(sample) for sample in (*cases.values(), *forms)], pool.contended)

    return model


def _slowed(sample: Measurement, percent: int) -> Measurement:
    """The form of a case that takes so much longer, called as the suite would call it."""
    name = sample.key.partition("[")[2].partition("-")[0]
    key = sample.key.replace(name, f"{name}_slowed_{percent // 5}", 1)
    slower = np.full(len(sample.launches), 1 + percent / 100)
    return dataclasses.replace(_scaled(sample, slower), nodeid=key)


def _scaled(sample: Measurement, factors: Floats) -> Measurement:
    """The launches of a case with each time multiplied."""
    launches = [
        {**launch, **{name: launch[name] * float(factor) for name in (MINIMUM, MEDIAN)}}
        for launch, factor in zip(sample.launches, factors, strict=True)
    ]
    return dataclasses.replace(sample, figures=launches)


def _calmed(sample: Measurement) -> Measurement:
    """The launches of a case as close to each other as on a quiet machine."""
    calmed: list[dict[str, Any]] = [dict(launch) for launch in sample.launches]
    for name in (MINIMUM, MEDIAN):
        logs = np.log([launch[name] for launch in sample.launches])
        logs -= np.median(logs)
        scale = min(1.0, _QUIET / max(float(np.median(np.abs(logs))), 1e-9))
        # The centre without what the machine's slow moments made of it.
        centre = float(np.quantile([launch[name] for launch in sample.launches], 0.25))
        for launch, log in zip(calmed, logs, strict=True):
            launch[name] = centre * float(np.exp(np.clip(scale * log, -0.05, 0.05)))
    return dataclasses.replace(sample, figures=calmed)


MODELS: Mapping[str, Callable[[Pool], Pool]] = {
    "as recorded": lambda pool: pool,
    "quiet": _on(_quiet),
    "noise of 6 %": _on(_noise(0.06)),
    "outliers": _on(_outliers),
    "outliers, of all cases at once": _on(_outliers, together=True),
    "drift": _on(_drift, together=True),
    "two speeds": _on(_speeds, together=True),
    "waves": _on(_waves, together=True),
}

#: What races meet in addition: there contestants are other cases of the same launch.
WITHIN_LAUNCHES: Mapping[str, Callable[[Pool], Pool]] = {
    "two speeds within launches": _on(_phases),
    "heavy tails": _on(_tails),
}
