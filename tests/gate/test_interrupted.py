"""Comparisons that are interrupted: what is known is judged, and nothing is measured twice."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import pytest

from fwbench.gate.ab import Earlier, PairedComparison, PairPlan
from fwbench.gate.samples import SampleSet
from fwbench.gate.verdicts import Comparison, Rules, Verdict
from support.launched_runs import run, sample

_RULES = Rules(margin=0.01, level=0.02)

#: What a line says of the time that is left.
_TIME = re.compile(r", [^,]* (left|is done)$")
_LAUNCH_S = 10.0
_NAMES = ("base", "contender")


class Bench:
    """Measures nothing: every launch has a time of its own, whenever it is measured.

    Args:
        earlier: the launches of an interrupted job, which are not measured again.
        until: the number of the launch, from 0, in which the job is interrupted.

    Attributes:
        launches: what was to be measured in each, earlier ones included.
        measured: the numbers of those that were measured here.
        said: all progress.
    """

    centers: ClassVar = {"slow": (1.0, 1.2), "noisy": (1.0, 1.0), "same": (1.0, 1.0)}

    def __init__(
        self, earlier: Sequence[Collection[str] | None] = (), until: int | None = None
    ) -> None:
        self.earlier = earlier
        self.until = until
        self.launches: list[tuple[int, tuple[str, ...] | None, int]] = []
        self.measured: list[int] = []
        self.lines: list[str] = []
        self.now_s = 0.0

    def __call__(self, side: int, selected: Collection[str] | None, seed: int) -> SampleSet:
        """Measure one launch, or return an earlier one."""
        number = len(self.launches)
        if number == self.until:
            raise KeyboardInterrupt
        self.launches.append((side, None if selected is None else (*selected,), seed))
        if number >= len(self.earlier):
            self.measured.append(number)
            self.now_s += _LAUNCH_S
        wave = {"noisy": 0.3, "slow": 0.01, "same": 1e-4}
        samples = [
            sample(key, [centers[side] * (1 + wave[key] * ((7 * number) % 5 - 2) / 2)])
            for key, centers in self.centers.items()
            if selected is None or key in selected
        ]
        return run(*samples, name=_NAMES[side])

    def compare(self, **plan: Any) -> Comparison:
        """Compare; the earlier launches took as long as any."""
        job = PairedComparison(
            self, PairPlan(**plan), _RULES, say=self.lines.append, clock=lambda: self.now_s
        )
        earlier = Earlier(self.earlier, _LAUNCH_S * len(self.earlier))
        return job.compare(_NAMES, earlier=earlier)


def test_a_job_that_has_no_pair_yet_is_interrupted() -> None:
    for until in (0, 1):
        with pytest.raises(KeyboardInterrupt):
            Bench(until=until).compare()


@pytest.mark.parametrize("until", [2, 3, 9, 10, 15, 21])
def test_an_interrupted_job_judges_the_pairs_that_there_are(until: int) -> None:
    comparison = Bench(until=until).compare()
    assert comparison.interrupted
    assert comparison.verdicts["noisy"] is Verdict.INCONCLUSIVE
    reasons = {
        judged.reason for judged in comparison.judgements if judged.verdict is Verdict.INCONCLUSIVE
    }
    assert reasons == {"interrupted before it was decided"}
    pairs = until // 2
    assert f"interrupted after {pairs} pair{'s' * (pairs > 1)}" in comparison.notes
    for judgement in comparison.judgements:
        assert len(judgement.base) == len(judgement.contender) <= pairs
    if until > 10:
        assert comparison.verdicts["same"] is Verdict.UNCHANGED


def test_a_job_that_is_not_interrupted_does_not_say_so() -> None:
    comparison = Bench().compare()
    assert not comparison.interrupted
    assert not any("interrupted" in note for note in comparison.notes)


@pytest.mark.parametrize("until", [1, 4, 7, 10, 13, 20])
def test_a_resumed_job_is_the_same_job(until: int) -> None:
    whole = Bench()
    expected = whole.compare(seed=3)
    assert len(whole.launches) > 21
    earlier = [cases for _, cases, _ in whole.launches[:until]]
    resumed = Bench(earlier)
    comparison = resumed.compare(seed=3)
    assert resumed.launches == whole.launches
    assert resumed.measured == [*range(until, len(whole.launches))]
    assert comparison == expected
    message = [[_TIME.sub("", line) for line in lines] for lines in (resumed.lines, whole.lines)]
    assert message[0] == message[1][until:]


def test_half_a_pair_does_not_tell_how_long_one_takes() -> None:
    """After it a resumed job still reckons with two launches a pair, as the earlier ones took."""
    resumed = Bench([None] * 3)
    resumed.compare()
    times = [match[0] for line in resumed.lines if (match := _TIME.search(line))]
    assert times[0] == ", 1 min 20 s until pair 5 is done"
    assert times[1:3] == [", 1 min until pair 5 is done"] * 2


def test_a_resumed_job_may_have_another_budget() -> None:
    """The pairs that were measured count whatever the budget is now, and so does their time."""
    whole = Bench()
    whole.compare(seed=3)
    earlier = [cases for _, cases, _ in whole.launches]
    short, long = Bench(earlier), Bench(earlier)
    short.compare(seed=3, budget_s=0)
    assert short.measured == []
    longer_s = _LAUNCH_S * len(earlier) + 200
    long.compare(seed=3, budget_s=longer_s)
    assert 0 < len(long.measured) * _LAUNCH_S <= 200


def test_a_comparison_that_was_interrupted_is_read_as_such() -> None:
    comparison = Bench(until=5).compare()
    values = comparison.to_json()
    assert values["interrupted"] is True
    assert Comparison.from_json(values).interrupted
