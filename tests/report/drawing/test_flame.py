"""Flame graphs: functions below their callers, in the colours of what has changed."""

from __future__ import annotations

from typing import Any

from fwbench.report.drawing import flame
from fwbench.report.section import Section
from fwbench.report.sections import functions
from support.launched_runs import plain
from support.reports import parsed, runs_of
from support.section_parts import rows

_BASE = {"<call>;t.py:f": 50.0, "<call>;t.py:f;t.py:g": 25.0, "<call>;t.py:f;t.py:<gone>": 25.0}
_CONTENDER = {"<call>;t.py:f": 50.0, "<call>;t.py:f;t.py:g": 150.0}


def _boxes(svg: str) -> dict[str, dict[str, str]]:
    """The rectangle of each function, by its title."""
    picture = parsed(svg)
    names = [node.text.partition(": ")[0] for node in picture.all("title")]
    return dict(zip(names, [node.attributes for node in picture.all("rect")], strict=True))


def test_width_is_of_the_contender_and_colour_of_the_difference() -> None:
    """Nothing of the base alone has a width, and nothing that samples cannot tell a colour."""
    chart = flame.draw("calls", (_BASE, 1.0), (_CONTENDER, 2.0), {"t.py:f": 0.1})
    boxes = _boxes(chart.svg)
    assert [*boxes] == ["<call>", "t.py:f", "t.py:g"]
    assert [box["width"] for box in boxes.values()] == ["100.000%", "100.000%", "75.000%"]
    assert [box["y"] for box in boxes.values()] == ["0", "18", "36"]
    assert [box["fill"] for box in boxes.values()] == ["var(--faint)", "var(--faint)", "#d6402f"]
    assert chart.text == "calls: t.py:g +1.25 s; t.py:<gone> -250 ms"


def test_shorter_is_blue_and_one_run_has_no_colours() -> None:
    assert (
        _boxes(flame.draw("", (_CONTENDER, 2.0), (_BASE, 1.0), {}).svg)["t.py:g"]["fill"]
        == "#2f6fd6"
    )
    alone = flame.draw("", (_BASE, 1.0), (_BASE, 1.0), {})
    assert {box["fill"] for box in _boxes(alone.svg).values()} == {"var(--faint)"}


def _entry(call_s: float, **sampled: Any) -> dict[str, Any]:
    made = plain(min_s=call_s)
    return {**made, "extra_info": {"fwbench": {"plain_test": True, "sampled": sampled}}}


def _sections(**runs: dict[str, Any]) -> list[Section]:
    read = runs_of(**{name: [entry] for name, entry in runs.items()})
    return functions.sections(read, [run.name for run in read])


def test_a_report_compares_each_run_with_the_first() -> None:
    base = _entry(1.0, stacks=_BASE)
    (section,) = _sections(base=base, contender=_entry(2.0, stacks=_CONTENDER))
    assert section.title == "functions: test_it.py::test_plain (contender.json) against base.json"
    assert rows(section)[0] == {
        "function": "g() in t.py",
        "own: base": "375 ms",
        "own: contender": "2.25 s",
        "change": "+1.88 s",
        "with callees: base": "375 ms",
        "with callees: contender": "2.25 s",
    }
    assert len(section.charts) == 1
    (section,) = _sections(base=base)
    assert rows(section)[0] == {"function": "f() in t.py", "own": "750 ms", "with callees": "1.5 s"}
    (section,) = _sections(base=base, contender=_entry(1.0, gap="it failed"))
    assert section.gaps == ["contender.json: it failed"]
