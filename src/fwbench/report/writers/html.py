"""The report as one HTML file: nothing in it asks for anything from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2

from fwbench.report import sections, summary
from fwbench.report.drawing.chart import SCRIPT
from fwbench.report.model import Run, labels
from fwbench.report.section import KEYS, Section
from fwbench.report.units import count
from fwbench.version import __version__


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of one run come from."""

    title: str
    facts: Sequence[tuple[str, str]] = field(default_factory=list)


def render(
    runs: Sequence[Run], problems: Sequence[str] = (), before: Sequence[Section] = ()
) -> str:
    """The page of one or several runs.

    Args:
        runs: in the order in which they are shown.
        problems: files that could not be read, each with the reason.
        before: sections that are shown before those of the runs.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fwbench.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    details = sections.linkable([*before, *sections.details(runs)])
    source = environment.loader
    assert source is not None  # noqa: S101 (it was just given)
    return environment.get_template("report.html.j2").render(
        title="fwbench report",
        lead=_lead(runs),
        problems=problems,
        notes=summary.notes(runs),
        summary=summary.sections(runs),
        filters=_filters(details),
        details=details,
        provenance=[_provenance(run, name) for run, name in zip(runs, labels(runs), strict=True)],
        css=source.get_source(environment, "report.css")[0],
        script=source.get_source(environment, "report.js")[0],
        tooltips=SCRIPT if any(section.charts for section in details) else "",
    )


def _filters(details: Sequence[Section]) -> dict[str, list[str]]:
    """The facts that rows can be filtered by, each with its values."""
    rows = [row for section in details for row in section.rows]
    return {
        name: sorted({row.keys[name] for row in rows if name in row.keys}) for name in KEYS if rows
    }


def _lead(runs: Sequence[Run]) -> str:
    size = ""
    if any(run.records or run.comparison is None for run in runs):
        cases = sum(len(run.records) for run in runs)
        size = f"{count(cases, 'case')} of {count(len(runs), 'run')}. "
    return (
        f"{size}Written by fwbench {__version__}. Times are completion times of one call unless "
        "they say otherwise."
    )


def _provenance(run: Run, title: str) -> Provenance:
    """Machine, versions, threads, toggles, data, command line, revision."""
    if run.comparison is not None and not run.records and not run.surroundings:
        return Provenance(title, [(k, str(v)) for k, v in run.comparison.rules.items()])
    around = run.surroundings
    machine = around.get("machine", {})
    facts: dict[str, Any] = {
        "measured": run.when or "not recorded",
        "command": " ".join(around.get("arguments", [])) or "not recorded",
        "revision": _revision(run.commit),
        "cpu": run.cpu or "not recorded",
        "usable cpus": machine.get("usable_cpus", "not recorded"),
        "system": machine.get("os") or run.machine.get("system", "not recorded"),
        "python": machine.get("python") or run.machine.get("python_version", "not recorded"),
        "threads": around.get("threads", "not recorded"),
        "launches": _launches(around.get("launches")),
        "written by": f"fwbench {around['version']}" if "version" in around else "pytest-benchmark",
    }
    facts |= {
        name: f"{one.get('version')}; {_joined(one.get('build', {}))}"
        for name, one in around.get("frameworks", {}).items()
    }
    facts |= {f"{name}, absent": why for name, why in around.get("absent", {}).items()}
    for record in run.records:
        data = record.data
        if isinstance(data, Mapping):
            facts[f"data set {data.get('name')}"] = f"{data.get('source')}: {data.get('origin')}"
        for name, value in (record.toggles or {}).items():
            facts.setdefault(f"{record.framework} {name}", value)
    return Provenance(title, [(name, str(value)) for name, value in facts.items()])


def _revision(commit: Mapping[str, Any]) -> str:
    if not commit.get("id") or commit["id"] == "unversioned":
        return "not recorded"
    dirty = ", with uncommitted changes" if commit.get("dirty") else ""
    return f"{commit['id']} ({commit.get('branch')}){dirty}"


def _launches(plan: Mapping[str, Any] | None) -> str:
    return "one" if plan is None else f"{plan['launches']}, seed {plan['seed']}"


def _joined(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
