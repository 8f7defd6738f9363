"""Sections of a report: a table, whose columns are objects, with charts above it."""

import bisect
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

from fwbench.packaged import read_table
from fwbench.records import units
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement, blur, group_by, ratio, repeats, took_turns
from fwbench.records.units import four_digits, time, times
from fwbench.report.condition import is_contended, marked
from fwbench.report.ranking import ratios_to_fastest, work

if TYPE_CHECKING:  # a terminal's tables have the same columns, and no charts
    from fwbench.report.drawing.chart import Chart
    from fwbench.report.drawing.palette import Look

T = TypeVar("T")

#: The facts by which rows of a table can be filtered.
KEYS = ("framework", "execution", "device", "direction", "dtype", "family")

#: The column of ratios, which the page renames with its baseline.
AGAINST_FASTEST = "against fastest"

#: From these ratios on a cell of a heat map is one step slower.
_SLOWER = (1.5, 2.0, 4.0, 10.0)

#: Characters of a cell that stay on one line.
_LONGEST_ON_A_LINE = 40


@dataclass(frozen=True)
class Timing:
    """The time behind a ratio, so that a reader of the page can choose another baseline."""

    #: Name shared by the cells of a section among which its ratio is formed.
    contest: str
    contestant: str
    run: int
    #: Seconds of a call; not a number where no ratio can be formed.
    time_s: float
    #: Factor that a ratio to a case like it may be off by.
    blur: float
    #: By contestants that it took turns with: its ratio to each, and what that may be off by.
    in_turns: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the cell on the page."""
        attributes = {
            "data-contest": self.contest,
            "data-case": self.contestant,
            "data-run": self.run,
            "data-time": f"{self.time_s:.6g}",
            "data-blur": f"{self.blur:.4g}",
        }
        if self.in_turns:
            rounded = {name: [*map(_rounded, pair)] for name, pair in self.in_turns.items()}
            attributes["data-turns"] = json.dumps(rounded)
        return attributes


@dataclass(frozen=True)
class TableCell:
    """A cell of a table."""

    text: str
    #: Sorts the cell; None for the text.
    value: float | None = None
    hint: str = ""
    #: The class of its background: ``step0`` to ``step5``, the fastest first, or ``gap``.
    shade: str = ""
    #: The title of the section that it leads to.
    target: str = ""
    timing: Timing | None = None
    bar: "Meter | None" = None


@dataclass(frozen=True)
class Meter:
    """A bar in a cell, of a part of its width."""

    #: 0 to 1.
    share: float
    #: As in CSS.
    colour: str

    @property
    def style(self) -> str:
        """Its style on the page."""
        return f"--share:{self.share:.3f};background:{self.colour}"


@dataclass(frozen=True)
class Row:
    """A row of a table, and the facts that it can be filtered by."""

    cells: Sequence[TableCell]
    keys: Mapping[str, str] = field(default_factory=dict)

    def attributes(self, shared: Mapping[str, str]) -> dict[str, str]:
        """Attributes of the row on the page."""
        return attributes({name: v for name, v in self.keys.items() if name not in shared})


def attributes(keys: Mapping[str, str]) -> dict[str, str]:
    """Facts as attributes of an element, for the page's filters."""
    return {f"data-{name}": value for name, value in keys.items()}


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table."""

    name: str
    cell: Callable[[T], TableCell]
    legend: str = ""
    #: Whether it is left out where no row has a text.
    optional: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)
    #: Whether the page has it among those that a reader must ask for.
    folded: bool = False


def legends(columns: Iterable[Column[Any]]) -> str:
    """The legends of columns as a paragraph."""
    return " ".join(column.legend for column in columns if column.legend)


def prose(sections: str) -> Mapping[str, str]:
    """The paragraphs of a module of sections, by their names in ``prose.toml``."""
    paragraphs = read_table(__package__, "prose.toml")[sections]
    return {name: " ".join(words.split()) for name, words in paragraphs.items()}


def turns_note(cases: Iterable[Measurement]) -> list[str]:
    """Say why ratios are not those of the medians beside them; empty where they are."""
    return [prose("section")["turns"]] * took_turns(cases)


#: What shows quantities, by the names in ``columns.toml``.
_SHOWS: Mapping[str, Callable[[float], str]] = {
    **vars(units),
    "megabytes": lambda size_bytes: four_digits(size_bytes / 1e6),
    "gigabytes": lambda size_bytes: four_digits(size_bytes / 1e9),
    "added": lambda share: "about 0" if -0.05 <= share < 0.005 else f"{share:+.0%}",  # noqa: PLR2004
    "billions": lambda rate: f"{rate / 1e9:,.0f}" if rate >= 1e11 else f"{rate / 1e9:.3g}",  # noqa: PLR2004
}


def columns(table: str, *cells: Callable[[Any], TableCell]) -> tuple[Column[Any], ...]:
    """The columns of a table of ``columns.toml``, which names cells without their underscores."""
    by_name = {cell.__name__.lstrip("_"): cell for cell in cells}
    declared = read_table(__package__, "columns.toml")[table]
    rows = {k: {"of": v} if isinstance(v, str) else v for k, v in declared.items()}
    return tuple(
        Column(
            name,
            by_name[row["cell"]] if "cell" in row else _cell_of(**row),
            " ".join(row.get("legend", "").split()),
            optional=not row.get("always", False),
            folded=bool(row.get("folded")),
        )
        for name, row in rows.items()
    )


def _cell_of(**row: Any) -> Callable[[Any], TableCell]:
    """The function that makes a cell of an attribute, by a row of ``columns.toml``."""
    show = row.get("as", "")

    def cell(item: Any) -> TableCell:
        value = _attribute(item, row["of"])
        if not show:
            number = _attribute(item, row["sort"]) if "sort" in row else None
            return TableCell("" if value is None else str(value), number)
        if "per" in row:
            whole = _attribute(item, row["per"])
            value = value / whole if value and whole else None
        return quantity(value, show.format if "{" in show else _SHOWS[show])

    return cell


def _attribute(item: Any, path: str) -> Any:
    """The attribute or element that a path leads to; None where there is none on the way."""
    for name in path.split("."):
        if item is not None:
            item = getattr(item, name) if name.isidentifier() else item[int(name)]
    return item


@dataclass(frozen=True)
class Section:
    """A table, and the charts above it."""

    title: str
    columns: Sequence[str]
    #: Of the table; without any there is no table.
    rows: Sequence[Row]
    charts: Sequence["Chart"] = ()
    notes: Sequence[str] = ()
    #: Notes on colours and charts, which the page alone has.
    page_notes: Sequence[str] = ()
    gaps: Sequence[str] = ()
    #: The numbers of the rows that Markdown has; None for all.
    brief: Sequence[int] | None = None
    #: What Markdown says of the others: their number, and what they hold together.
    rest: str = ""
    #: Of the table; empty for the title.
    caption: str = ""
    legend: Mapping[str, "Look"] = field(default_factory=dict)
    #: The facts by which columns can be hidden, by the number of the column.
    column_keys: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    #: The numbers of the columns that a reader of the page must ask for.
    folded: Collection[int] = frozenset()
    #: The heading in the table of contents; empty for the family of the operation.
    group: str = ""
    #: For links; empty until :func:`fwbench.report.sections.linkable` gives one.
    id: str = ""

    @classmethod
    def from_items(
        cls,
        title: str,
        columns: Sequence[Column[T]],
        items: Iterable[T],
        keys: Callable[[T], Mapping[str, str]] = lambda _: {},
        **parts: Any,
    ) -> Self:
        """A section with a row for each item, without the optional columns that no row has."""
        rows = [(item, [column.cell(item) for column in columns]) for item in items]
        shown = [
            number
            for number, column in enumerate(columns)
            if not (column.optional and rows) or any(cells[number].text for _, cells in rows)
        ]
        return cls(
            title,
            [columns[number].name for number in shown],
            [Row([cells[number] for number in shown], keys(item)) for item, cells in rows],
            column_keys={
                place: columns[number].keys
                for place, number in enumerate(shown)
                if columns[number].keys
            },
            folded={place for place, number in enumerate(shown) if columns[number].folded},
            **parts,
        )

    @property
    def compact(self) -> Self:
        """The same without the columns in which no row has a text."""
        filled = [
            n for n in range(len(self.columns)) if any(row.cells[n].text for row in self.rows)
        ]
        rows = [replace(row, cells=[row.cells[n] for n in filled]) for row in self.rows]
        return replace(self, columns=[self.columns[n] for n in filled], rows=rows)

    @property
    def shared_keys(self) -> dict[str, str]:
        """The facts that all rows have in common."""
        first, *others = [row.keys for row in self.rows] or [{}]
        return {
            name: value
            for name, value in first.items()
            if all(keys.get(name) == value for keys in others)
        }

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of the section on the page."""
        return attributes(self.shared_keys)

    @property
    def prose(self) -> frozenset[int]:
        """The numbers of the columns of sentences, which take several lines, without any number."""
        return frozenset(
            number
            for number in range(len(self.columns))
            if any(len(row.cells[number].text) > _LONGEST_ON_A_LINE for row in self.rows)
            and all(row.cells[number].value is None for row in self.rows)
        )

    @property
    def text_classes(self) -> Mapping[int, str]:
        """The class on the page of each column without any number: sentences, words, or neither.

        Heat maps have none.
        """
        columns = range(len(self.columns) if not self.column_keys else 0)
        cells = {number: [row.cells[number] for row in self.rows] for number in columns}
        return {
            number: "prose" if number in self.prose else _class_of(cells[number])
            for number in columns
            if all(cell.value is None for cell in cells[number])
        }

    def column_attributes(self, number: int) -> dict[str, str]:
        """Attributes of a column's head on the page."""
        return attributes(self.column_keys.get(number, {}))


