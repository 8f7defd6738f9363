"""What is faster than the machine can be gets no number."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from fwbench.cases import timing
from fwbench.errors import ImpossibleRate
from fwbench.measure.limits import Limits
from fwbench.plugin import host
from fwbench.records.facts import CaseFacts
from fwbench.testing import FakeFramework
from fwbench.workloads.workload import Cost
from support.fakes import case_of, cell, operation

#: A call of the fake framework takes 65 / 1024 s.
_S = 65 / 1024

_LIMITS = Limits({"float32": 1e9}, 1e10, {"float32": "2 CPUs", "bytes": "2 CPUs"})


def _facts(**changes: Any) -> CaseFacts:
    """A billion operations on ten billion bytes in a second, which is just possible."""
    possible = CaseFacts.unchecked(
        {"dtype": "float32", "flops": 1e9, "bytes": 1e10, "completion_s": 1.0}
    )
    return possible | CaseFacts.unchecked({"result_is_view": False, **changes})


def test_what_is_possible_is_recorded_with_its_limits() -> None:
    """Both, where both are known."""
    held = timing.check_rates(_facts(), _LIMITS)
    assert dict(held) == {"limit_flops_per_s": 1e9, "limit_bytes_per_s": 1e10}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"flops": 6.253e12},
            "6,253 GFLOP in 1 s are 6,253 GFLOP/s, and no more than 1 are possible here (2 CPUs)",
        ),
        (
            {"bytes": 2e10},
            "20 GB in 1 s are 20 GB/s, and no more than 10 are possible here (2 CPUs)",
        ),
    ],
)
def test_what_is_impossible_is_refused(changes: dict[str, float], said: str) -> None:
    """The message has the work, the time, the rate, the limit and where it is from."""
    with pytest.raises(ImpossibleRate, match=re.escape(said)):
        timing.check_rates(_facts(**changes), _LIMITS)


def test_tf32_is_held_against_products_in_tf32() -> None:
    """They are many times as fast as those of float32, and that is no mistake."""
    limits = replace(_LIMITS, flops_per_s={"float32": 1e9, "tf32": 8e9})
    fast = {"flops": 8e9, "toggles": {"tf32": "on"}}
    assert timing.check_rates(_facts(**fast), limits).limit_flops_per_s == 8e9
    with pytest.raises(ImpossibleRate):
        timing.check_rates(_facts(**{**fast, "toggles": {"tf32": "off"}}), limits)


@pytest.mark.parametrize("is_view", [True, None])
def test_views_move_no_bytes(is_view: bool | None) -> None:
    """Nor does what may be one."""
    held = timing.check_rates(_facts(bytes=1e15, result_is_view=is_view), _LIMITS)
    assert dict(held) == {"limit_flops_per_s": 1e9}


@pytest.mark.parametrize(
    ("changes", "limits"),
    [
        ({"flops": None, "bytes": None}, _LIMITS),
        ({"flops": 0.0, "bytes": 0.0}, _LIMITS),
        ({"dtype": "float16", "flops": 1e20, "bytes": None}, _LIMITS),
        ({"flops": 1e20, "bytes": 1e20}, Limits()),
    ],
    ids=["no cost is declared", "no work is declared", "another dtype", "no limit is known"],
)
def test_where_nothing_is_known_nothing_is_claimed(changes: dict[str, Any], limits: Limits) -> None:
    """Neither a failure nor a fact."""
    assert dict(timing.check_rates(_facts(**changes), limits)) == {}


def test_a_case_that_is_too_fast_has_no_record() -> None:
    """Its rounds are not kept, and the session goes on."""
    of = operation(cost=lambda _: Cost(flops=2e9 * _S, elements=0.0))
    case = case_of(cell(of), FakeFramework())
    case._limits = replace(_LIMITS, flops_per_s={"float32": 1.9e9})
    with pytest.raises(ImpossibleRate):
        case.measure()
    assert case.benchmark.extra_info == {}
    assert host.record(case.benchmark) is None


def test_a_case_that_is_fast_enough_has_one() -> None:
    """With the limit that it was held against."""
    of = operation(cost=lambda _: Cost(flops=2e9 * _S, elements=0.0))
    case = case_of(cell(of), FakeFramework())
    case._limits = replace(_LIMITS, flops_per_s={"float32": 2.1e9})
    case.measure()
    assert case.benchmark.extra_info["fwbench"]["limit_flops_per_s"] == 2.1e9
