"""A change of the time on a GPU is one of its work only if it shows in cycles of its clock."""

from typing import Any

import pytest

from fwbench.gate import sequential, stored
from fwbench.gate.samples import SampleSet
from fwbench.gate.verdicts import FAIL_ON, Comparison, Judgement, Rules, Verdict
from fwbench.records.measurement import Measurement
from fwbench.report import verdicts
from support.launched_runs import entry, output, run, sample, times

RULES = Rules(margin=0.01, level=0.02)

HZ = 1.98e9

_LAUNCHES = 20


def sides(change: float, clock: float | None) -> tuple[Measurement, Measurement]:
    """Launches that differ in their times, and in the clock that they ran at.

    Args:
        change: of the time, as a share.
        clock: its change; None where it is not known.
    """
    made = []
    for seed, (factor, hz) in enumerate([(1.0, HZ), (1 + change, HZ * (1 + (clock or 0.0)))]):
        launched = times(factor, _LAUNCHES, 0.003, seed)
        known: dict[str, Any] = {} if clock is None else {"clock": [hz] * _LAUNCHES}
        made.append(sample("a", launched, **known))
    return made[0], made[1]


def by_time(judgements: list[Judgement]) -> Judgement:
    return next(judgement for judgement in judgements if judgement.metric == "minimum")


#: Change of the time, change of the clock, and what is said of both together.
AGREEMENTS = [
    (0.05, 0.0, Verdict.REGRESSED),
    (-0.05, 0.0, Verdict.IMPROVED),
    (0.05, 1 / 1.05 - 1, Verdict.UNCHANGED),
    (-0.05, 1 / 0.95 - 1, Verdict.UNCHANGED),
    (0.3, 1 / 1.05 - 1, Verdict.REGRESSED),
    (0.0, -0.05, Verdict.UNCHANGED),
    (0.05, None, Verdict.REGRESSED),
]


@pytest.mark.parametrize(
    ("change", "clock", "verdict"),
    AGREEMENTS,
    ids=[
        *("slower at one clock", "faster at one clock", "slower clock", "faster clock"),
        *("slower and slower clock", "only the clock", "unknown clock"),
    ],
)
def test_launches_must_differ_in_cycles_too(
    change: float, clock: float | None, verdict: Verdict
) -> None:
    base, contender = sides(change, clock)
    assert sequential.verdict_so_far(base, contender, RULES, 1) is verdict
    result = by_time(sequential.judge(base, contender, RULES, 1))
    assert result.verdict is verdict
    ratio = None if clock is None else pytest.approx((1 + change) * (1 + clock), rel=5e-3)
    assert result.cycles_ratio == ratio
    assert by_time(stored.judge(base, contender, RULES, 0.02)).verdict is verdict


def test_too_little_evidence_in_cycles_is_inconclusive() -> None:
    base, contender = sides(0.05, 0.0)
    hz = [HZ * (1.06 if i % 3 else 0.9) for i in range(_LAUNCHES)]
    scattered = sample("a", contender.times_s, clock=hz)
    result = by_time(sequential.judge(base, scattered, RULES, 1))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.reason.startswith("no change in cycles is certain: the clock differed")


def stored_run(factor: float, hz: float, device: str = "gpu:0") -> SampleSet:
    """A run of a case in which every launch has recorded its clock."""
    launches = [
        {"launch": i, "value_s": time_s, "min_s": time_s, "median_s": time_s, "sm_clock_hz": hz}
        for i, time_s in enumerate(times(factor, _LAUNCHES, 0.003))
    ]
    record = entry(device=device, device_name="Fake GPU", launches=launches)
    return SampleSet.from_json("run.json", output([record]))


def test_terminal_and_json_say_that_the_clock_differed() -> None:
    compared = stored.compare(stored_run(1.0, HZ), stored_run(1.05, HZ / 1.05), RULES)
    assert compared.counts == {"unchanged": 1}
    assert compared.exit_status(FAIL_ON) == 0
    (line,) = [line for line in verdicts.table(compared) if line.startswith("unchanged")]
    assert "+5.0%" in line
    assert line.endswith("no change: the clock differed (1,980 and 1,886 MHz); in cycles +0.0%")
    repeated = Comparison.from_json(compared.to_json())
    assert repeated.judgements == compared.judgements
    assert [judgement.cycles_ratio for judgement in repeated.judgements] == pytest.approx(
        [1.0, 1.0]
    )


def test_without_a_clock_nothing_is_said_of_cycles() -> None:
    base, contender = sides(0.05, None)
    compared = stored.compare(run(base), run(contender), RULES)
    assert compared.counts == {"regressed": 1}
    assert not any("cycles" in line for line in verdicts.table(compared))
