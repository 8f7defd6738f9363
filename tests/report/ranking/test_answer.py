"""The answer in words counts frameworks, whatever their executions, and calls no close race."""

from __future__ import annotations

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.report.ranking import Answer, answers, contests, winner


def timed(framework: str, time_s: float, execution: str = "eager", size: int = 8) -> Measurement:
    facts = CaseFacts.checked(
        {
            "workload": "sigmoid",
            "framework": framework,
            "device": "cpu",
            "execution": execution,
            "direction": "forward",
            "dtype": "float32",
            "size": size,
        }
    )
    return Measurement(facts, (time_s,))


def answer(*cases: Measurement) -> Answer:
    (only,) = answers(contests(cases))
    return only


def test_wins_are_counted_by_framework() -> None:
    found = answer(
        *(timed("numpy", 1.0, size=8), timed("torch", 2.0, size=8)),
        *(timed("numpy", 2.0, size=9), timed("torch", 1.0, size=9)),
        *(timed("numpy", 2.0, size=10), timed("torch", 1.0, size=10)),
    )
    assert found.text == "torch for 2 of 3, numpy for 1"
    assert (found.kind, found.device) == ("operations, forward", "cpu")


@pytest.mark.parametrize(("rival_s", "close"), [(1.04, True), (1.06, False)])
def test_small_differences_are_too_close_to_call(rival_s: float, close: bool) -> None:
    """Below what launches of the same case differ by."""
    found = answer(timed("numpy", 1.0), timed("torch", rival_s))
    assert found.too_close == close
    assert found.text == ("1 too close to call" if close else "numpy for 1 of 1")


def test_executions_of_one_framework_are_no_rivals() -> None:
    cases = [
        timed("tensorflow", 1.0, "graph"),
        timed("tensorflow", 1.01, "xla"),
        timed("numpy", 2.0),
    ]
    (contest,) = contests(cases)
    fastest = winner(contest)
    assert fastest is not None
    assert fastest.contestant == "tensorflow graph"
    assert answer(*cases).fastest == {"tensorflow": 1}


def test_a_framework_alone_wins_nothing() -> None:
    assert answers(contests([timed("torch", 1.0), timed("torch", 2.0, "compile")])) == []
