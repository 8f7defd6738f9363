"""The report as one HTML file: nothing in it asks for anything from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2

from fwbench.records.session_facts import MachineFacts, SessionFacts
from fwbench.records.units import count
from fwbench.report import head, sections, summary
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import SCRIPT, style_sheet
from fwbench.report.model import Run, frameworks, have_same_machine, labels
from fwbench.report.section import AGAINST_FASTEST, KEYS, Section
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
    drawn = [chart for section in details for chart in section.charts]
    names = labels(runs)
    source = environment.loader
    assert source is not None  # noqa: S101 (it was just given)
    return environment.get_template("report.html.j2").render(
        title=head.title(runs),
        lead=_lead(runs),
        heads=head.heads(runs, palette.colours(frameworks(runs))),
        problems=problems,
        notes=summary.notes(runs),
        rankings=summary.rankings(runs),
        remarks=[*summary.differences(runs), *summary.gaps(runs)],
        filters=_filters(details),
        baselines=_baselines(details, runs),
        details=details,
        places={section.title: section.id for section in details},
        provenance=[_provenance(run, name) for run, name in zip(runs, names, strict=True)],
        relative=AGAINST_FASTEST,
        css=source.get_source(environment, "report.css")[0],
        chart_css=style_sheet() if drawn else "",
        script=source.get_source(environment, "report.js")[0],
        charts={"config": {chart.uuid: chart.tooltips for chart in drawn}},
        tooltips=SCRIPT if drawn else "",
    )


def _filters(details: Sequence[Section]) -> dict[str, list[str]]:
    """The facts that rows or columns can be filtered by, each with its values, if several."""
    keys = [row.keys for section in details for row in section.rows]
    keys += [keys for section in details for keys in section.column_keys.values()]
    values = {name: sorted({each[name] for each in keys if name in each}) for name in KEYS}
    return {name: several for name, several in values.items() if len(several) > 1}


def _baselines(details: Sequence[Section], runs: Sequence[Run]) -> dict[str, str]:
    """Possible bases of ratios: contestants, and runs of one machine, if several."""
    timings = [
        cell.timing
        for section in details
        for row in section.rows
        for cell in row.cells
        if cell.timing is not None
    ]
    contestants = sorted({timing.contestant for timing in timings})
    timed = sorted({timing.run for timing in timings}) if have_same_machine(runs) else []
    names = labels(runs)
    return {
        **{f"case:{name}": name for name in contestants if len(contestants) > 1},
        **{f"run:{number}": names[number] for number in timed if len(timed) > 1},
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
    """MachineFacts, versions, threads, toggles, data, command line, revision."""
    if run.comparison is not None and not run.records and not run.session:
        return Provenance(title, [(k, str(v)) for k, v in run.comparison.rules.items()])
    session = run.session
    machine = session.machine or MachineFacts()
    facts: dict[str, Any] = {
        "measured": run.when or "not recorded",
        "command": " ".join(session.arguments or []) or "not recorded",
        "revision": _revision(run.commit),
        "cpu": run.cpu or "not recorded",
        "usable cpus": machine.usable_cpus or "not recorded",
        "system": machine.os or run.machine.get("system", "not recorded"),
        "python": machine.python or run.machine.get("python_version", "not recorded"),
        "threads": session.threads or "not recorded",
        "launches": _launches(session),
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


def _launches(session: SessionFacts) -> str:
    plan = session.launches
    return "one" if plan is None else f"{head.launches(session)}, seed {plan.seed}"


def _joined(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())
