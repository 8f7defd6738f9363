"""Functions that a change is in: those that have changed are named, the largest first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from fwbench.gate.explanation import Explanation
from fwbench.gate.functions import function_causes
from fwbench.records.facts import recorded
from fwbench.records.measurement import Measurement
from support.tables import tabled

_PARSE = "<call>;t.py:read;pkg/reader.py:Reader.parse"
_READER = {"<call>;t.py:read": 1000, _PARSE: 4000}


def _side(call_s: float, stacks: Mapping[str, float], **more: Any) -> Measurement:
    """A plain test of which samples were taken."""
    sampled = {"overhead": 0.1, "stacks": stacks, **more}
    return Measurement(recorded({"plain_test": True, "sampled": sampled}), [call_s] * 5)


@tabled
def test_the_largest_cause_is_named_first(
    base: Mapping[str, float], contender: Mapping[str, float], took_us: float, said: str
) -> None:
    """The base takes 100 us, in turns."""
    took_s = (1e-4, took_us * 1e-6)
    causes, _ = function_causes(
        _side(took_s[0], base), _side(took_s[1], contender), took_s, by_turns=True
    )
    assert causes[0].text == said


def test_what_is_named_and_what_is_not_add_up() -> None:
    """Seconds are those of the timed calls; the rest is one line without any."""
    contender = _side(2e-4, {**_READER, _PARSE: 9000, "<call>;t.py:x": 9}, overhead=1.6)
    causes, notes = function_causes(_side(1e-4, _READER), contender, (1e-4, 2e-4), by_turns=True)
    parse, others = causes
    assert parse.time_s == pytest.approx(2e-4 * 9000 / 10009 - 8e-5)
    assert others.text == (
        "others, among what is not explained: 2 functions, +162 ns together, none by more than "
        "180 ns"
    )
    explanation = Explanation("key", "name", 1e-4, 2e-4, causes)
    assert explanation.unexplained_s == pytest.approx(162e-9, rel=0.01)
    costs = "base +10%, contender +160%"
    assert notes == [f"functions: the profiler's cost, where calls are many: {costs}"]


def test_functions_of_a_file_that_was_moved_are_the_same() -> None:
    """An upgrade moves modules within a package; another package has functions of its own."""
    base = _side(1e-4, {"<call>;pkg/core/sorting.py:sort": 1000, "<call>;a/it.py:f": 1000})
    contender = _side(3e-4, {"<call>;pkg/_core/sorting.py:sort": 1000, "<call>;b/it.py:f": 1000})
    causes, _ = function_causes(base, contender, (1e-4, 3e-4), by_turns=True)
    assert [cause.text for cause in causes] == [
        "f() in b/it.py: 0 s -> 150 us own, only the contender has it",
        "sort() in pkg/_core/sorting.py: 50 us -> 150 us own",
        "f() in a/it.py: 50 us -> 0 s own, only the base has it",
    ]


@pytest.mark.parametrize("noise", [-60, 0, 60])
def test_equal_sides_have_no_difference(noise: float) -> None:
    """Medians of sessions may differ by more than samples can tell: then it says so."""
    base, contender = _side(1e-4, _READER), _side(1.08e-4, {**_READER, _PARSE: 4000 + noise})
    causes, (note,) = function_causes(base, contender, (1e-4, 1e-4), by_turns=True)
    assert causes == []
    assert re.fullmatch(r"functions: no difference above 3\.[12]\d? us of a call", note)
    assert function_causes(base, contender, (1e-4, 1.08e-4), by_turns=True)[0]
    assert function_causes(base, contender)[0] == []


def test_a_side_without_samples_is_a_gap() -> None:
    nothing = Measurement(recorded({"plain_test": True}), [1e-4])
    gap = Measurement(recorded({"plain_test": True, "sampled": {"gap": "it failed"}}), [1e-4])
    assert function_causes(nothing, nothing) == ([], [])
    assert function_causes(nothing, gap)[1] == [
        "functions of the base: no samples (--fw-profile)",
        "functions of the contender: it failed",
    ]
