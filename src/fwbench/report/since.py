"""A row of versions in words: as lines, as Markdown, and as a section of a report."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fwbench.errors import some
from fwbench.gate.verdicts import Judgement, Verdict
from fwbench.records.measurement import MEDIAN
from fwbench.records.session_facts import StoredRow, StoredRowCase, StoredStep
from fwbench.records.units import count, duration, time
from fwbench.report import escaping
from fwbench.report.drawing.chart import Point
from fwbench.report.section import Section, TableCell, columns

#: Cases and gaps that are named, at most.
_NAMED = 5

#: A change is taken back if what is left of it is less than this part.
_MUCH = 4

#: Cases of a report that have a chart, those that have changed before others.
_DRAWN = 100

_WORDS = {Verdict.REGRESSED: "slower", Verdict.IMPROVED: "faster"}


# In words


def table(row: StoredRow) -> list[str]:
    """The lines for a terminal: cases that have changed, then the others, then what is left."""
    lines = ["interrupted: what follows is what was known by then"] * row.interrupted
    for name, case in _changed(row).items():
        lines += [f"{name}: {_sentence(row, case)}"]
        rows = [*version_rows(case)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for version, took, change, bounds in rows:
            cells = version.ljust(widths[0]), took.rjust(widths[1]), change.rjust(widths[2])
            lines.append("  " + "  ".join([*cells, bounds]).rstrip())
    return [*map(escaping.terminal, [*lines, *_notes(row)])]


def markdown(row: StoredRow) -> str:
    """The same as Markdown, for an issue or a pull request."""
    lines = [f"### fwbench since: {escaping.markdown(row.row)}", ""]
    for name, case in _changed(row).items():
        head = ["version", "time", "change", "bounds, launches"]
        sentence = escaping.markdown(f"{name}: {_sentence(row, case)}")
        lines += [f"**{sentence}**", ""]
        lines += [
            escaping.markdown_row(cells) for cells in (head, ["---"] * 4, *version_rows(case))
        ]
        lines.append("")
    return "\n".join([*lines, *(f"- {escaping.markdown(line)}" for line in _notes(row))]) + "\n"


def _changed(row: StoredRow) -> dict[str, StoredRowCase]:
    return {name: case for name, case in row.cases.items() if case.changes}


def _sentence(row: StoredRow, case: StoredRowCase) -> str:
    """Since when it is slower or faster, and whether that was taken back."""
    words: list[str] = []
    level = 0.0
    for change in case.changes:
        verdict, ratio = _told(change)
        before, level = level, level + math.log(ratio)
        word = f"{_WORDS[verdict]} since"
        if before and abs(level) < abs(before) / _MUCH:
            is_better = verdict is Verdict.IMPROVED
            word = "fixed in" if is_better else f"{_WORDS[verdict]} again since"
        words.append(f"{word} {_since(row, change)} ({ratio - 1:+.1%})")
    return ", ".join(words)


def _told(change: StoredStep) -> tuple[Verdict, float]:
    """The verdict of a change, and its ratio."""
    return Verdict(change.verdict or Verdict.INCONCLUSIVE), change.ratio or math.nan


def _since(row: StoredRow, change: StoredStep) -> str:
    """The version that brought it; of a step that could not be narrowed down, where it was."""
    first, last = row.versions.index(change.after), row.versions.index(change.since)
    within = [version for version in row.versions[first + 1 : last] if version not in row.gaps]
    return f"{change.since} or a version after {change.after}" if within else change.since


def version_rows(case: StoredRowCase) -> Iterator[tuple[str, ...]]:
    """Each version that was measured: its time, and what changed at it."""
    by_version = {change.since: change for change in case.changes}
    for version, took_s in case.times_s.items():
        change, bounds = by_version.get(version), ""
        if change is not None:
            launches = count(change.launches, "launch", "launches")
            bounds = ", ".join([*filter(None, [_bounds(change)]), launches])
        yield version, time(took_s), _change(change), bounds


def _change(step: StoredStep | None) -> str:
    return "" if step is None or step.ratio is None else f"{step.ratio - 1:+.1%}"


def _bounds(step: StoredStep) -> str:
    return " to ".join(f"{bound - 1:+.1%}" for bound in step.bounds)


def _notes(row: StoredRow) -> list[str]:
    untold = {name: why for name, case in row.cases.items() if (why := _untold(case))}
    flat = [name for name, case in row.cases.items() if not case.changes and name not in untold]
    notes = []
    if flat:
        steps = (step for name in flat for step in row.cases[name].steps)
        largest = max(math.exp(abs(math.log(bound))) for step in steps for bound in step.bounds)
        cases, names = count(len(flat), "case"), some(flat, _NAMED)
        notes.append(f"{cases} without a change above {largest - 1:.1%} in a step: {names}")
    notes += [f"{name}: cannot tell: {why}" for name, why in untold.items()]
    notes += _missing(row)
    by_reason: dict[str, list[str]] = {}
    for version, why in row.gaps.items():
        by_reason.setdefault(why.removeprefix(f"{version}: "), []).append(version)
    notes += [
        f"not measured: {some(versions, _NAMED)}: {why}" for why, versions in by_reason.items()
    ]
    earlier = f"; {count(row.reused, 'launch', 'launches')} of earlier calls" * bool(row.reused)
    launches = count(row.launches, "launch", "launches")
    sessions = count(row.sessions, "session")
    return [*notes, f"took {duration(row.took_s)}: {launches}, {sessions}{earlier}"]


def _missing(row: StoredRow) -> Iterator[str]:
    """The versions in which a case was not measured, though others have it; with the reasons."""
    names: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, case in row.cases.items():
        versions: dict[str, list[str]] = {}
        for version, why in case.missing.items() if case.steps else ():
            if version not in row.gaps:
                versions.setdefault(why, []).append(version)
        for why, without in versions.items():
            names.setdefault((why, tuple(without)), []).append(name)
    for (why, lacking), cases in names.items():
        yield f"{some(cases, _NAMED)}: not measured in {some(lacking, _NAMED)}: {why}"


def _untold(case: StoredRowCase) -> str:
    """The steps that nothing could be said of, or why it has none."""
    if not case.steps:
        return "; ".join(dict.fromkeys(case.missing.values())) or "one version has it"
    return ", ".join(map(_open, (step for step in case.steps if not step.verdict)))


def _open(step: StoredStep) -> str:
    known = []
    if step.ratio is not None:
        known.append(f"{_change(step)} in {count(step.launches, 'launch', 'launches')}")
    known += [step.reason] if step.reason else []
    return f"{step.after} to {step.since}" + f" ({': '.join(known)})" * bool(known)


def judgement(name: str, case: StoredRowCase, change: StoredStep) -> Judgement:
    """A change as the judgement of two sides: of a call's time in both of its versions."""
    verdict, ratio = _told(change)
    return Judgement(
        name,
        f"{name}, {change.after} to {change.since}",
        "",
        verdict,
        metric=MEDIAN,
        ratio=ratio,
        threshold=0.0,
        base=[case.times_s[change.after]],
        contender=[case.times_s[change.since]],
    )


