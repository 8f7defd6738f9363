"""A/B comparisons: what is measured again, and what comes of it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fwbench.errors import DifferentSettings, TooFewLaunches
from fwbench.gate.ab import StagedComparison, Stages
from fwbench.gate.samples import FACTS, SampleSet
from fwbench.gate.statistics import p_slower, ratio
from fwbench.gate.verdicts import Comparison, Rules, Verdict, judge
from support.launched_runs import run, sample

_FIRST, _FRESH = 0, 1


class Bench:
    """Measures nothing: every launch of every case takes the time that was drawn for it.

    Args:
        centers: of every case, the base's and the contender's time; None where it has none.
        spread: of the launches.
        seed: of what is drawn.

    Attributes:
        drawn: the times of all launches, by stage, side and case.
        calls: every launch: side, cases (None: all), seed.
        lost: by stage and side, why cases are not measured.
        contended: stages and cases that had to share their processors.
        facts: of the cases of each side.
    """

    def __init__(
        self,
        centers: Mapping[str, tuple[float | None, float | None]],
        spread: float = 1e-3,
        seed: int = 0,
    ) -> None:
        draw = np.random.default_rng(seed)
        self.drawn = {
            (stage, side, key): tuple(
                map(float, pair[side] * np.exp(spread * draw.standard_normal(20)))
            )
            for key, pair in centers.items()
            for side in (0, 1)
            for stage in (_FIRST, _FRESH)
            if pair[side] is not None
        }
        self.calls: list[tuple[int, tuple[str, ...] | None, int]] = []
        self.lost: dict[tuple[int, int], dict[str, str]] = {}
        self.contended: set[tuple[int, str]] = set()
        self.facts: list[dict[str, Any]] = [dict.fromkeys(FACTS), dict.fromkeys(FACTS)]

    def __call__(self, side: int, selected: Collection[str] | None, seed: int) -> SampleSet:
        """Measure one launch."""
        stage = _FIRST if selected is None else _FRESH
        number = sum(s == side and (c is None) == (selected is None) for s, c, _ in self.calls)
        self.calls.append((side, None if selected is None else tuple(sorted(selected)), seed))
        lost = self.lost.get((stage, side), {})
        samples = [
            sample(
                key,
                values_s[number : number + 1],
                contended=(stage, key) in self.contended,
                facts=self.facts[side],
            )
            for (of_stage, of_side, key), values_s in self.drawn.items()
            if (of_stage, of_side) == (stage, side)
            and key not in lost
            and (selected is None or key in selected)
        ]
        return run(*samples, name=("base", "contender")[side], unmeasured=lost)

    @property
    def again(self) -> list[tuple[str, ...]]:
        """The cases of every fresh launch."""
        return [cases for _, cases, _ in self.calls if cases is not None]


RULES = Rules(margin=0.01)


def _compare(
    bench: Bench, rules: Rules = RULES, tested: Sequence[str] = (), **stages: Any
) -> Comparison:
    return StagedComparison(bench, Stages(**stages), rules, tested).compare(("base", "contender"))


def _verdicts(comparison: Comparison) -> dict[str, Verdict]:
    return {one.key: one.verdict for one in comparison.judgements}


def _same(number: int) -> dict[str, tuple[float, float]]:
    return {f"same-{i}": (1.0, 1.0) for i in range(number)}


# Two stages


def test_launches_come_in_pairs_of_both_sides() -> None:
    """One of each side, in an order that is chance and not always the same; each with a seed."""
    bench = Bench(_same(3))
    _compare(bench, launches=10, flag=1e-9 + 1 / 184756)
    assert len(bench.calls) == 20
    sides = [side for side, _, _ in bench.calls]
    pairs = [(sides[i], sides[i + 1]) for i in range(0, 20, 2)]
    assert {*pairs} == {(0, 1), (1, 0)}
    assert all(cases is None for _, cases, _ in bench.calls)
    assert len({seed for _, _, seed in bench.calls}) > 15


def test_a_job_is_repeatable() -> None:
    """The seed decides sides and seeds of all launches; another seed decides otherwise."""
    calls = []
    for seed in (1, 1, 2):
        bench = Bench({"slow": (1.0, 1.5), **_same(2)})
        _compare(bench, seed=seed)
        calls.append(bench.calls)
    assert calls[0] == calls[1]
    assert calls[0] != calls[2]


def test_a_slowed_case_has_regressed() -> None:
    """It alone is flagged, measured again as often as asked, and found."""
    bench = Bench({"slow": (1.0, 1.1), "fast": (1.0, 0.9), "same": (1.0, 1.0)})
    comparison = _compare(bench)
    assert _verdicts(comparison) == {
        "slow": Verdict.REGRESSED,
        "fast": Verdict.IMPROVED,
        "same": Verdict.UNCHANGED,
    }
    assert bench.again == [("fast", "slow")] * 20
    slow, fast = (one for one in comparison.judgements if one.key != "same")
    assert len(slow.base_s) == len(slow.contender_s) == 10
    assert slow.contender_s == bench.drawn[_FRESH, 1, "slow"][:10], "fresh launches alone count"
    assert slow.p == p_slower(slow.base_s, slow.contender_s, 0.01)
    assert fast.p == p_slower(fast.contender_s, fast.base_s, 0.01)
    assert "2 of 3 cases were measured again" in comparison.notes
    assert comparison.rules["fresh"] == 10
    assert comparison.rules["margin"] == 0.01


def test_an_unchanged_suite_is_measured_once() -> None:
    """Where nothing looks changed nothing is measured again, and nothing is found."""
    bench = Bench(_same(10))
    comparison = _compare(bench)
    assert bench.again == []
    assert len(bench.calls) == 10
    assert comparison.counts == {"unchanged": 10}
    assert comparison.exit_status((Verdict.REGRESSED, Verdict.MISSING)) == 0
    assert all(len(one.base_s) == 5 for one in comparison.judgements)


def test_what_only_looked_changed_is_unchanged() -> None:
    """The fresh launches decide; those that the case was flagged by do not count."""
    bench = Bench({"flaky": (1.0, 1.0), "same": (1.0, 1.0)})
    bench.drawn[_FIRST, 1, "flaky"] = (1.5,) * 20
    comparison = _compare(bench)
    assert _verdicts(comparison) == {"flaky": Verdict.UNCHANGED, "same": Verdict.UNCHANGED}
    assert {*bench.again} == {("flaky",)}
    assert len(bench.again) < 20, "it was hopeless before the end"


def test_nothing_is_called_changed_by_its_first_launches() -> None:
    """A change between margin and threshold is neither flagged for nothing nor found."""
    bench = Bench({"slightly": (1.0, 1.02)})
    comparison = _compare(bench)
    assert len(bench.again) == 20
    (found,) = comparison.judgements
    assert found.verdict is Verdict.UNCHANGED
    assert found.p is not None
    assert found.p < 0.05


def test_only_the_flagged_direction_is_confirmed() -> None:
    """A case that looked slower and then is faster has not improved."""
    bench = Bench({"turned": (1.0, 1.0)})
    bench.drawn[_FIRST, 1, "turned"] = (1.5,) * 20
    bench.drawn[_FRESH, 1, "turned"] = (0.5,) * 20
    assert _verdicts(_compare(bench)) == {"turned": Verdict.UNCHANGED}


def test_contended_cases_get_another_chance() -> None:
    """One that was contended is inconclusive; if it looked changed, quiet launches decide."""
    bench = Bench({"slow": (1.0, 1.5), "same": (1.0, 1.0)})
    bench.contended = {(_FIRST, "slow"), (_FIRST, "same")}
    assert _verdicts(_compare(bench)) == {
        "slow": Verdict.REGRESSED,
        "same": Verdict.INCONCLUSIVE,
    }
    bench = Bench({"slow": (1.0, 1.5)})
    bench.contended = {(_FRESH, "slow")}
    assert _verdicts(_compare(bench)) == {"slow": Verdict.INCONCLUSIVE}


# Giving up early


def _random_bench(seed: int) -> Bench:
    """A suite of cases with all kinds of changes and spreads."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    centers = {f"case-{i}": (1.0, draw.choice([0.9, 0.97, 1.0, 1.0, 1.0, 1.1])) for i in range(8)}
    return Bench(centers, draw.choice([0.005, 0.02, 0.05, 0.15]), seed)


