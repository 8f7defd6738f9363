"""The report as one HTML file: nothing in it asks for anything from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2

from fwbench.records.session_facts import Machine, StoredPlan
from fwbench.records.units import count
from fwbench.report import sections, summary
from fwbench.report.drawing.chart import SCRIPT
from fwbench.report.model import Run, labels
from fwbench.report.section import KEYS, Section
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
        places={section.title: section.id for section in details},
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
    if run.comparison is not None and not run.records and not run.session:
        return Provenance(title, [(k, str(v)) for k, v in run.comparison.rules.items()])
    session = run.session
    machine = session.machine or Machine()
    facts: dict[str, Any] = {
        "measured": run.when or "not recorded",
        "command": " ".join(session.arguments or []) or "not recorded",
        "revision": _revision(run.commit),
        "cpu": run.cpu or "not recorded",
        "usable cpus": machine.usable_cpus or "not recorded",
        "system": machine.os or run.machine.get("system", "not recorded"),
        "python": machine.python or run.machine.get("python_version", "not recorded"),
        "threads": session.threads or "not recorded",
        "launches": _launches(session.launches),
        "written by": f"fwbench {session.version}" if session.version else "pytest-benchmark",
    }
    facts |= {
        name: f"{framework.version}; {_joined(framework.build or {})}"
        for name, framework in (session.frameworks or {}).items()
    }
    facts |= {f"{name}, absent": why for name, why in (session.absent or {}).items()}
    for record in run.records:
        data = record.facts.data
        if data is not None:
            facts[f"data set {data.name}"] = f"{data.source}: {data.origin}"
        for name, value in (record.facts.toggles or {}).items():
            facts.setdefault(f"{record.facts.framework} {name}", value)
    return Provenance(title, [(name, str(value)) for name, value in facts.items()])


def _revision(commit: Mapping[str, Any]) -> str:
    if not commit.get("id") or commit["id"] == "unversioned":
        return "not recorded"
    dirty = ", with uncommitted changes" if commit.get("dirty") else ""
    return f"{commit['id']} ({commit.get('branch')}){dirty}"


def _launches(plan: StoredPlan | None) -> str:
    return "one" if plan is None else f"{plan.launches}, seed {plan.seed}"


def _joined(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