# As a section


class _Measured(NamedTuple):
    """A case in one version, with the step that leads to it."""

    case: str
    version: str
    time_s: float
    step: StoredStep | None


def _step_change(row: _Measured) -> TableCell:
    ratio = None if row.step is None else row.step.ratio
    return TableCell(_change(row.step), ratio)


def _step_bounds(row: _Measured) -> TableCell:
    return TableCell("" if row.step is None else _bounds(row.step))


def _step_verdict(row: _Measured) -> TableCell:
    return TableCell("" if row.step is None else row.step.verdict or "cannot tell")


_COLUMNS = columns("row of versions", _step_change, _step_bounds, _step_verdict)


def section(row: StoredRow, suffix: str) -> Section:
    """A chart of each case over the versions, and a table of all that was measured.

    Args:
        suffix: of the title.
    """
    from fwbench.report.drawing import lines

    cases = dict(sorted(row.cases.items(), key=lambda item: not item[1].changes))
    drawn = {name: case for name, case in cases.items() if case.times_s}
    words = {"of_marks": "change", "ends": "bound"}
    charts = [
        lines.draw_over_time(
            name, [*case.times_s], _points(case), _marks(case), **words, are_printed=True
        )
        for name, case in [*drawn.items()][:_DRAWN]
    ]
    sentences = [f"{name}: {_sentence(row, case)}" for name, case in _changed(row).items()]
    left_out = len(drawn) - _DRAWN
    return Section.from_items(
        f"{row.row} by version{suffix}",
        _COLUMNS,
        [each for name, case in cases.items() for each in _measured(name, case)],
        charts=charts,
        notes=[*sentences, *_notes(row)],
        page_notes=[f"{count(left_out, 'more case')} without a chart."] if left_out > 0 else [],
        legend=lines.legend_over_time(charts, **words),
    )


def _measured(name: str, case: StoredRowCase) -> Iterator[_Measured]:
    by_version = {step.since: step for step in case.steps}
    for version, time_s in case.times_s.items():
        yield _Measured(name, version, time_s, by_version.get(version))


def _points(case: StoredRowCase) -> list[Point]:
    """The time in each version, with the interval of the step that leads to it."""
    points = []
    for number, each in enumerate(_measured("", case)):
        low, high = 1.0, 1.0
        if each.step is not None and each.step.ratio and each.step.bounds:
            low, high = (bound / each.step.ratio for bound in each.step.bounds)
        time_s = each.time_s
        points.append(Point(number, time_s, time_s * low, time_s * high))
    return points


def _marks(case: StoredRowCase) -> Mapping[int, str]:
    """The changes, by the place of their versions in the chart."""
    places: Sequence[str] = [*case.times_s]
    return {places.index(change.since): _change(change) for change in case.changes}