def _reference(bench: Bench, stages: Stages, rules: Rules) -> tuple[dict[str, Verdict], int]:
    """What measuring every flagged case to the end says has changed, and how many were flagged."""
    keys = sorted({key for _, _, key in bench.drawn})

    def launches(stage: int, key: str, number: int) -> tuple[Sequence[float], Sequence[float]]:
        ours, theirs = (bench.drawn[stage, side, key][:number] for side in (0, 1))
        return ours, theirs

    flagged: dict[str, Verdict] = {}
    for key in keys:
        ours, theirs = launches(_FIRST, key, stages.launches)
        slower, faster = p_slower(ours, theirs, rules.margin), p_slower(theirs, ours, rules.margin)
        if min(slower, faster) < stages.flag:
            flagged[key] = Verdict.REGRESSED if slower <= faster else Verdict.IMPROVED
    changed = {}
    for key, change in flagged.items():
        ours, theirs = launches(_FRESH, key, stages.fresh)
        if change is Verdict.IMPROVED:
            ours, theirs = theirs, ours
        surely = p_slower(ours, theirs, rules.margin) <= rules.level / len(flagged)
        if surely and ratio(ours, theirs) >= 1 + rules.threshold:
            changed[key] = change
    return changed, len(flagged)


@pytest.mark.parametrize("seed", range(60))
def test_giving_up_changes_no_finding(seed: int) -> None:
    """What is found is what measuring all flagged cases to the end would have found."""
    bench = _random_bench(seed)
    stages = Stages(launches=4 + seed % 3, fresh=8 + seed % 4, flag=0.15)
    comparison = StagedComparison(bench, stages, RULES).compare(("base", "contender"))
    changes = (Verdict.REGRESSED, Verdict.IMPROVED)
    found = {one.key: one.verdict for one in comparison.judgements if one.verdict in changes}
    expected, flagged = _reference(bench, stages, RULES)
    assert found == expected
    assert f"{flagged} of 8 cases were measured again" in comparison.notes


