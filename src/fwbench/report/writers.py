"""The report as a file: one HTML page, Markdown for reviews, and CSV for spreadsheets."""

import csv
import io
import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jinja2

from fwbench.errors import UsageError
from fwbench.gate.verdicts import Comparison
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.session_facts import MachineFacts, SessionFacts
from fwbench.records.units import count, duration
from fwbench.report import escaping, sections, summary
from fwbench.report.condition import condition_of
from fwbench.report.drawing import palette
from fwbench.report.drawing.chart import SCRIPT, style_sheet
from fwbench.report.model import Run, frameworks, have_same_machine, labels
from fwbench.report.section import AGAINST_FASTEST, KEYS, Section
from fwbench.report.verdicts import MOST, detectable
from fwbench.version import __version__

_UNKNOWN = "not recorded"

#: Values of settings that are not shown as Python spells them.
_AS_WORDS = {"None": "none", "True": "yes", "False": "no"}

#: Width of a letter of a badge, in pixels.
_LETTER = 6.3

_MINUTE_S = 60

#: What a runner must see for a green badge: the resolution of ``fwbench ab``.
_FINE = 0.1

#: What the titles of operations name behind the operation.
_CELL = ("device", "direction", "dtype")


def html(runs: Sequence[Run], problems: Sequence[str] = (), before: Sequence[Section] = ()) -> str:
    """The page of one or several runs; nothing in it asks for anything from anywhere else.

    Charts that compare nothing are left out.
    """
    environment = _templates()
    every = sections.linkable([*before, *sections.details(runs)])
    details = [replace(part, charts=[c for c in part.charts if not c.is_lone]) for part in every]
    drawn = [chart for section in details for chart in section.charts]
    names, colours = labels(runs), palette.colours(frameworks(runs))
    source = environment.loader
    assert source is not None  # noqa: S101 (it was just given)
    return environment.get_template("report.html.j2").render(
        title=_title(runs, before),
        lead=_lead(runs),
        heads=summary.heads(runs, colours),
        problems=problems,
        notes=summary.notes(runs),
        cards=summary.cards(runs, colours),
        remarks=summary.remarks(runs),
        filters=_filters(details),
        baselines=_baselines(details, runs),
        details=details,
        contents=_contents(details),
        folds=any(section.folded for section in details),
        places={section.title: section.id for section in details},
        provenance={name: _provenance(run) for run, name in zip(runs, names, strict=True)},
        relative=AGAINST_FASTEST,
        css=source.get_source(environment, "report.css")[0],
        chart_css=style_sheet() if drawn else "",
        script=source.get_source(environment, "report.js")[0],
        charts={"config": {chart.uuid: chart.tooltips for chart in drawn}},
        tooltips=SCRIPT if drawn else "",
    )


def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("fwbench.report"),
        autoescape=True,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def _visible(value: Any) -> Any:
    """A value in a page: in texts and drawings nothing that moves what follows, or is not seen."""
    return type(value)(escaping.terminal(value)) if isinstance(value, str) else value


def badge(comparison: Comparison) -> str:
    """A picture (SVG) of the change that nine of ten cases would have shown, and in what time.

    Args:
        comparison: of ``fwbench ab``, best of a revision with itself.

    Raises:
        UsageError: it does not say how long it took, as that of ``fwbench gate`` does not.
    """
    took_s = comparison.rules.get("took_s")
    if not isinstance(took_s, int | float):
        raise UsageError(
            "--badge says what a runner sees in the time that fwbench ab takes, and this "
            "comparison has no such time; give it what fwbench ab --json wrote"
        )
    change = detectable(comparison, MOST)
    sees = "no change" if change is None else f"{math.ceil(round(100 * change, 3))} %"
    about_s = took_s if took_s < _MINUTE_S else _MINUTE_S * round(took_s / _MINUTE_S)
    label, value = "this runner sees", f"{sees} in {duration(about_s)}"
    return (
        _templates()
        .get_template("badge.svg.j2")
        .render(
            label=label,
            value=value,
            width=round(_LETTER * len(label)) + 12,
            shown=round(_LETTER * len(value)) + 12,
            colour="#1a7f37" if change is not None and change <= _FINE else "#9a6700",
        )
    )


def _title(runs: Sequence[Run], before: Sequence[Section]) -> str:
    return "fwbench history" if before and not runs else summary.title(runs)