def _class_of(cells: Iterable[TableCell]) -> str:
    """The class of short texts: ``words`` begin at the left, others end at the right."""
    return "words" if any(cell.text[:1].isalpha() for cell in cells) else "figures"


class NamedRecord(NamedTuple):
    """A record with the name of its line in tables and charts."""

    name: str
    record: Measurement

    @property
    def facts(self) -> CaseFacts:
        """The facts of the record."""
        return self.record.facts

    @property
    def marked(self) -> str:
        """The name with the doubts about the record."""
        return marked(self.name, self.facts)

    @property
    def keys(self) -> dict[str, str]:
        """The facts that its row can be filtered by."""
        return row_keys(self.record)


#: The name of a line, and its records by batch.
ByBatch = tuple[str, Mapping[int, Measurement]]


def batch_column(
    batch: int, cell: Callable[[Measurement], TableCell], suffix: str = "", *, optional: bool = True
) -> Column[ByBatch]:
    """A column of the records of a batch; empty where a line has none."""

    def cell_of(line: ByBatch) -> TableCell:
        return cell(line[1][batch]) if batch in line[1] else TableCell("")

    return Column(f"batch {batch}{suffix}", cell_of, optional=optional)


def line_name(record: Measurement, runs: Sequence[str]) -> str:
    """The name of a record in tables and charts; with its run, where there are several."""
    return record.contestant + run_suffix(record.run, runs)


