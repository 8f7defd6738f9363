"""Evidence from pairs keeps its level however often it is looked at, and sees what is there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.gate import paired

Floats = NDArray[np.float64]

_PAIRS = 60


def _noise(kind: str, jobs: int, seed: int) -> Floats:
    """Differences of pairs in which nothing changed, in a random order of both launches."""
    draw = np.random.default_rng(seed)
    shape = (jobs, 2 * _PAIRS)
    if kind == "normal":
        logs = draw.normal(0, 0.02, shape)
    elif kind == "heavy":
        logs = 0.02 * draw.standard_t(1.5, shape)
    elif kind == "outliers":
        logs = draw.normal(0, 0.01, shape) + (draw.random(shape) < 0.25) * draw.uniform(0, 1, shape)
    elif kind == "drift":
        logs = draw.normal(0, 0.002, shape) + np.linspace(0, math.log(1.3), 2 * _PAIRS)
    elif kind == "two speeds":
        logs = math.log(1.4) * (np.cumsum(draw.random(shape) < 0.2, axis=1) % 2)
        logs = logs + draw.normal(0, 1e-3, shape)
    else:
        # Every second launch is slow, as if the order were known.
        logs = np.tile([0.0, 0.1], (jobs, _PAIRS)) + draw.normal(0, 1e-3, shape)
    signs = draw.choice((-1.0, 1.0), (jobs, _PAIRS))
    return signs * (logs[:, 1::2] - logs[:, ::2])


@pytest.mark.parametrize(
    "kind", ["normal", "heavy", "outliers", "drift", "two speeds", "alternating"]
)
@pytest.mark.parametrize("margin", [0.0, 0.01])
def test_evidence_of_nothing_is_rare(kind: str, margin: float) -> None:
    """In any noise, and at whichever of sixty looks: at most a tenth reach ten, a 50th fifty."""
    found = paired.evidence(_noise(kind, 4_000, 1) - margin)[:, -1]
    for level in (0.1, 0.02):
        share = float(np.mean(found >= -math.log(level)))
        assert share <= level + 3 * math.sqrt(level / 4_000)


def test_evidence_of_what_is_there_grows() -> None:
    """A clear change is found by all pairs that it takes, in noise that would hide it later."""
    needed = math.log(4_000)
    draw = np.random.default_rng(0)
    clear = 0.04 + draw.normal(0, 0.01, (500, _PAIRS))
    pairs = paired.pairs_needed(needed)
    assert pairs == 14
    assert np.mean(paired.evidence(clear)[:, pairs + 1] >= needed) > 0.9
    hidden = 0.04 + draw.normal(0, 0.04, (500, _PAIRS))
    assert np.mean(paired.evidence(hidden)[:, -1] >= needed) > 0.9


def test_evidence_does_not_depend_on_the_unit() -> None:
    """Bets are in units of what was seen."""
    noise = _noise("normal", 5, 3)
    assert paired.evidence(1_000 * noise) == pytest.approx(paired.evidence(noise))


def test_evidence_stays() -> None:
    """What was enough once is enough."""
    differences = np.array([1.0] * 20 + [-1.0] * 40)
    found = paired.evidence(differences)
    assert found[-1] == found[19]
    assert paired.shows(differences, found[19])
    assert not paired.shows(-differences[:20], 1.0)


def test_one_wild_pair_decides_nothing() -> None:
    """However far off it is: its sign alone counts."""
    few = np.array([0.01, -0.01, 0.012, -0.011, 0.01])
    wild = np.append(few, 50.0)
    assert paired.evidence(wild)[-1] - paired.evidence(few)[-1] <= math.log(2)


@pytest.mark.parametrize("number", [5, 20, 60])
def test_bounds_hold(number: int) -> None:
    """Each of them in at least nine jobs of ten, at every number of pairs together."""
    noise = _noise("normal", 150, number)[:, :number]
    bounds = [paired.interval(differences + 0.1, 0.9) for differences in noise]
    assert np.mean([low <= 0.1 for low, _ in bounds]) >= 0.85
    assert np.mean([high >= 0.1 for _, high in bounds]) >= 0.85


def test_bounds_close_in() -> None:
    """Five pairs say about how far they spread; four exclude nothing at this confidence."""
    draw = np.random.default_rng(0)
    noise = draw.normal(0, 0.01, 60)
    widths = [high - low for low, high in (paired.interval(noise[:n], 0.9) for n in (5, 15, 60))]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] < 0.1
    assert widths[-1] < 0.01
    assert paired.interval(noise[:3], 0.9) == (-math.inf, math.inf)


def test_what_is_detectable_is_found_by_four_of_five() -> None:
    """Of other jobs with the same noise that were changed by as much."""
    needed, threshold, margin = math.log(4_000), math.log(1.03), math.log(1.01)
    draw = np.random.default_rng(5)
    found = []
    for seed in range(60):
        seen, other = draw.normal(0, 0.05, (2, 40))
        change = paired.detectable(seen, margin, threshold, needed, seed)
        assert change is not None
        changed = other + change
        found.append(
            paired.shows(changed - margin, needed) and float(np.median(changed)) >= threshold
        )
    assert np.mean(found) >= 0.75


def test_nothing_is_detectable_with_too_few_pairs() -> None:
    """However clear it were."""
    needed = math.log(4_000)
    few = np.zeros(paired.pairs_needed(needed) - 1)
    assert paired.detectable(few, 0.01, 0.03, needed, 0) is None
    assert paired.detectable(np.append(few, 0.0), 0.01, 0.03, needed, 0) == pytest.approx(
        0.03, abs=1e-3
    )


def test_differences_are_logarithms_of_ratios() -> None:
    """Of the contender over the base, pair by pair."""
    found = paired.differences([1.0, 2.0], [math.e, 1.0])
    assert found == pytest.approx([1.0, -math.log(2)])