def _contents(details: Sequence[Section]) -> list[tuple[str, list[tuple[str, str]]]]:
    """A table of contents: headings, each with ids and titles of its sections, in their order.

    Device, direction and dtype of most operations of families are left out.
    """
    operations = [part.shared_keys for part in details if not part.group and _family(part)]
    cells = Counter("".join(f" {keys.get(name)}" for name in _CELL) for keys in operations)
    most = max(cells, key=cells.__getitem__, default="")
    return [
        (heading, [(part.id, part.title.replace("" if part.group else most, "")) for part in parts])
        for heading, parts in group_by(details, _heading).items()
    ]


def _heading(section: Section) -> str:
    if section.group:
        return section.group
    steps = "training steps" if section.shared_keys.get("direction") == "train" else "operations"
    return _family(section) or steps


def _family(section: Section) -> str:
    return section.shared_keys.get("family", "")


def _filters(details: Sequence[Section]) -> dict[str, list[str]]:
    """The facts that rows or columns can be filtered by, each with its values, if several."""
    keys = [row.keys for section in details for row in section.rows]
    keys += [keys for section in details for keys in section.column_keys.values()]
    values = {name: sorted({facts[name] for facts in keys if name in facts}) for name in KEYS}
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
    if any(run.is_measured for run in runs):
        cases = sum(len(run.records) for run in runs)
        size = f"{count(cases, 'case')} of {count(len(runs), 'run')}. "
    return (
        f"{size}Written by fwbench {__version__}. Times are completion times of one call unless "
        "they say otherwise."
    )


def _provenance(run: Run) -> Mapping[str, Any]:
    """The source of a run's numbers: machine, versions, threads, toggles, data, revision."""
    if not run.is_measured:
        judged = run.comparison or run.row
        return {name: _plain(rule) for name, rule in judged.rules.items()} if judged else {}
    session = run.session
    machine = session.machine or MachineFacts()
    facts: dict[str, Any] = {
        "measured": run.when or _UNKNOWN,
        "command": " ".join(session.arguments or []) or _UNKNOWN,
        "revision": _revision(run.commit_info),
        "cpu": run.cpu or _UNKNOWN,
        "usable cpus": machine.usable_cpus or _UNKNOWN,
        "system": machine.os or run.machine_info.get("system", _UNKNOWN),
        "python": machine.python or run.machine_info.get("python_version", _UNKNOWN),
        "threads": run.threads or _UNKNOWN,
        "launches": _launches(session),
        "written by": f"fwbench {session.version}" if session.version else "pytest-benchmark",
    }
    facts |= {
        name: "; ".join(filter(None, [framework.version, _plain(framework.build or {})]))
        for name, framework in (session.frameworks or {}).items()
    }
    facts |= {f"{name}, absent": why for name, why in (session.absent or {}).items()}
    settings: dict[str, dict[str, Any]] = {}
    for record in run.records:
        data = record.facts.data
        if data is not None:
            facts[f"data set {data.name}"] = f"{data.source}: {data.origin}"
        for name, value in (record.facts.toggles or {}).items():
            settings.setdefault(f"{record.facts.framework} settings", {}).setdefault(name, value)
    facts |= {name: _plain(values) for name, values in settings.items()}
    known = {name: fact for name, fact in facts.items() if fact != _UNKNOWN}
    unknown = ", ".join(name for name in facts if name not in known)
    return {**known, **({_UNKNOWN: unknown} if unknown else {})}


def _plain(value: Any) -> Any:
    """A table as words, ``dispatch 0.5, memory 0.5``, and arguments as they are typed."""
    if isinstance(value, list):
        return shlex.join(map(str, value))
    if isinstance(value, dict):
        return _joined({name: _plain(each) for name, each in value.items()})
    return _AS_WORDS.get(str(value), value)


def _revision(commit: Mapping[str, Any]) -> str:
    if not commit.get("id") or commit["id"] == "unversioned":
        return _UNKNOWN
    dirty = ", with uncommitted changes" if commit.get("dirty") else ""
    return f"{commit['id']} ({commit.get('branch')}){dirty}"


def _launches(session: SessionFacts) -> str:
    plan = session.launches
    return "one" if plan is None else f"{summary.launches(session)}, seed {plan.seed}"


