"""Functions of sampled calls: of one run, or how each further run differs from the first."""

from collections.abc import Iterator, Sequence

from fwbench.gate import functions
from fwbench.gate.functions import FunctionChange
from fwbench.records.measurement import Measurement, group_by
from fwbench.records.units import signed
from fwbench.report.drawing import flame
from fwbench.report.model import Run
from fwbench.report.section import Section, TableCell, columns, prose, run_suffix

ORDER = 46
CONTENTS = "functions"

#: Functions that a table has.
_LISTED = 20

_PROSE = prose("functions")


def sections(runs: Sequence[Run], names: Sequence[str]) -> list[Section]:
    """A section for each test with samples; in several runs, for each run after the first."""
    sampled = (r for run in runs for r in run.records if r.facts.sampled is not None)
    tests = group_by(sampled, lambda record: record.key).values()
    return [section for test in tests for section in _of_test(test, names)]


def _of_test(test: Sequence[Measurement], names: Sequence[str]) -> Iterator[Section]:
    base, *others = test
    for contender in others or [base]:
        against = "" if contender is base else f" against {names[base.run]}"
        title = f"functions: {contender.label}{run_suffix(contender.run, names)}{against}"
        gaps = {m.run: m.facts.sampled.gap for m in (base, contender) if m.facts.sampled}
        missing = [f"{names[run]}: {gap}" for run, gap in gaps.items() if gap]
        yield Section(title, [], [], gaps=missing) if missing else _section(title, base, contender)


def _change(change: FunctionChange) -> TableCell:
    return TableCell(signed(change.difference_s), change.difference_s)


def _section(title: str, base: Measurement, contender: Measurement) -> Section:
    """A flame graph, and the functions with the largest differences."""
    changes = functions.changes(base, contender)
    allowed_s = {change.name: change.allowed_s for change in changes}
    first = functions.samples(base), base.median_s
    last = (functions.samples(contender), contender.median_s) if base is not contender else first
    if base is contender:
        changes.sort(key=lambda change: -change.contender.own_s)
    return Section.from_items(
        title,
        columns("functions", _change) if base is not contender else columns("functions of one run"),
        changes[:_LISTED],
        charts=[flame.draw(f"{title}: flame graph", first, last, allowed_s)],
        notes=[_PROSE["samples"]],
        page_notes=[_PROSE["one" if base is contender else "two"]],
    )
