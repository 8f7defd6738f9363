"""Lays tables out within the width of a terminal."""

import itertools
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from fwbench.report import escaping
from fwbench.report.terminal.matrix import ColumnKey, Matrix, MatrixCell, MatrixRow
from fwbench.report.terminal.text import Line, Span, wrapped

#: Columns between two numbers, the first that does not need blocks, or else the last.
_GAPS = (2, 1)

#: Names of operations are cut rather than columns wrapped, but not below this.
_SHORT_NAME = 12

#: Below the other where not one column would fit otherwise.
_SHORTEST_NAME = 8

_CUT = ".."

_NOTHING = MatrixCell("-")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - len(_CUT)] + _CUT


def _cut_apart(text: str, width: int, others: Collection[str]) -> str:
    """A text cut to a width; to its end where another one would be cut alike."""
    cut = _cut(text, width)
    if any(other != text and _cut(other, width) == cut for other in others):
        return _CUT + text[len(_CUT) - width :]
    return cut


def _shortened(name: str, width: int) -> str:
    """A name that fits, or the value of a setting that does not."""
    return name if len(name) <= width else name.rpartition("=")[2]


@dataclass(frozen=True)
class _Column:
    """A column as it is drawn."""

    names: ColumnKey
    #: The lines under the name of its group.
    heading: Sequence[str]
    #: Columns that the signs after its numbers take.
    signs: int
    width: int

    def aligned(self, text: str, width: int) -> str:
        """A text that ends where the numbers do, if there is room for that."""
        return text.rjust(width - self.signs).ljust(width)

    @classmethod
    def of_matrix(cls, matrix: Matrix, names: ColumnKey, is_narrow: bool) -> Self:
        """Width of the widest cell or heading; a narrow one's is cut, to the value of a setting.

        Headings of a framework that would be cut alike are cut to their ends.
        """
        cells = [row.cells.get(names, _NOTHING) for row in matrix.rows]
        signs = max(len(cell.signs) for cell in cells)
        numbers = signs + max(len(cell.text) for cell in cells)
        most = max(numbers, _SHORTEST_NAME) if is_narrow else sys.maxsize
        beside = {
            _shortened(name, most)
            for others in matrix.columns
            if others[0] == names[0]
            for name in others[1:]
        }
        short = (_shortened(name, most) for name in names[1:])
        heading = [_cut_apart(name, most, beside) for name in short]
        return cls(names, heading, signs, max(numbers, *map(len, heading)))


def drawn(matrix: Matrix, width: int) -> list[Line]:
    """A table under its title, its columns in blocks where they do not fit beside each other."""
    lines = wrapped(f"{matrix.title}: {matrix.what}", width, "bold")
    for is_narrow, shortest in ((False, None), (True, _SHORT_NAME)):
        columns = [_Column.of_matrix(matrix, names, is_narrow) for names in matrix.columns]
        together = sum(group.width for group in _groups(columns, sys.maxsize, _GAPS[-1]))
        labels = _Labels.of_rows(matrix.rows, width - together, shortest)
        if labels is not None:
            break
    else:
        widest = max(max(column.width, len(column.names[0])) for column in columns)
        labels = _Labels.of_rows(matrix.rows, width - _GAPS[-1] - widest, _SHORTEST_NAME)
    if labels is None:
        return [*lines, *wrapped(_TOO_NARROW, width)]
    for number, block in enumerate(_blocks(columns, width - labels.width)):
        lines += [()] * (number > 0)
        lines += _block(matrix.rows, block, labels)
    return lines


_TOO_NARROW = "the terminal is too narrow for the table: COLUMNS=80 makes it wider"


