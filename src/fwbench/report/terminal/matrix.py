"""Times as tables: a row for each work, a column for each contestant, in full or summed up."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fwbench.measure.condition import DRIFTING
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, blur, group_by
from fwbench.records.units import time
from fwbench.report.condition import (
    condition_of,
    is_after_leak,
    is_contended,
    is_exchange,
    reduced_bits,
)
from fwbench.report.ranking import Contest, extremes, group_means, kind, named
from fwbench.terms.toggles import TOGGLES

#: Framework, execution, and each requested toggle that leaves the work as it is.
ColumnKey = tuple[str, ...]


#: From this ratio to the fastest on a number is red.
_FAR_BEHIND = 10.0

#: Of operations without a family: a user's own.
_NO_FAMILY = "others"


#: Stands where a column lacks some of the cases that a mean is over.
PARTIAL = "<"

_SIGNS: dict[str, tuple[Callable[[CaseFacts], bool], str]] = {
    "!": (is_contended, "contended (an upper bound)"),
    "~": (lambda facts: condition_of(facts) == DRIFTING, "drifting"),
    "*": (lambda facts: bool(facts.spinning), "spinning"),
    "m": (is_after_leak, "memory leaked before"),
    "b": (lambda facts: reduced_bits(facts) is not None, "computed in fewer bits"),
    "#": (lambda facts: facts.unequal is not None, "another training (not ranked)"),
}

_MEANINGS = {
    **{sign: meaning for sign, (_, meaning) in _SIGNS.items()},
    PARTIAL: "lacks some of them",
}


def failed(facts: CaseFacts) -> Measurement:
    """A case that was not measured, as one that took forever."""
    return Measurement(facts, (math.inf,), facts.toggles or {})


def column(case: Measurement) -> ColumnKey:
    """The column that a case is in."""
    toggles = [
        f"{name}={value}"
        for name, value in case.requested.items()
        if not _changes_work(name)
        # The row of an exchange says how many replicas there are.
        and not (name == "replicas" and is_exchange(case.facts))
    ]
    number = [f"#{case.repeat}"] * (case.repeat > 1)
    return (case.facts.framework, case.facts.execution, *toggles, *number)


def variant(case: Measurement) -> str:
    """The toggles that make its work another one: `` decay=on``; mostly empty."""
    toggles = case.requested.items()
    return "".join(f" {name}={value}" for name, value in toggles if _changes_work(name))


def in_order(columns: Iterable[ColumnKey]) -> list[ColumnKey]:
    """Columns by framework, ``eager`` before what compiles."""
    return sorted({*columns}, key=lambda names: (names[0], names[1] != "eager", names[1:]))


def _changes_work(toggle: str) -> bool:
    known = TOGGLES.get(toggle)
    return known is not None and known.changes_work


def signs(cases: Iterable[CaseFacts]) -> str:
    """The signs of what is in doubt about some of these cases; often empty."""
    cases = list(cases)
    return "".join(sign for sign, (holds, _) in _SIGNS.items() if any(map(holds, cases)))


def legend(used: Iterable[str]) -> str:
    """Meaning of the signs that were used; empty where there are none."""
    used = {*used}
    return "  ".join(f"{sign} {what}" for sign, what in _MEANINGS.items() if sign in used)


@dataclass(frozen=True)
class MatrixCell:
    """A number in a table."""

    text: str
    signs: str = ""
    style: str = ""


_FAILED = MatrixCell("failed", style="red")


@dataclass(frozen=True)
class MatrixRow:
    """A row of a table."""

    name: str
    #: Of it; ``small`` or ``large`` where operations are summed up.
    size: str
    cells: Mapping[ColumnKey, MatrixCell]


@dataclass(frozen=True)
class Matrix:
    """A table of one kind of workload on one device in one dtype."""

    title: str
    what: str
    rows: Sequence[MatrixRow]

    @property
    def columns(self) -> list[ColumnKey]:
        """The columns with a cell in any row, in their order."""
        return in_order(names for row in self.rows for names in row.cells)


#: The columns of failed cases, by their work.
Failures = Mapping[tuple[Any, ...], Sequence[ColumnKey]]

#: Makes the rows of a table from contests and failures.
Rows = Callable[[Iterable[Contest], Failures], list[MatrixRow]]


@dataclass(frozen=True)
class Detail:
    """Amount of detail of a table."""

    what: str
    rows: Rows


def matrices(
    works: Iterable[Contest], detail: Detail, failed: Iterable[Measurement] = ()
) -> list[Matrix]:
    """A table for each kind of workload, device and dtype.

    Times of every size, where none of its works has rivals that all are known.
    """
    failures: dict[tuple[Any, ...], list[ColumnKey]] = defaultdict(list)
    for case in failed:
        failures[_key(case)].append(column(case))
    groups = group_by(works, _matrix_key)
    several = [len({*values}) > 1 for values in zip(*groups, strict=True)]
    return [
        Matrix(_title(key, several), named(used.what, key[1]), used.rows(group, failures))
        for key, group in groups.items()
        for used in [detail if any(work.is_undisturbed for work in group) else EVERY_SIZE]
    ]


def _matrix_key(work: Contest) -> tuple[str, str, str]:
    facts = work.facts
    name = "training" if facts.direction == "train" else kind(facts)
    return name, facts.device, facts.dtype


def _title(key: Sequence[str], several: Sequence[bool]) -> str:
    name, *others = key
    differing = (part for part, differs in zip(others, several[1:], strict=True) if differs)
    return ", ".join([name, *differing])


def _key(case: Measurement) -> tuple[Any, ...]:
    """Key of the work of a case; without its data, which a failed case may not have reached."""
    *work, _data = case.facts.work
    return *work, variant(case)


def _with_failures(
    cells: Mapping[ColumnKey, MatrixCell], works: Iterable[Contest], failures: Failures
) -> Mapping[ColumnKey, MatrixCell]:
    """The cells of a row, and one for each case that failed where there is no other."""
    keys = {_key(work.entrants[0]) for work in works}
    failed = (names for key in keys for names in failures.get(key, ()))
    return {**dict.fromkeys(failed, _FAILED), **cells}


def _order(work: Contest) -> tuple[Any, ...]:
    """By family, then as words; sizes by their numbers."""
    facts = work.facts
    return facts.family or "", _name(work), facts.size, facts.shape or ""


def _name(work: Contest) -> str:
    return f"{work.facts.workload}{work.label}{variant(work.entrants[0])}"


# In full


def _of_works(works: Iterable[Contest], failures: Failures) -> list[MatrixRow]:
    return [
        MatrixRow(
            _name(work),
            str(work.facts.shape or work.size),
            _with_failures(_cells(work), [work], failures),
        )
        for work in sorted(works, key=_order)
    ]


def _cells(work: Contest) -> dict[ColumnKey, MatrixCell]:
    """Times, with colours where it can be told who is fastest."""
    return {
        column(case): MatrixCell(
            time(case.median_s),
            signs([case.facts]),
            _style(work.ratio(case), [(work.fastest or case, case)]),
        )
        for case in work.entrants
    }


def _style(ratio: float | None, pairs: Iterable[tuple[Measurement, Measurement]]) -> str:
    if ratio is None:
        return ""
    if ratio <= blur(pairs):
        return "green"
    return "red" if ratio >= _FAR_BEHIND else ""


def ratio_text(number: float) -> str:
    """A ratio with three digits: ``1.23x``, ``12.3x``, ``1,234x``."""
    if number < 9.995:  # noqa: PLR2004 (what rounds to 10)
        return f"{number:.2f}x"
    return f"{number:.1f}x" if number < 99.95 else f"{number:,.0f}x"  # noqa: PLR2004 (to 100)


# Summed up


def _at_extremes(works: Iterable[Contest], failures: Failures) -> list[MatrixRow]:
    return _of_works(itertools.chain.from_iterable(extremes(works)), failures)


def _by_family(works: Iterable[Contest], failures: Failures) -> list[MatrixRow]:
    """Two rows for each family: small sizes and large ones have different fastest."""
    groups = group_by(sorted(works, key=_order), lambda work: work.facts.family or _NO_FAMILY)
    return [
        _mean_row(family, size, part, failures)
        for family, group in groups.items()
        for size, part in zip(("small", "large"), extremes(group), strict=True)
        if part
    ]


def _mean_row(family: str, size: str, works: Sequence[Contest], failures: Failures) -> MatrixRow:
    """Means over the works that nothing disturbed; no number for columns that lack one of these."""
    over = [work for work in works if work.is_undisturbed]
    means = group_means(over, column)
    least = min(means, key=means.__getitem__, default=())
    in_means, all_cases = (
        group_by((case for work in part for case in work.entrants), column)
        for part in (over, works)
    )
    cells = {
        names: MatrixCell(
            ratio_text(means[names]),
            signs(case.facts for case in in_means[names])[:1],
            _style(means[names] / means[least], zip(in_means[least], in_means[names], strict=True)),
        )
        if names in means
        else MatrixCell("-", PARTIAL if over else signs(case.facts for case in cases)[:1])
        for names, cases in all_cases.items()
    }
    number = f"{len(over)} of {len(works)}" if len(over) < len(works) else str(len(works))
    return MatrixRow(f"{family} ({number})", size, _with_failures(cells, works, failures))


#: Every size of every operation.
EVERY_SIZE = Detail("median times", _of_works)

#: From the most detailed on, for what has to fit on a screen.
DETAILS = (
    EVERY_SIZE,
    Detail("median times at the smallest and the largest size (-v: each)", _at_extremes),
    Detail(
        "ratios to the fastest, geometric means over operations at their smallest and at their "
        "largest size (-v: each)",
        _by_family,
    ),
)