def test_giving_up_saves_launches_and_findings_are_found() -> None:
    """The random suites above have findings, and cases that are given up before the end."""
    found, launched, at_most = 0, 0, 0
    for seed in range(60):
        bench = _random_bench(seed)
        comparison = _compare(bench)
        changes, flagged = _reference(bench, Stages(), RULES)
        found += len(changes)
        launched += sum(map(len, bench.again))
        at_most += 20 * flagged
        assert {key: _verdicts(comparison)[key] for key in changes} == changes
    assert found > 20
    assert launched < at_most


@pytest.mark.parametrize("seed", range(60))
def test_giving_up_calls_the_same_cases_changed(seed: int) -> None:
    """As all launches would: of what was given up they would have called nothing changed."""
    bench = _random_bench(seed)
    comparison = _compare(bench)
    flagged = {key for cases in bench.again for key in cases}
    for one in comparison.judgements:
        if one.key in flagged:
            assert one.change is not None
            ours, theirs = (
                sample(one.key, bench.drawn[_FRESH, side, one.key][:10]) for side in (0, 1)
            )
            whole = judge(ours, theirs, RULES, RULES.level / len(flagged), [one.change])
            if {one.verdict, whole.verdict} & {Verdict.REGRESSED, Verdict.IMPROVED}:
                assert one.verdict == whole.verdict


# What could show nothing


def test_too_few_launches_to_flag() -> None:
    """Refused before anything is measured, with the number needed."""
    bench = Bench(_same(1))
    with pytest.raises(TooFewLaunches, match=r"2 launches a side.* 3 are needed \(--launches\)"):
        _compare(bench, launches=2)
    assert bench.calls == []
    _compare(bench, launches=3)


def test_a_flag_that_is_just_not_reached() -> None:
    """A probability must be below the flag: of 3 launches it is 1 in 20 at best."""
    bench = Bench(_same(1))
    with pytest.raises(TooFewLaunches, match=r"3 launches a side.* 4 are needed \(--launches\)"):
        _compare(bench, launches=3, flag=0.05)
    _compare(bench, launches=4, flag=0.05)


def test_too_few_fresh_launches_for_any_case() -> None:
    """Refused before anything is measured."""
    bench = Bench(_same(1))
    with pytest.raises(TooFewLaunches, match=r"2 fresh launches.* 3 are needed.*--fresh-launches"):
        _compare(bench, fresh=2)
    assert bench.calls == []


