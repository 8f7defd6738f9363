"""Readers of the sections of a report, and work whose share is known."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fwbench import ceilings
from fwbench.ceilings import Ceiling
from fwbench.gate.stored import compare
from fwbench.gate.verdicts import Comparison, Rules
from fwbench.report import sections
from fwbench.report.drawing.chart import Chart
from fwbench.report.model import Run
from fwbench.report.section import Section
from support.launched_runs import output, run, sample, times
from support.reports import Node, case, parsed


def titles(runs: Sequence[Run]) -> list[str]:
    return [section.title for section in sections.details(runs)]


def rows(section: Section) -> list[dict[str, str]]:
    """A table, row by row."""
    return [
        {name: cell.text for name, cell in zip(section.columns, row.cells, strict=True)}
        for row in section.rows
    ]


def legends(chart: Chart) -> list[str]:
    """Names of the lines, or the colours, of a chart."""
    return [node.text for node in parsed(chart.svg).of_class("legend")]


def marks(chart: Chart, axis: str) -> list[str]:
    """The labels on an axis of a chart, ``x`` or ``y``."""
    (picture,) = [
        node
        for node in parsed(chart.svg).of_class("axis")
        if axis in node.attributes["class"].split()
    ]
    return [node.text for node in picture.all("text")]


def chart_lines(picture: Node) -> list[Node]:
    """The lines of a chart; the guides of its axes are called so, too."""
    return [node for node in picture.of_class("line") if node in picture.of_class("reactive")]


def points_of(node: Node) -> list[tuple[float, float]]:
    """Where something that is drawn begins, bends and ends."""
    if node.tag == "circle":
        return [(float(node.attributes["cx"]), float(node.attributes["cy"]))]
    if node.tag == "rect":
        x, y, width, height = (
            float(node.attributes.get(name, 0)) for name in ("x", "y", "width", "height")
        )
        return [(x, y), (x + width, y + height)]
    matches = re.findall(r"(-?[\d.]+) (-?[\d.]+)", node.attributes["d"])
    return [(float(x), float(y)) for x, y in matches]


def outside(chart: Chart) -> list[tuple[float, float]]:
    """Points drawn beyond the frame of a chart, where it has no scale and may be cut off."""
    picture = parsed(chart.svg)
    background = picture.of_class("plot")[0].of_class("background")[0]
    width, height = (float(background.attributes[name]) for name in ("width", "height"))
    drawn = picture.of_class("dot") + chart_lines(picture) + picture.of_class("rect")
    drawn += [path for spread in picture.of_class("ci") for path in spread.all("path")]
    assert drawn
    return [
        (x, y)
        for node in drawn
        for x, y in points_of(node)
        if not (-1 <= x <= width + 1 and -1 <= y <= height + 1)
    ]


def taking(made: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same training, all of its epochs longer by a factor."""
    made["stats"]["data"] = [factor * seconds for seconds in made["stats"]["data"]]
    for epoch in made["extra_info"]["fwbench"]["epochs"]:
        epoch["seconds"] *= factor
    return made


#: 100 GFLOP/s and 10 GB/s: from 10 operations a byte on, work is bound by computing.
CEILING = Ceiling({"float32": 1e11}, 1e10, {"float32": "torch 2.9", "copy": "numpy 1.26"})
CEILINGS = ceilings.to_json({"Fake CPU": CEILING})


def work(
    workload: str = "gemm",
    seconds: float = 0.04,
    flops: float = 2e9,
    moved_bytes: float = 1e8,
    **facts: Any,
) -> dict[str, Any]:
    """An operation of which is known what was attainable."""
    made = case(workload, values_s=seconds, **{"flops": flops, "bytes": moved_bytes, **facts})
    made["stats"]["median"] = seconds
    ceilings.annotate([made], {"Fake CPU": CEILING, "Fake GPU": CEILING})
    return made


def on_the_roof() -> list[dict[str, Any]]:
    """One bound by computing, one by memory, one that does not compute."""
    return [
        work("gemm", 0.04, 2e9, 1e8, size=1000),
        work("dot", 0.001, 2e6, 8e6, size=10**6),
        work("copy", 0.002, 0, 1.2e7, size=10**6),
    ]


def compared(*, notes: Sequence[str] = (), **changes: Any) -> Comparison:
    """One of each verdict."""
    quiet = times(1.0, 8)
    base = run(
        *(sample(name, quiet) for name in ("slow", "fast", "same", "busy")),
        sample("lost", quiet),
        name="base.json",
    )
    contender = run(
        sample("slow", times(2.0, 8)),
        sample("fast", times(0.5, 8)),
        sample("same", quiet),
        sample("busy", quiet, contended=True),
        sample("added", quiet, framework="torch"),
        name="head.json",
    )
    return compare(base, contender, Rules(**changes), notes)


def as_run(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """The record of ``--fw-gate``."""
    return output([case()], gate={"base": "b", "verdicts": {}, "comparison": comparison})


def keep(path: Path, values: Any) -> Path:
    path.write_text(json.dumps(values), encoding="utf-8")
    return path