def _joined(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def markdown(
    runs: Sequence[Run], problems: Sequence[str] = (), before: Sequence[Section] = ()
) -> str:
    """Summary and tables without charts, for pull requests and README files."""
    lines = [f"# {escaping.markdown(_title(runs, before))}", "", *_heads(runs)]
    lines += [f"- {escaping.markdown(note)}" for note in (*problems, *summary.notes(runs))]
    for section in (*summary.sections(runs), *before, *sections.details(runs)):
        notes = [escaping.markdown(note) for note in section.notes]
        gaps = [f"- Gap: {escaping.markdown(gap)}" for gap in section.gaps]
        lines += ["", f"### {escaping.markdown(section.title)}", "", *notes, "", *_table(section)]
        lines += ["", *gaps] if gaps else []
    return "\n".join(lines).strip() + "\n"


def _heads(runs: Sequence[Run]) -> Iterator[str]:
    """Machine and answer of each run, as on top of the page."""
    for head in summary.heads(runs, palette.colours(frameworks(runs))):
        verdicts = {verdict.title: verdict.text for verdict in head.verdicts}
        facts = {"run": head.title, **head.facts, **verdicts}
        lines = (f"{name}: {text}" for name, text in facts.items() if text)
        yield from (f"- {escaping.markdown(line)}" for line in lines)
        yield ""


def _table(section: Section) -> list[str]:
    shown = section.rows if section.brief is None else [section.rows[i] for i in section.brief]
    rows = [[cell.text for cell in row.cells] for row in shown]
    if section.rest:
        rows.append([section.rest, *[""] * (len(section.columns) - 1)])
    # Words begin at the left, as on the page.
    words = {0, *(n for n, name in section.text_classes.items() if name != "figures")}
    under = ["---" if number in words else "---:" for number in range(len(section.columns))]
    return [escaping.markdown_row(cells) for cells in (section.columns, under, *rows)]


_CASE = ("workload", "framework", "device", "execution", "direction", "dtype", "size", "shape")

_TIMES = ("dispatch_s", "first_call_s", "first_call_in_process_s")

_BUILD = ("framework_version", "device_name", "threads")

#: The columns of CSV that are facts, as they are recorded.
FACTS = (*_CASE, *_TIMES, *_BUILD)


def _fact(name: str) -> Callable[[Measurement], object]:
    return lambda record: record.facts.get(name)


#: The columns of CSV that a case has, by their names; what a session has follows them.
_COLUMNS: Mapping[str, Callable[[Measurement], object]] = {
    "case": lambda record: record.name,
    **{name: _fact(name) for name in _CASE},
    "median_s": lambda record: record.median_s,
    "low_s": lambda record: record.quartiles_s[0],
    "high_s": lambda record: record.quartiles_s[1],
    **{name: _fact(name) for name in _TIMES},
    "values": lambda record: record.number,
    "of": lambda record: record.values_text.partition(" ")[2],
    "condition": lambda record: condition_of(record.facts) or None,
    "outcome": lambda _: "measured",
    "nodeid": lambda record: record.nodeid,
    "requested": lambda record: _settings(record.requested),
    **{name: _fact(name) for name in _BUILD},
}


def _settings(requested: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in requested.items())


def _of_session(run: Run) -> dict[str, object]:
    """The columns that all cases of a session share; None where a run does not say."""
    machine, info = run.session.machine or MachineFacts(), run.machine_info
    return {
        "date": run.when or None,
        "cpu": run.cpu,
        "usable_cpus": machine.usable_cpus,
        "os": machine.os or info.system,
        "python": machine.python or info.python_version,
        "fwbench": run.session.version,
        "commit": run.commit_info.id,
    }


#: All columns of CSV, in their order; earlier ones stay where they are.
COLUMNS = ("run", *_COLUMNS, *_of_session(Run("", ())))


def lines(runs: Sequence[Run]) -> Iterator[dict[str, object]]:
    """A line for each case, by :data:`COLUMNS`; times in seconds for one call.

    Cases that failed, or that an interrupted session did not reach, have a line without times.
    """
    for run in runs:
        failed = {missing.nodeid: missing.why for missing in run.failed}
        measured = (
            {name: value(x) for name, value in _COLUMNS.items()}
            | ({"outcome": failed[x.nodeid]} if x.nodeid in failed else {})
            for x in run.records
        )
        timeless: Iterator[dict[str, object]] = (
            {"case": x.nodeid, "framework": x.framework, "outcome": x.why, "nodeid": x.nodeid}
            for x in run.timeless
        )
        for line in (*measured, *timeless):
            yield {**dict.fromkeys(COLUMNS), "run": run.name, **line, **_of_session(run)}


def comma_separated(runs: Sequence[Run]) -> str:
    """The :func:`lines` as CSV (RFC 4180)."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    for line in lines(runs):
        texts = {k: escaping.spreadsheet(v) for k, v in line.items() if isinstance(v, str)}
        writer.writerow({**line, **texts})
    return text.getvalue()


def as_json(runs: Sequence[Run]) -> str:
    """The :func:`lines` as JSON: an object with the list ``cases``."""
    return json.dumps({"cases": [*lines(runs)]}, indent=2) + "\n"