def line_names(
    records: Sequence[Measurement],
    runs: Sequence[str],
    where: Callable[[Measurement], str] = lambda record: record.facts.size_text,
) -> list[NamedRecord]:
    """Records with the names of their lines, by framework and ``eager`` first, as everywhere.

    Repeats at the same place are numbered from 2.
    """
    records = sorted(records, key=lambda record: (record.run, *in_order(record.facts)))
    numbers = repeats((record.run, record.contestant, where(record)) for record in records)
    return [
        NamedRecord(
            line_name(replace(record, repeat=number) if number > 1 else record, runs), record
        )
        for record, number in zip(records, numbers, strict=True)
    ]


def in_order(facts: CaseFacts) -> tuple[str, bool, str]:
    """Key of the order of contestants: by framework, ``eager`` before what compiles."""
    return facts.framework, facts.execution != "eager", facts.execution


def by_work(records: Iterable[Measurement], runs: Sequence[str]) -> list[list[NamedRecord]]:
    """Records of each work, with the names of their lines."""
    works = group_by(records, lambda record: record.facts.work)
    return [line_names(group, runs) for group in works.values()]


def run_suffix(run: int, runs: Sequence[str]) -> str:
    """The name of a run in brackets; empty where there is only one run."""
    return f" ({runs[run]})" if len(runs) > 1 else ""