def test_too_few_fresh_launches_for_so_many_cases() -> None:
    """Refused as soon as the number of cases is known, with the number needed."""
    bench = Bench(_same(20))
    with pytest.raises(TooFewLaunches, match=r"5 fresh launches.*20 cases.* 6 are needed"):
        _compare(bench, fresh=5)
    assert len(bench.calls) == 2
    _compare(Bench(_same(20)), fresh=6)
    _compare(Bench(_same(20)), replace(RULES, level=0.2), fresh=5)


# What one side lacks


def test_cases_of_one_side() -> None:
    """They are missing, or new, whatever the other cases are."""
    bench = Bench({"lost": (1.0, None), "found": (None, 1.0), "slow": (1.0, 1.5)})
    comparison = _compare(bench)
    assert _verdicts(comparison) == {
        "slow": Verdict.REGRESSED,
        "lost": Verdict.MISSING,
        "found": Verdict.NEW,
    }
    assert {*bench.again} == {("slow",)}


def test_a_case_that_fails_on_one_side_says_so() -> None:
    """The reason is the session's."""
    bench = Bench({"a": (1.0, 1.0), "b": (1.0, 1.0)})
    bench.lost[_FIRST, 1] = {"b": "call failed"}
    missing = [one for one in _compare(bench).judgements if one.verdict is Verdict.MISSING]
    assert [(one.key, one.reason) for one in missing] == [("b", "call failed")]


def test_a_case_that_one_launch_lacks_is_missing() -> None:
    """A case that was measured in some launches only is not judged by these."""
    bench = Bench({"a": (1.0, 1.0), "b": (1.0, 1.0)})

    def measure(side: int, selected: Collection[str] | None, seed: int) -> SampleSet:
        if len(bench.calls) == 8:
            bench.lost[_FIRST, 1] = {"b": "call failed"}
        return bench(side, selected, seed)

    comparison = StagedComparison(measure, Stages(), RULES).compare(("base", "contender"))
    assert _verdicts(comparison) == {"a": Verdict.UNCHANGED, "b": Verdict.MISSING}


def test_a_case_that_fails_on_both_sides_is_not_passed_over() -> None:
    """Nothing passes in silence: it is named, among the verdicts or the notes."""
    bench = Bench({"a": (1.0, 1.0), "broken": (1.0, 1.0)})
    bench.lost = {(_FIRST, side): {"broken": "call failed"} for side in (0, 1)}
    comparison = _compare(bench)
    told = [*(one.name for one in comparison.judgements), *comparison.notes]
    assert any("broken" in text for text in told)


@pytest.mark.parametrize("side", [0, 1])
def test_a_flagged_case_that_is_lost_is_inconclusive(side: int) -> None:
    """It looked changed, and could not be measured again: neither a finding nor nothing."""
    bench = Bench({"slow": (1.0, 1.5), "other": (1.0, 1.5)})
    bench.lost[_FRESH, side] = {"slow": "call failed"}
    comparison = _compare(bench)
    assert _verdicts(comparison) == {"slow": Verdict.INCONCLUSIVE, "other": Verdict.REGRESSED}
    (lost,) = (one for one in comparison.judgements if one.key == "slow")
    assert "call failed" in lost.reason


# What must be the same


def test_facts_that_are_not_compared_must_be_the_same() -> None:
    """A difference is refused by name; what is compared may differ, and is noted."""
    bench = Bench({"slow": (1.0, 1.5)})
    bench.facts[1] = {**dict.fromkeys(FACTS), "framework": "2.0"}
    with pytest.raises(DifferentSettings, match="framework"):
        _compare(bench)
    assert bench.again == []
    comparison = _compare(Bench({"slow": (1.0, 1.5)}), tested=("framework",))
    assert not [note for note in comparison.notes if "2.0" in note]
    bench.calls.clear()
    comparison = _compare(bench, tested=("framework", "toggles"))
    assert [note for note in comparison.notes if "2.0" in note]


def test_what_is_going_on_is_told() -> None:
    """Each launch: which, of which side, how many cases."""
    told: list[str] = []
    bench = Bench({"slow": (1.0, 1.5), **_same(2)})
    StagedComparison(bench, Stages(), RULES, say=told.append).compare(("base", "contender"))
    assert len(told) == len(bench.calls) == 30
    assert sum(text.startswith("launch 5 of 5, ") for text in told) == 2
    assert sum(", base: " in text for text in told) == 15
    assert [text for text in told if "fresh launch 10" in text and "1 flagged" in text]
