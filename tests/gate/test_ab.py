"""A/B comparisons: which pairs are measured, for how long, and what comes of them."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fwbench.errors import DifferentSettings
from fwbench.gate import sequential
from fwbench.gate.ab import Pair, PairedComparison, PairPlan
from fwbench.gate.patience import BudgetIsOver, PairCutShort
from fwbench.gate.samples import SampleSet
from fwbench.gate.verdicts import CHANGING_ID, FAIL_ON, Comparison, FailOn, Rules, Verdict
from support.launched_runs import run, sample

RULES = Rules(level=0.02)

_PAIR_S = 20.0


class Bench:
    """Measures nothing: in every pair every case takes the times that were drawn for it.

    Args:
        centers: of every case, the base's and the contender's time; None where it has none.

    Attributes:
        now_s: the time; each pair takes twenty seconds.
        calls: every pair: its cases (None: all), and its seed.
        lost: by side, why cases are not measured from a pair on: its number and the reasons.
        contended: cases that had to share their processors.
        facts: of the cases of each side.
        wild: cases with a spread of their own.
    """

    def __init__(
        self,
        centers: Mapping[str, tuple[float | None, float | None]],
        spread: float = 1e-3,
        seed: int = 0,
    ) -> None:
        self.centers = centers
        self.spread = spread
        self.now_s = 0.0
        self.calls: list[tuple[tuple[str, ...] | None, int]] = []
        self.lost: dict[int, tuple[int, dict[str, str]]] = {}
        self.contended: set[str] = set()
        self.facts: list[dict[str, Any]] = [{}, {}]
        self.wild: dict[str, float] = {}
        self._draw = np.random.default_rng(seed)

    def __call__(self, selected: Collection[str] | None, seed: int) -> Pair:
        self.calls.append((None if selected is None else tuple(sorted(selected)), seed))
        self.now_s += _PAIR_S
        return self._launch(0, selected), self._launch(1, selected)

    def _launch(self, side: int, selected: Collection[str] | None) -> SampleSet:
        pair = len(self.calls) - 1
        since, lost = self.lost.get(side, (0, {}))
        lost = lost if pair >= since else {}
        samples = [
            sample(
                key,
                [
                    center
                    * float(np.exp(self.wild.get(key, self.spread) * self._draw.standard_normal()))
                ],
                contended=key in self.contended,
                **self.facts[side],
            )
            for key, centers in self.centers.items()
            if (center := centers[side]) is not None
            and key not in lost
            and (selected is None or key in selected)
        ]
        return run(*samples, name=("base", "contender")[side], unmeasured=lost)

    @property
    def further(self) -> list[tuple[str, ...]]:
        """The cases of every pair after the first ones."""
        return [cases for cases, _ in self.calls if cases is not None]


def _compare(
    bench: Bench, rules: Rules = RULES, tested: Sequence[str] = (), **plan: Any
) -> Comparison:
    job = PairedComparison(bench, PairPlan(**plan), rules, tested, clock=lambda: bench.now_s)
    return job.compare(("base", "contender"))


def _same(number: int) -> dict[str, tuple[float, float]]:
    return {f"same-{i}": (1.0, 1.0) for i in range(number)}


def test_each_pair_has_an_order_of_cases() -> None:
    bench = Bench(_same(3))
    _compare(bench, pairs=20)
    assert len(bench.calls) == 20
    assert len({seed for _, seed in bench.calls}) > 15
    assert all(cases is None for cases, _ in bench.calls)


def test_a_job_is_repeatable() -> None:
    calls = []
    for seed in (1, 1, 2):
        bench = Bench({"slow": (1.0, 1.5), **_same(2)})
        _compare(bench, seed=seed)
        calls.append(bench.calls)
    assert calls[0] == calls[1]
    assert calls[0] != calls[2]


def test_an_unchanged_suite_takes_five_pairs() -> None:
    bench = Bench(_same(10))
    comparison = _compare(bench)
    assert len(bench.calls) == 5
    assert comparison.counts == {"unchanged": 10}
    assert comparison.exit_status(()) == 0
    assert all(
        len(judgement.base) == len(judgement.contender) == 5 for judgement in comparison.judgements
    )
    assert "0 of 10 cases took more than 5 pairs" in comparison.notes
    assert comparison.rules["took_s"] == 5 * _PAIR_S


def test_what_has_changed_gets_the_pairs_that_it_takes() -> None:
    bench = Bench({"slow": (1.0, 1.1), "fast": (1.0, 0.9), "same": (1.0, 1.0)})
    comparison = _compare(bench)
    assert comparison.verdicts == {
        "slow": Verdict.REGRESSED,
        "fast": Verdict.IMPROVED,
        "same": Verdict.UNCHANGED,
    }
    assert {*bench.further} <= {("fast", "slow"), ("fast",), ("slow",)}
    pairs = {judgement.key: len(judgement.base) for judgement in comparison.judgements}
    assert pairs["same"] == 5
    assert 10 <= pairs["slow"] <= 20
    assert comparison.rules["budget_s"] == 600
    assert (comparison.rules["margin"], comparison.rules["resolution"]) == (0.01, 0.1)
    assert "2 of 3 cases took more than 5 pairs" in comparison.notes


def test_pairs_go_on_while_a_case_is_noisy() -> None:
    bench = Bench(_same(6), spread=0.04)
    comparison = _compare(bench, budget_s=10_000)
    assert comparison.counts == {"unchanged": 6}
    pairs = {len(judgement.base) for judgement in comparison.judgements}
    assert len(pairs) > 1
    assert min(pairs) >= 5


def test_the_budget_ends_a_noisy_job() -> None:
    """It is a hard end, also for what looks changed; and what cannot be told is given up before."""
    bench = Bench(_same(2), spread=0.5, seed=3)
    comparison = _compare(bench, budget_s=800)
    assert bench.now_s < 800
    assert comparison.counts == {"inconclusive": 2}
    assert comparison.is_all_inconclusive
    assert all("more pairs would tell" in each.reason for each in comparison.judgements)
    slow = Bench({"slow": (1.0, 1.5)})
    assert _compare(slow, budget_s=7 * _PAIR_S + 1).counts == {"inconclusive": 1}
    assert len(slow.calls) == 7


def test_no_more_pairs_are_promised_of_a_case_that_is_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By one metric: no others are measured for what another one cannot tell."""
    monkeypatch.setattr(sequential, "more_pairs", lambda *_: 0.0)
    comparison = _compare(Bench(_same(1), spread=0.5, seed=3), budget_s=20 * _PAIR_S)
    (reason,) = {each.reason for each in comparison.judgements if each.reason}
    assert reason.endswith("; another metric has decided the case")