def grouped(records: Iterable[Measurement], *names: str) -> dict[str, list[Measurement]]:
    """Records by the facts that they share."""
    return group_by(records, lambda record: " ".join(str(record.facts.get(name)) for name in names))


def against_fastest(
    named: Sequence[tuple[str, Measurement]], runs: Sequence[str], prefix: str = ""
) -> list[TableCell]:
    """The ratio of each record to the fastest of its run and work; empty where it is not known.

    Args:
        prefix: sets their contests apart from those of other rows of the same section.
    """
    records = [record for _, record in named]
    works = [work(record.facts) for record in records]
    contests = {key: f"{prefix}{number}" for number, key in enumerate(dict.fromkeys(works))}
    ratios = ratios_to_fastest(records, lambda record: (record.run, work(record.facts)))
    contestants = [name.removesuffix(run_suffix(record.run, runs)) for name, record in named]
    rows = group_by(zip(contestants, records, works, strict=True), lambda each: each[2])
    cells = []
    for contestant, record, key, (behind, is_close) in zip(
        contestants, records, works, ratios, strict=True
    ):
        time_s = math.nan if behind is None and is_contended(record.facts) else record.median_s
        off = blur([(record, record)])
        pairs = _in_turns(record, rows[key])
        timing = Timing(contests[key], contestant, record.run, time_s, off, pairs)
        shaded = shade(behind, is_close=is_close) if behind else ""
        text = times(behind) if behind else ""
        cells.append(TableCell(text, behind, shade=shaded, timing=timing))
    return cells


def _in_turns(
    record: Measurement, row: Iterable[tuple[str, Measurement, Any]]
) -> dict[str, tuple[float, float]]:
    """The ratio of a case to each one of a row that it took turns with, and its blur."""
    others = ((name, other) for name, other, _ in row if other.run == record.run)
    return {
        name: (ratio(other, record).value, blur([(other, record)]))
        for name, other in others
        if other is not record and took_turns([other, record])
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def row_keys(record: Measurement) -> dict[str, str]:
    """The facts that the row of a record can be filtered by."""
    return {name: str(fact) for name in KEYS if (fact := record.facts.get(name)) is not None}


def quantity(value: float | None, show: Callable[[Any], str]) -> TableCell:
    """A cell with a number; empty where there is none."""
    return TableCell("") if value is None else TableCell(show(value), value)


def seconds(value: float | None) -> TableCell:
    """A cell with a time; empty where there is none."""
    return quantity(value, time)


def share(value: float | None) -> TableCell:
    """A cell with a whole percentage; empty where there is none."""
    return quantity(value, "{:.0%}".format)


def shade(ratio: float, *, is_close: bool) -> str:
    """The class of a cell's background, by the ratio of its time to the fastest."""
    return "step0" if is_close else f"step{1 + bisect.bisect_right(_SLOWER, ratio)}"
