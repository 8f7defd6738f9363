"""Parts of all profilers: classes of operators by name, own times of events, traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import CLASSES, Event, class_of
from support.tables import tabled

_TABLE = {"elementwise": ("log", "add"), "loss": ("log_softmax",)}


@tabled
def test_the_longest_prefix_decides(name: str, operator_class: str) -> None:
    """And an operator that nobody classed is of the class ``other``, not of a near one."""
    assert class_of(name, _TABLE) == operator_class


@pytest.mark.parametrize("names", ["torch", "tensorflow", "mxnet", "onnxruntime", "xla"])
def test_a_table_has_classes_that_there_are(names: str) -> None:
    """A class that reports do not know would be in no picture; a prefix is of one class."""
    prefixes = profiler.prefixes(names)
    assert {*prefixes} <= {*CLASSES}
    every = [prefix for of_class in prefixes.values() for prefix in of_class]
    assert sorted({name for name in every if every.count(name) > 1}) == []


def event(name: str, start_s: float, end_s: float, thread: str = "one") -> Event:
    return Event(thread, name, start_s * 1e9, (end_s - start_s) * 1e9)


def test_own_time_is_without_what_lies_within() -> None:
    """Events of the same thread, at any depth, in any order."""
    events = [
        *(event("inner", 2.0, 4.0), event("outer", 0.0, 10.0), event("innermost", 2.5, 3.0)),
        *(event("second", 4.0, 5.0), event("later", 10.0, 11.0)),
        event("elsewhere", 1.0, 9.0, thread="two"),
    ]
    own_s = {timed_event.name: time_s for timed_event, time_s in profiler.own_times_s(events)}
    assert own_s == pytest.approx(
        {
            "outer": 7.0,
            "inner": 1.5,
            "innermost": 0.5,
            "second": 1.0,
            "later": 1.0,
            "elsewhere": 8.0,
        }
    )


def test_events_become_a_trace(tmp_path: Path) -> None:
    """Complete events in microseconds, each with its thread, whose name is metadata."""
    file = tmp_path / "trace.json"
    profiler.write_trace([event("a", 1.0, 3.0), event("b", 2.0, 3.0, thread="two")], file)
    named, other, first, second = json.loads(file.read_text())["traceEvents"]
    assert (named["ph"], named["args"], other["args"]) == ("M", {"name": "one"}, {"name": "two"})
    assert (first["name"], first["ts"], first["dur"]) == ("a", 1e6, 2e6)
    assert first["tid"] == named["tid"] != second["tid"] == other["tid"]


@tabled
def test_a_fusion_is_fused(name: str, operator_class: str) -> None:
    """Whatever it is made of; a fusion of one operator is that operator."""
    assert profiler.instruction_class(name) == operator_class


def test_an_instruction_loses_its_number() -> None:
    """XLA numbers them."""
    names = ["dot.12", "reduce-window", "fusion.1.2", "add.clone"]
    assert [profiler.instruction(name) for name in names] == [
        *("dot", "reduce-window", "fusion.1", "add.clone")
    ]