def test_one_pair_is_measured_whatever_the_budget() -> None:
    bench = Bench(_same(1))
    comparison = _compare(bench, budget_s=0)
    assert len(bench.calls) == 1
    assert comparison.counts == {"inconclusive": 1}


def test_a_case_that_needs_more_than_is_left_is_given_up() -> None:
    """The time goes to those that it can decide, and a reader learns what the others take."""
    bench = Bench({"noisy": (1.0, 1.0), "slow": (1.0, 1.2)}, spread=0.0)
    bench.wild = {"noisy": 0.3}
    comparison = _compare(bench, budget_s=40 * _PAIR_S)
    assert comparison.verdicts == {"noisy": Verdict.INCONCLUSIVE, "slow": Verdict.REGRESSED}
    assert len(bench.calls) < 40
    reasons = {each.reason for each in comparison.judgements if each.key == "noisy"}
    assert all("more pairs would tell" in reason for reason in reasons)


@pytest.mark.parametrize("kind", [BudgetIsOver, PairCutShort])
@pytest.mark.parametrize("pairs", [0, 3])
def test_a_test_that_hangs_until_the_budget_is_over_or_ends_its_launch(
    pairs: int, kind: type[PairCutShort], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is inconclusive, and what was measured before counts; without any that is an error."""
    bench = Bench({"a{0}": (1.0, 1.0), "b": (1.0, 2.0)})
    drawn = bench._launch

    def launch(side: int, selected: Collection[str] | None) -> SampleSet:
        if len(bench.calls) > pairs:
            raise kind("base: at a{0} for 9 min", "a{0}")
        return drawn(side, selected)

    monkeypatch.setattr(bench, "_launch", launch)
    if not pairs:
        with pytest.raises(kind):
            _compare(bench)
        return
    comparison = _compare(bench)
    hung = {(each.verdict, each.reason) for each in comparison.judgements if each.key == "a{0}"}
    assert hung == {(Verdict.INCONCLUSIVE, "base: at a{0} for 9 min")}
    assert comparison.notes[0] == "pair 4 does not count: base: at a{0} for 9 min"
    assert all(len(each.contender) == pairs for each in comparison.judgements)


def test_what_is_going_on_is_said() -> None:
    message: list[str] = []
    bench = Bench({"slow": (1.0, 1.5), **_same(2)})
    job = PairedComparison(bench, PairPlan(), RULES, say=message.append, clock=lambda: bench.now_s)
    job.compare(("base", "contender"))
    assert len(message) == len(bench.calls)
    assert message[0] == "pair 1: all cases"  # nobody knows how long a pair takes
    usual = "a clear change is told after 11 pairs, in 3 min 20 s"
    assert message[1] == f"pair 2: all cases, 1 min 20 s until pair 5 is done; {usual}"
    assert message[5] == "pair 6: 1 of 3 cases is open, 8 min 20 s left, for pair 30 at most"


def test_a_short_budget_is_said_before_it_is_over() -> None:
    message: list[str] = []
    bench = Bench(_same(3))
    plan = PairPlan(budget_s=3 * _PAIR_S)
    job = PairedComparison(bench, plan, RULES, say=message.append, clock=lambda: bench.now_s)
    job.compare(("base", "contender"))
    assert message[1].startswith("pair 2: all cases, for which the budget has time until pair 3; ")
    assert len(message) == 3


def test_contended_launches_are_noted() -> None:
    """They are noise for both sides alike: a change is found, and a reader is told."""
    bench = Bench({"slow": (1.0, 1.5), "same": (1.0, 1.0)})
    bench.contended = {"slow"}
    comparison = _compare(bench)
    assert comparison.verdicts["slow"] is Verdict.REGRESSED
    assert any("launches of 1 of 2 cases" in note for note in comparison.notes)


def test_unequal_work_is_not_measured_further() -> None:
    bench = Bench({"a": (1.0, 1.5), "b": (1.0, 1.0)})

    def measure(selected: Collection[str] | None, seed: int) -> Pair:
        sides = bench(selected, seed)
        base, contender = (
            replace(
                side,
                samples={
                    **side.samples,
                    "a": sample("a", side.samples["a"].times_s, result_is_view=is_view),
                },
            )
            for side, is_view in zip(sides, (False, True), strict=True)
        )
        return base, contender

    job = PairedComparison(measure, PairPlan(), RULES, clock=lambda: bench.now_s)
    comparison = job.compare(("base", "contender"))
    assert comparison.verdicts == {"a": Verdict.INCONCLUSIVE, "b": Verdict.UNCHANGED}
    assert "a copy, the contender's a view" in comparison.judgements[0].reason
    assert bench.further == []


def test_cases_of_one_side() -> None:
    bench = Bench({"lost": (1.0, None), "found": (None, 1.0), "slow": (1.0, 1.5)})
    comparison = _compare(bench)
    assert comparison.verdicts == {
        "slow": Verdict.REGRESSED,
        "lost": Verdict.MISSING,
        "found": Verdict.NEW,
    }
    assert {*bench.further} == {("slow",)}


def test_tests_whose_ids_differ_in_each_collection_have_a_sentence_each() -> None:
    """Not a row for each launch, of which none says why."""
    addresses = itertools.count(0x7F5E69928B10, 64)
    keys = [*(f"a.py::test_{name}[<C at {{:#x}}>]" for name in "ab"), "same"]

    def measure(_: Collection[str] | None, __: int) -> Pair:
        sides = [[key.format(next(addresses)) for key in keys] for _ in range(2)]
        base, contender = (run(*(sample(key, (1.0,)) for key in side)) for side in sides)
        return base, contender

    compared = PairedComparison(measure, PairPlan(pairs=2), RULES).compare(("base", "contender"))
    reasons = {each.key: each.reason for each in compared.judgements if each.key != "same"}
    assert {*reasons} == {"a.py::test_a[<C at ...>]", "a.py::test_b[<C at ...>]"}
    assert {*reasons.values()} == {f"{CHANGING_ID}, on both sides"}


@pytest.mark.parametrize("since", [0, 4])
def test_a_case_that_fails_on_one_side_says_so(since: int) -> None:
    bench = Bench({"a": (1.0, 1.0), "b": (1.0, 1.0)})
    bench.lost[1] = since, {"b": "call failed"}
    missing = [
        judgement
        for judgement in _compare(bench).judgements
        if judgement.verdict is Verdict.MISSING
    ]
    assert [(judgement.key, judgement.reason) for judgement in missing] == [("b", "call failed")]


def test_a_case_that_fails_on_both_sides_is_not_passed_over() -> None:
    """Nothing passes in silence: it is named, among the verdicts or the notes."""
    bench = Bench({"a": (1.0, 1.0), "broken": (1.0, 1.0)})
    bench.lost = {side: (0, {"broken": "call failed"}) for side in (0, 1)}
    comparison = _compare(bench)
    reported = [*(judgement.name for judgement in comparison.judgements), *comparison.notes]
    assert any("broken" in text for text in reported)


@pytest.mark.parametrize("base", ["call failed", "skipped: no GPU"])
def test_a_case_that_neither_side_measures_has_the_reasons_of_both(base: str) -> None:
    bench = Bench({"a": (1.0, 1.0), "broken": (1.0, 1.0)})
    bench.lost = {0: (0, {"broken": base}), 1: (0, {"broken": "call failed"})}
    (lost,) = (each for each in _compare(bench).judgements if each.key == "broken")
    both = base == "call failed"
    assert lost.reason == f"call failed{', on both sides' if both else f'; in the base: {base}'}"
    assert lost.verdict is Verdict.MISSING


@pytest.mark.parametrize("side", [0, 1])
def test_an_open_case_that_is_lost_is_inconclusive(side: int) -> None:
    """It looked changed, and could not be measured again: neither a finding nor nothing."""
    bench = Bench({"slow": (1.0, 1.5), "other": (1.0, 1.5)})
    bench.lost[side] = 5, {"slow": "call failed"}
    comparison = _compare(bench)
    assert comparison.verdicts == {"slow": Verdict.INCONCLUSIVE, "other": Verdict.REGRESSED}
    (lost,) = (judgement for judgement in comparison.judgements if judgement.key == "slow")
    assert "call failed" in lost.reason


def test_facts_that_are_not_compared_must_be_the_same() -> None:
    bench = Bench({"slow": (1.0, 1.5)})
    bench.facts[1] = {"framework_version": "2.0"}
    with pytest.raises(DifferentSettings, match="framework"):
        _compare(bench)
    assert len(bench.calls) == 1
    comparison = _compare(bench, tested=("framework", "toggles"))
    assert [note for note in comparison.notes if "2.0" in note]


# Results of functions


@pytest.mark.parametrize("side", [0, 1])
def test_different_results_are_a_verdict_whatever_the_times_say(side: int) -> None:
    """It fails the job, and no further pairs are measured for its times."""
    bench = Bench({"same": (1.0, 0.5)})
    bench.facts[side] = {"different_results": "in the base: something else", "side_error": 0.5}
    comparison = _compare(bench, pairs=2)
    (judgement,) = comparison.judgements
    assert judgement.verdict is Verdict.DIFFERENT == "different results"
    assert judgement.reason == "in the base: something else"
    assert comparison.counts == {"different results": 1}
    assert comparison.exit_status(FAIL_ON) == 1
    assert comparison.exit_status([FailOn.REGRESSED]) == 0
    assert len(bench.calls) == 2
    assert not any("agree" in note for note in comparison.notes)
    assert Comparison.from_json(comparison.to_json()).verdicts == comparison.verdicts


def test_results_that_differ_in_a_later_pair_count() -> None:
    first, later = sample("a", [1.0]), sample("a", [1.0], different_results="in the base: that")
    assert first.joined(later).facts.different_results == "in the base: that"
    assert later.joined(first).facts.different_results == "in the base: that"


@pytest.mark.parametrize(
    ("errors", "note"),
    [
        ((1e-6, None), "results agree to 1e-06 (2 cases)"),
        ((1e-6, 2e-6), "results agree to 2e-06 (2 cases)"),
        ((0.0, None), "results agree (2 cases)"),
        ((None, None), None),
    ],
)
def test_the_agreement_of_results_is_noted(
    errors: tuple[float | None, float | None], note: str | None
) -> None:
    """Whichever side has looked, or both."""
    bench = Bench(_same(2))
    bench.facts = [{} if error is None else {"side_error": error} for error in errors]
    notes = _compare(bench, pairs=2).notes
    assert [text for text in notes if "agree" in text] == ([] if note is None else [note])
