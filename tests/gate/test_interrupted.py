"""Comparisons that are interrupted: what is known is judged, and nothing is measured twice."""

import re
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import pytest

from fwbench.gate.ab import Earlier, Pair, PairedComparison, PairPlan
from fwbench.gate.samples import SampleSet
from fwbench.gate.verdicts import Comparison, Rules, Verdict
from support.launched_runs import run, sample

_RULES = Rules(margin=0.01, level=0.02)

#: What a line says of the time that is left.
_TIME = re.compile(r", [^,]* (left|is done)$")
_PAIR_S = 20.0
_NAMES = ("base", "contender")


class Bench:
    """Measures nothing: every pair has times of its own, whenever it is measured.

    Args:
        earlier: the pairs of an interrupted job, which are not measured again.
        until: the number of the pair, from 0, in which the job is interrupted.

    Attributes:
        pairs: what was to be measured in each, earlier ones included.
        measured: the numbers of those that were measured here.
        said: all progress.
    """

    centers: ClassVar = {"slow": (1.0, 1.2), "noisy": (1.0, 1.0), "same": (1.0, 1.0)}

    def __init__(
        self, earlier: Sequence[Collection[str] | None] = (), until: int | None = None
    ) -> None:
        self.earlier = earlier
        self.until = until
        self.pairs: list[tuple[tuple[str, ...] | None, int]] = []
        self.measured: list[int] = []
        self.lines: list[str] = []
        self.now_s = 0.0

    def __call__(self, selected: Collection[str] | None, seed: int) -> Pair:
        """Measure one pair, or return an earlier one."""
        number = len(self.pairs)
        if number == self.until:
            raise KeyboardInterrupt
        self.pairs.append((None if selected is None else (*selected,), seed))
        if number >= len(self.earlier):
            self.measured.append(number)
            self.now_s += _PAIR_S
        return self._launch(0, selected), self._launch(1, selected)

    def _launch(self, side: int, selected: Collection[str] | None) -> SampleSet:
        number = 2 * len(self.pairs) + side
        wave = {"noisy": 0.3, "slow": 0.01, "same": 1e-4}
        samples = [
            sample(key, [centers[side] * (1 + wave[key] * ((7 * number) % 5 - 2) / 2)])
            for key, centers in self.centers.items()
            if selected is None or key in selected
        ]
        return run(*samples, name=_NAMES[side])

    def compare(self, **plan: Any) -> Comparison:
        """Compare; the earlier pairs took as long as any."""
        job = PairedComparison(
            self, PairPlan(**plan), _RULES, say=self.lines.append, clock=lambda: self.now_s
        )
        earlier = Earlier(self.earlier, _PAIR_S * len(self.earlier))
        return job.compare(_NAMES, earlier=earlier)


def test_a_job_that_has_no_pair_yet_is_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt):
        Bench(until=0).compare()


@pytest.mark.parametrize("until", [1, 4, 5, 7, 10])
def test_an_interrupted_job_judges_the_pairs_that_there_are(until: int) -> None:
    comparison = Bench(until=until).compare()
    assert comparison.interrupted
    assert comparison.verdicts["noisy"] is Verdict.INCONCLUSIVE
    reasons = {
        judged.reason for judged in comparison.judgements if judged.verdict is Verdict.INCONCLUSIVE
    }
    assert reasons == {"interrupted before it was decided"}
    assert f"interrupted after {until} pair{'s' * (until > 1)}" in comparison.notes
    for judgement in comparison.judgements:
        assert len(judgement.base) == len(judgement.contender) <= until
    if until > 5:
        assert comparison.verdicts["same"] is Verdict.UNCHANGED


def test_a_job_that_is_not_interrupted_does_not_say_so() -> None:
    comparison = Bench().compare()
    assert not comparison.interrupted
    assert not any("interrupted" in note for note in comparison.notes)


@pytest.mark.parametrize("until", [1, 2, 4, 5, 7, 10])
def test_a_resumed_job_is_the_same_job(until: int) -> None:
    whole = Bench()
    expected = whole.compare(seed=3)
    assert len(whole.pairs) > 10
    earlier = [cases for cases, _ in whole.pairs[:until]]
    resumed = Bench(earlier)
    comparison = resumed.compare(seed=3)
    assert resumed.pairs == whole.pairs
    assert resumed.measured == [*range(until, len(whole.pairs))]
    assert comparison == expected
    message = [[_TIME.sub("", line) for line in lines] for lines in (resumed.lines, whole.lines)]
    assert message[0] == message[1][until:]


def test_a_resumed_job_may_have_another_budget() -> None:
    """The pairs that were measured count whatever the budget is now, and so does their time."""
    whole = Bench()
    whole.compare(seed=3)
    earlier = [cases for cases, _ in whole.pairs]
    short, long = Bench(earlier), Bench(earlier)
    short.compare(seed=3, budget_s=0)
    assert short.measured == []
    longer_s = _PAIR_S * len(earlier) + 200
    long.compare(seed=3, budget_s=longer_s)
    assert len(long.measured) * _PAIR_S <= 200


def test_a_comparison_that_was_interrupted_is_read_as_such() -> None:
    comparison = Bench(until=2).compare()
    values = comparison.to_json()
    assert values["interrupted"] is True
    assert Comparison.from_json(values).interrupted