@dataclass(frozen=True)
class _Labels:
    """Labels before the columns: names to the left, sizes to the right."""

    #: Columns of the names.
    name: int
    #: Columns of the sizes, and of the gap before them.
    size: int

    @classmethod
    def of_rows(cls, rows: Iterable[MatrixRow], most: int, shortest: int | None) -> Self | None:
        """Needed width, up to a limit; None if names would be cut below the shortest, or at all."""
        name = max(len(row.name) for row in rows)
        size = max(len(row.size) + bool(row.size) for row in rows)
        shown = min(name, most - size)
        return cls(shown, size) if shown >= min(name, shortest or name) else None

    @property
    def width(self) -> int:
        return self.name + self.size

    def of_row(self, row: MatrixRow) -> str:
        name = _cut(escaping.terminal(row.name), self.name)
        return f"{name:<{self.name}}{row.size:>{self.size}}"


@dataclass(frozen=True)
class _Group:
    """The columns of a framework, or as many of them as fit beside each other."""

    columns: Sequence[_Column]
    gap: int

    @property
    def name(self) -> str:
        return self.columns[0].names[0]

    @property
    def width(self) -> int:
        columns_width = sum(self.gap + column.width for column in self.columns)
        between_groups = self.gap * (len(self.columns) > 1)
        return max(between_groups + columns_width, self.gap + len(self.name))

    @property
    def heading(self) -> str:
        """The name of the framework: in the middle of its columns, or above the numbers of one."""
        if len(self.columns) > 1:
            return " " * self.gap + self.name.center(self.width - self.gap)
        text = self.columns[0].aligned(self.name, self.width)
        return text if text.startswith(" ") else self.name.rjust(self.width)

    def subheading(self, level: int) -> str:
        """Executions, or the toggles on a line below them."""
        names = ("".join(column.heading[level : level + 1]) for column in self.columns)
        texts = zip(self.columns, names, strict=True)
        text = "".join(column.aligned(name, self.gap + column.width) for column, name in texts)
        return text.rjust(self.width)

    def spans(self, cells: Mapping[ColumnKey, MatrixCell]) -> Iterator[Span]:
        columns_width = sum(self.gap + column.width for column in self.columns)
        yield Span(" " * (self.width - columns_width))
        for column in self.columns:
            cell = cells.get(column.names, _NOTHING)
            yield Span(" " * (self.gap + column.width - column.signs - len(cell.text)))
            yield Span(cell.text, cell.style)
            yield Span(cell.signs.ljust(column.signs))


_Block = Sequence[_Group]


def _blocks(columns: Sequence[_Column], width: int) -> list[_Block]:
    """Frameworks that fit beside each other; one that is too wide by itself is divided."""
    blocks: list[_Block] = []
    for gap in _GAPS:
        blocks = [*_packed(_groups(columns, width, gap), width)]
        if len(blocks) == 1 and _width(blocks[0]) <= width:
            break
    return blocks


def _width(block: _Block) -> int:
    return sum(group.width for group in block)


def _packed(groups: Iterable[_Group], width: int) -> Iterator[_Block]:
    block: list[_Group] = []
    for group in groups:
        if block and _width([*block, group]) > width:
            yield block
            block = []
        block.append(group)
    yield block


def _groups(columns: Iterable[_Column], width: int, gap: int) -> Iterator[_Group]:
    for _, framework in itertools.groupby(columns, lambda column: column.names[0]):
        part: list[_Column] = []
        for column in framework:
            if part and _Group([*part, column], gap).width > width:
                yield _Group(part, gap)
                part = []
            part.append(column)
        yield _Group(part, gap)


def _block(rows: Iterable[MatrixRow], block: _Block, labels: _Labels) -> Iterator[Line]:
    for heading in _headings(block):
        yield (Span((" " * labels.width + heading).rstrip()),)
    for row in rows:
        cells = (span for group in block for span in group.spans(row.cells))
        yield (Span(labels.of_row(row)), *cells)


def _headings(block: _Block) -> Iterator[str]:
    """Frameworks, their executions, and toggles below; no executions where all is eager."""
    yield "".join(group.heading for group in block)
    below = [column.heading for group in block for column in group.columns]
    if any([*names] != ["eager"] for names in below):
        for level in range(max(map(len, below))):
            yield "".join(group.subheading(level) for group in block)
