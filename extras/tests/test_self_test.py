"""The self-test says how often comparisons err, and what they see: right where that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwbench.gate.ab import PairPlan
from fwbench.gate.verdicts import Rules
from fwbench.processes import session
from fwbench_extras import self_test
from fwbench_extras.self_test import Pool
from support.launched_runs import entry, output, sample

_PLAN = PairPlan()
_RULES = Rules(margin=0.01, level=0.02)
_LAUNCHES = 40


def _pool(
    slowdowns: dict[int, float], spread: float = 0.0, contended: Sequence[set[str]] = ()
) -> Pool:
    """Launches of four cases, of which two have slowed forms.

    Args:
        contended: keys by launch; default: none.
    """
    random = np.random.default_rng(0)

    def values(center: float) -> tuple[float, ...]:
        drawn = center * np.exp(spread * random.standard_normal(_LAUNCHES))
        return tuple(map(float, drawn))

    samples = [sample(f"{name}-1000", values(1.0)) for name in ("exp", "sort", "sum", "copy")]
    samples += [
        sample(f"{name}_slowed_{percent // 5}-1000", values(factor))
        for name in ("exp", "sort")
        for percent, factor in slowdowns.items()
    ]
    return Pool(samples, contended or [set() for _ in range(_LAUNCHES)])


def _outcomes(pool: Pool, **changes: Any) -> list[self_test.ErrorRates]:
    return self_test.outcomes(
        pool,
        changes.get("plan", _PLAN),
        changes.get("rules", _RULES),
        changes.get("comparisons", 10),
        changes.get("seed", 0),
    )


def test_a_pool_knows_slowed_forms_from_cases() -> None:
    """A slowed form belongs to a case, and is not a case of the suite itself."""
    pool = _pool({5: 1.05, 10: 1.1})
    assert {*pool.cases} == {"exp-1000", "sort-1000", "sum-1000", "copy-1000"}
    assert pool.percents == [5, 10]
    assert {key: form.key for key, form in pool.forms(10).items()} == {
        "exp-1000": "exp_slowed_2-1000",
        "sort-1000": "sort_slowed_2-1000",
    }


def test_a_launch_of_a_pool_is_a_run() -> None:
    contended: list[set[str]] = [set() for _ in range(_LAUNCHES)]
    contended[3] = {"exp_slowed_1-1000", "sum-1000"}
    pool = _pool({5: 1.5}, contended=contended)
    slowed = {"exp-1000": pool.forms(5)["exp-1000"]}
    run = pool.run(3, slowed, None)
    assert {key: measurement.times_s for key, measurement in run.samples.items()} == {
        "exp-1000": (1.5,),
        "sort-1000": (1.0,),
        "sum-1000": (1.0,),
        "copy-1000": (1.0,),
    }
    assert {key for key, measurement in run.samples.items() if measurement.contended} == {
        "exp-1000",
        "sum-1000",
    }
    assert not pool.run(3, {}, None).samples["exp-1000"].contended
    assert {*pool.run(4, {}, ["sum-1000"]).samples} == {"sum-1000"}


def test_a_part_of_a_pool_has_consecutive_launches() -> None:
    pool = _pool({5: 1.05}, spread=0.1, contended=[{str(i)} for i in range(_LAUNCHES)])
    part = pool.part(4, 3)
    assert part.launches == 3
    assert part.contended == [{"4"}, {"5"}, {"6"}]
    for key, case in pool.cases.items():
        assert part.cases[key].launches == case.launches[4:7]
    for key, form in pool.slowed.items():
        assert part.slowed[key].launches == form.launches[4:7]


def test_constant_times_have_no_false_alarm() -> None:
    """Launches that do not differ are never called changed, and take the first pairs alone."""
    (nothing,) = _outcomes(_pool({}))
    assert (nothing.what, nothing.percent) == ("nothing changed", 0)
    assert (nothing.comparisons, nothing.false_alarms, nothing.cost) == (10, 0, 1.0)


def test_what_is_clearly_slower_is_always_found() -> None:
    nothing, slowed = _outcomes(_pool({10: 1.1}))
    assert nothing.false_alarms == 0
    assert slowed.what == "one case of 4 slowed by 10 %"
    assert (slowed.comparisons, slowed.detected, slowed.overlooked) == (10, 10, 0)
    assert (slowed.claimed, slowed.kept) == (10, 10)
    # One of 4 cases is launched more often than five times a side.
    assert 1 < slowed.cost < 2


def test_what_is_below_the_threshold_is_never_found() -> None:
    _, slightly = _outcomes(_pool({5: 1.02}))
    assert (slightly.detected, slightly.overlooked, slightly.false_alarms) == (0, 10, 0)
    # It does its 5 % less than it should, and what was said of it does not hold.
    assert slightly.kept < slightly.claimed


def test_each_slowdown_has_its_outcome() -> None:
    _, little, much = _outcomes(_pool({10: 1.5, 5: 1.005}))
    assert (little.what, little.detected) == ("one case of 4 slowed by 5 %", 0)
    assert (much.what, much.detected) == ("one case of 4 slowed by 10 %", 10)


def test_outcomes_are_repeatable() -> None:
    pool = _pool({5: 1.05}, spread=0.03)
    first, repeated, other = (_outcomes(pool, comparisons=6, seed=seed) for seed in (1, 1, 2))
    assert first == repeated
    assert first != other


def test_a_pool_of_a_sessions_json() -> None:

    def case(name: str, preempted: list[float]) -> dict[str, Any]:
        made = entry(name, tuple(range(1, 1 + len(preempted))))
        for launch, share in zip(made["extra_info"]["fwbench"]["launches"], preempted, strict=True):
            launch.update(preempted=share, others_cpus=1.0)
        return made

    pool = self_test.pool(output([case("exp", [0, 1, 0]), case("exp_slowed_1", [0, 1, 1])]))
    (plain,), (slowed,) = pool.cases.values(), pool.slowed.values()
    assert pool.launches == 3
    assert plain.times_s == slowed.times_s == (1, 2, 3)
    assert pool.contended == [set(), {plain.key, slowed.key}, {slowed.key}]
    assert {*pool.forms(5)} == {plain.key}


def test_the_suite_is_twenty_cases_and_slowed_forms() -> None:
    """All are right, and as often measured as they are asked for."""
    arguments = [*self_test.ARGUMENTS, "--fw-launches=2", "--benchmark-max-time=0.005"]
    pool = self_test.pool(session.measure_suite("fwbench_extras.self_test_suite", arguments))
    assert (len(pool.cases), len(pool.slowed), pool.launches) == (20, 8, 2)
    assert pool.percents == [5, 10]
    for percent in pool.percents:
        assert len(pool.forms(percent)) == 4
        assert {*pool.forms(percent)} <= {*pool.cases}
    assert all(len(case.launches) == 2 for case in (*pool.cases.values(), *pool.slowed.values()))
