"""Times as tables: every time, the fastest with ratios of the others, or means of such ratios."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from fwbench.report.ranking import (
    Contest,
    Decision,
    extremes,
    fastest,
    group_means,
    have_single_sizes,
    kind,
    named,
)
from fwbench.terms.toggles import TOGGLES

#: Framework, execution, and each requested toggle that leaves the work as it is; or the part of
#: the sizes, framework and toggles.
ColumnKey = tuple[str, ...]


#: From this ratio to the fastest on a number is red.
_FAR_BEHIND = 10.0

#: Of operations without a family: a user's own.
_NO_FAMILY = "others"

#: Headings of the parts of the sizes; and of the second where some works, or all, have one size.
SMALL, LARGE = "small: cost of a call", "large: throughput"
LARGE_OR_ONE, ONE_SIZE = "large, or the only size", "one size each"

#: Stands where a column lacks some of the cases that a mean is over.
PARTIAL = "<"

#: Stands where nothing else did the same work.
_ALONE = "alone"

#: Stands before a ratio that is too close to call.
CLOSE = "="

_SIGNS: dict[str, tuple[Callable[[CaseFacts], bool], str]] = {
    "!": (is_contended, "contended: an upper bound"),
    "~": (lambda facts: condition_of(facts) == DRIFTING, "drifting"),
    "*": (lambda facts: bool(facts.spinning), "spinning"),
    "m": (is_after_leak, "memory leaked before"),
    "b": (lambda facts: reduced_bits(facts) is not None, "computed in fewer bits"),
    "#": (lambda facts: facts.unequal is not None, "another training (not ranked)"),
}

#: Those that change what a number means. The others are counted above the tables, and stand after
#: numbers where all is shown.
_NEEDED = "!b#"

_MEANINGS = {
    CLOSE: "too close to call",
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
    """Columns by framework, ``eager`` before what compiles; those of small sizes before large."""
    second = {LARGE, LARGE_OR_ONE}
    return sorted(
        {*columns}, key=lambda names: (names[0] in second, names[0], names[1] != "eager", names[1:])
    )


def _changes_work(toggle: str) -> bool:
    known = TOGGLES.get(toggle)
    return known is not None and known.changes_work


def signs(facts: CaseFacts, shown: str) -> str:
    """The signs of what is in doubt about a case, of those that are shown; often empty."""
    return "".join(sign for sign, (holds, _) in _SIGNS.items() if sign in shown and holds(facts))


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
    #: Of it; empty where the columns are of sizes.
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


def legend(tables: Sequence[Matrix]) -> str:
    """Meaning of the signs in some tables, to be read before them; empty where there are none."""
    cells = [cell for table in tables for row in table.rows for cell in row.cells.values()]
    used = {sign for cell in cells for sign in cell.signs + cell.text[:1] + cell.text[-1:]}
    meanings = [f"{sign} {what}" for sign, what in _MEANINGS.items() if sign in used]
    if any(cell.text.endswith("!") for cell in cells):
        meanings.append("only times: not decided, or no rival")
    if any(names[-1].startswith("#") for table in tables for names in table.columns):
        meanings.append("#2 the same case in another test")
    return "  ".join(meanings)


#: The columns of failed cases, by their work.
Failures = Mapping[tuple[Any, ...], Sequence[ColumnKey]]

#: Makes the rows of a table from contests and failures.
Rows = Callable[[Sequence[Contest], Failures], list[MatrixRow]]


@dataclass(frozen=True)
class Detail:
    """Amount of detail of a table."""

    what: str
    rows: Rows
    #: Whether a table holds works of every dtype.
    joins_dtypes: bool = False


def matrices(
    works: Iterable[Contest], detail: Detail, failed: Iterable[Measurement] = ()
) -> list[Matrix]:
    """A table for each kind of workload, device and dtype; less detailed ones hold all dtypes."""
    failures: dict[tuple[Any, ...], list[ColumnKey]] = defaultdict(list)
    for case in failed:
        failures[_key(case)].append(column(case))
    groups = group_by(works, lambda work: _matrix_key(work, detail))
    several = [len({*values}) > 1 for values in zip(*groups, strict=True)]
    return [
        Matrix(_title(key, several, group), named(what, key[1]), rows(group, failures))
        for key, group in groups.items()
        for what, rows in [_what(detail, group)]
    ]


def _what(detail: Detail, works: Sequence[Contest]) -> tuple[str, Rows]:
    """Means where at least half of the works are undisturbed; no multiples where none is known."""
    if detail.rows is _by_family and 2 * sum(work.is_undisturbed for work in works) < len(works):
        detail = _AT_EXTREMES
    is_known = not detail.joins_dtypes or any(work.fastest for work in works)
    what = f"{detail.what}{_left_out(works) if detail.rows is _by_family else ''}"
    return what if is_known else _TIMES, detail.rows


def _left_out(works: Iterable[Contest]) -> str:
    """The reasons why means are not over all operations, with numbers of these; often empty."""
    left_out = {
        (_name(work), _ALONE if work.decision is Decision.ALONE else "contended")
        for part in extremes(works)
        for work in part
        if not work.is_undisturbed
    }
    numbers = Counter(reason for _, reason in left_out)
    reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(numbers.items()))
    return f"; not in means: {reasons}" if reasons else ""


def _matrix_key(work: Contest, detail: Detail) -> tuple[str, ...]:
    facts = work.facts
    name = "training" if facts.direction == "train" else kind(facts)
    return name, facts.device, "" if detail.joins_dtypes else facts.dtype


def _title(key: Sequence[str], several: Sequence[bool], works: Sequence[Contest]) -> str:
    """The kind, and of device and dtype what differs between tables or, for a dtype, within it."""
    name, *others = key
    differing = [part for part, differs in zip(others, several[1:], strict=True) if differs]
    within = {work.facts.dtype for work in works}
    return ", ".join([name, *differing, *([_main_dtype(works)] if len(within) > 1 else ())])


def _main_dtype(works: Iterable[Contest]) -> str:
    """The dtype of most works; rows of other dtypes say theirs."""
    ((dtype, _),) = Counter(work.facts.dtype for work in works).most_common(1)
    return dtype


def _key(case: Measurement) -> tuple[Any, ...]:
    """Key of the work of a case; without its data, which a failed case may not have reached."""
    *work, _data = case.facts.work
    return *work, variant(case)


def _with_failures(
    cells: Mapping[ColumnKey, MatrixCell], failed: Iterable[ColumnKey]
) -> Mapping[ColumnKey, MatrixCell]:
    """The cells of a row, and one for each case that failed where there is no other."""
    return {**dict.fromkeys(failed, _FAILED), **cells}


def _failed_in(works: Iterable[Contest], failures: Failures) -> Iterator[ColumnKey]:
    for key in {_key(work.entrants[0]) for work in works}:
        yield from failures.get(key, ())


def _order(work: Contest) -> tuple[Any, ...]:
    """By family, then as words; sizes by their numbers."""
    facts = work.facts
    return facts.family or "", _name(work), facts.size, facts.shape or ""


def _name(work: Contest) -> str:
    return f"{work.facts.workload}{work.label}{variant(work.entrants[0])}"


# In full


def _of_works(works: Iterable[Contest], failures: Failures, shown: str) -> list[MatrixRow]:
    return [
        MatrixRow(
            _name(work),
            str(work.facts.shape or work.size),
            _with_failures(_cells(work, shown), _failed_in([work], failures)),
        )
        for work in sorted(works, key=_order)
    ]


def _cells(work: Contest, shown: str) -> dict[ColumnKey, MatrixCell]:
    """Times, with colours where it can be told who is fastest, and the signs that are shown."""
    return {
        column(case): MatrixCell(
            time(case.median_s),
            signs(case.facts, shown),
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


# Small sizes beside large ones

#: The column of a case: its framework and toggles, and where there is one framework its execution.
_Key = Callable[[Measurement], ColumnKey]


def _side_by_side(
    works: Sequence[Contest],
    failures: Failures,
    name: Callable[[Contest], str],
    cells: Callable[[Sequence[Contest], _Key], dict[ColumnKey, MatrixCell]],
) -> Iterator[tuple[MatrixRow, Sequence[Contest]]]:
    """Rows of the works of each name, and these; columns of small sizes before those of large."""
    main = _main_dtype(works)
    parts = SMALL, _second_heading(works)
    first = 2 if len({case.framework for work in works for case in work.entrants}) > 1 else 1
    named_works = group_by(
        sorted(works, key=_order),
        lambda work: name(work) + ("" if work.facts.dtype == main else f" {work.facts.dtype}"),
    )
    for label, group in named_works.items():
        row: dict[ColumnKey, MatrixCell] = {}
        for part, sized in zip(parts, extremes(group), strict=True):
            failed = [(names[0], *names[first:]) for names in _failed_in(sized, failures)]
            known = cells(sized, lambda case: (column(case)[0], *column(case)[first:]))
            both = _with_failures(known, failed)
            row |= {(part, *names): cell for names, cell in both.items()}
        yield MatrixRow(label, "", row), group


def _second_heading(works: Sequence[Contest]) -> str:
    """The heading of the largest sizes, which says of no single size that it is large."""
    if not extremes(works)[0]:
        return ONE_SIZE
    return LARGE_OR_ONE if have_single_sizes(works) else LARGE


def _fastest_cases(work: Contest, key: _Key) -> dict[ColumnKey, Measurement]:
    """The fastest case of each column, of those that can be compared if there are any."""
    return fastest(work.comparable or work.entrants, key)


def _by_operation(works: Sequence[Contest], failures: Failures) -> list[MatrixRow]:
    """A row for each operation; for each of its shapes where several are of one size."""
    by_size = group_by(works, lambda work: (_name(work), work.facts.dtype, work.size))
    shaped = {name for (name, *_), same in by_size.items() if len(same) > 1}

    def name(work: Contest) -> str:
        shape = work.facts.shape if _name(work) in shaped else None
        return " ".join(filter(None, [_name(work), shape]))

    return [row for row, _ in _side_by_side(works, failures, name, _against_fastest)]


def _against_fastest(works: Sequence[Contest], key: _Key) -> dict[ColumnKey, MatrixCell]:
    """The time of the fastest, and ratios of the others; times where it cannot be told."""
    cells = {}
    for work in works:
        for names, case in _fastest_cases(work, key).items():
            behind, least = work.ratio(case), work.fastest or case
            style = _style(behind, [(least, case)])
            if behind is None or case is least:
                bound = is_contended(case.facts)  # shorter, which leaves room for its sign
                text = f"{time(case.median_s, 2)}!" if bound else time(case.median_s)
                cells[names] = MatrixCell(text, style=style)
            else:
                close = CLOSE if work.is_close(case) else ""
                cells[names] = MatrixCell(close + ratio_text(behind), style=style)
    return cells


def _by_family(works: Sequence[Contest], failures: Failures) -> list[MatrixRow]:
    rows = _side_by_side(works, failures, lambda work: work.facts.family or _NO_FAMILY, _mean_cells)
    return [replace(row, name=f"{row.name} ({_coverage(group)})") for row, group in rows]


def _coverage(works: Iterable[Contest]) -> str:
    """Operations that means are over, at the sizes where these are fewest: ``7``, ``5 of 7``."""
    parts = [part for part in extremes(works) if part]
    known, of = min((sum(work.is_undisturbed for work in part), len(part)) for part in parts)
    return str(of) if known == of else f"{known} of {of}"


def _mean_cells(works: Sequence[Contest], key: _Key) -> dict[ColumnKey, MatrixCell]:
    """Means over the works that nothing disturbed; no number for columns that lack one of these."""
    entrants = {names for work in works for names in _fastest_cases(work, key)}
    over = [work for work in works if work.is_undisturbed]
    cases = [_fastest_cases(work, key) for work in over]
    chosen = {id(case) for each in cases for case in each.values()}
    means = group_means(over, key, lambda case: id(case) in chosen)
    least = min(means, key=means.__getitem__, default=())
    rivals = {
        names
        for work in works
        if work.decision is not Decision.ALONE
        for names in _fastest_cases(work, key)
    }
    disturbed = MatrixCell("-", PARTIAL if over else "!")
    unknown = {names: disturbed if names in rivals else MatrixCell(_ALONE) for names in entrants}
    return unknown | {
        names: MatrixCell(
            ratio_text(mean),
            style=_style(mean / means[least], [(each[least], each[names]) for each in cases]),
        )
        for names, mean in means.items()
    }


#: Every size of every operation, with all signs; and with those that change what a time means.
IN_FULL = Detail("median times", partial(_of_works, shown="".join(_SIGNS)))
EVERY_SIZE = Detail("median times", partial(_of_works, shown=_NEEDED))

_AT_EXTREMES = Detail(
    "time of the fastest, others as multiples (-v: all)", _by_operation, joins_dtypes=True
)

#: From the most detailed on, for what has to fit on a screen.
DETAILS = (
    EVERY_SIZE,
    _AT_EXTREMES,
    Detail(
        "multiples of the fastest time, geometric means over operations (-v: all)",
        _by_family,
        joins_dtypes=True,
    ),
)

#: Heads times where no work can be decided.
_TIMES = "median times at the smallest and the largest size (-v: all)"
