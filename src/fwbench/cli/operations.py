"""``fwbench list``: the operations by family, their sizes, and which framework computes them.

All of it is declared, so it does not depend on installed packages.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fwbench.cli.common import add_arguments, add_command, rendered, terminal_width
from fwbench.errors import UsageError, unknown
from fwbench.frameworks.declared import manifests
from fwbench.report.terminal.text import plain_lines
from fwbench.terms.manifest import Gap, Manifest
from fwbench.terms.presets import PRESETS, PUBLISHED
from fwbench.workloads import FAMILIES, OPERATIONS, gaps
from fwbench.workloads.operation import Operation

#: Operations by family.
Families = dict[str, list[Operation]]

#: The parts of a gap in the order to say them.
_PARTS = ("direction", "execution", "dtype", "device", "toggle")


def add_to(commands: Any) -> None:
    """Add ``fwbench list`` to the commands."""
    parser = add_command(commands, "list", _list)
    add_arguments(parser.add_mutually_exclusive_group(), "list form")


def _list(arguments: argparse.Namespace) -> int:
    families = _chosen(arguments.names, arguments.family)
    frameworks = [*manifests().values()]
    if arguments.json:
        print(json.dumps(_described(families, frameworks), indent=2))
    elif arguments.markdown:
        print(_page(families, frameworks))
    else:
        print("\n".join(_table(families, frameworks, terminal_width())))
    return 0


def _chosen(names: Sequence[str], families: Sequence[str]) -> Families:
    for kind, requested, known in (
        ("operation", names, [operation.name for operation in OPERATIONS]),
        ("family", families, [*FAMILIES]),
    ):
        for name in requested:
            if name not in known:
                raise unknown(kind, name, known)
    chosen = {
        family: [operation for operation in operations if not names or operation.name in names]
        for family, operations in FAMILIES.items()
        if not families or family in families
    }
    found = {family: operations for family, operations in chosen.items() if operations}
    if not found:
        raise UsageError(
            f"{', '.join(names)} and --family {', '.join(families)} have no operation in common; "
            "leave out one of them"
        )
    return found


# As JSON


def _described(families: Families, frameworks: Sequence[Manifest]) -> dict[str, Any]:
    return {
        family: {operation.name: _facts(operation, frameworks) for operation in operations}
        for family, operations in families.items()
    }


def _facts(operation: Operation, frameworks: Sequence[Manifest]) -> dict[str, Any]:
    sizes = operation.by_preset
    return {
        "representative": operation.representative,
        "differentiable": operation.differentiable,
        "compilable": operation.compilable,
        "form": None if operation.form is None else operation.form.template,
        "sizes": {
            preset: [size if isinstance(size, int) else str(size) for size in sizes.preset(preset)]
            for preset in PRESETS
        },
        "frameworks": {
            framework.name: {
                "offered": _state(missing := gaps.of_operation(framework, operation)),
                "gaps": [asdict(gap) for gap in missing],
                "composed": operation.name in framework.composed,
            }
            for framework in frameworks
        },
    }


def _state(missing: Sequence[Gap]) -> str:
    """Support of an operation by a framework: ``yes``, ``partly`` or ``no``."""
    if any(gap.whole for gap in missing):
        return "no"
    return "yes" if all(gap.toggle for gap in missing) else "partly"


# For people


def _rows(
    operations: Iterable[Operation], frameworks: Sequence[Manifest], representative: str
) -> list[list[str]]:
    """Head and rows of a family's table; names that represent it have a format of their own."""
    names = [framework.name for framework in frameworks]
    rows = [["operation", *names, "quick sizes", "published sizes"]]
    for operation in operations:
        sizes = operation.by_preset
        states = (
            _state(gaps.of_operation(manifest, operation))
            + "+" * (operation.name in manifest.composed)
            for manifest in frameworks
        )
        name = representative.format(operation.name) if operation.representative else operation.name
        published = (preset for preset in PUBLISHED if getattr(sizes, preset))
        rows.append([name, *states, ", ".join(map(str, sizes.quick)), ", ".join(published)])
    return rows


def _reasons(operation: Operation, frameworks: Sequence[Manifest]) -> Iterator[str]:
    """Why an operation is not computed, with the parts of the grid of which that is true."""
    for framework in frameworks:
        for gap in gaps.of_operation(framework, operation):
            parts = ", ".join(filter(None, (getattr(gap, part) for part in _PARTS)))
            where = f" ({parts})" if parts else ""
            yield f"{operation.name}, {framework.name}{where}: {gap.reason}"


def _table(families: Families, frameworks: Sequence[Manifest], width: int | None) -> Iterator[str]:
    """The lines of all families, as wide as a terminal; None where they may have any width."""
    for family, operations in families.items():
        yield f"{family} ({len(operations)})"
        yield from _family(_rows(operations, frameworks, "{} *"), width)
        reasons = (f"    {why}" for each in operations for why in _reasons(each, frameworks))
        yield from reasons if width is None else plain_lines(reasons, width)


def _family(rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """A family's table; where it is too wide, sizes are below the rows, and columns closer."""
    lines = _aligned(rows)
    if width is None or max(map(len, lines)) <= width:
        return lines
    without_sizes = [row[:-2] for row in rows]
    lines = _aligned(without_sizes)
    if max(map(len, lines)) > width:
        lines = _aligned(without_sizes, gap=" ")
    folded = plain_lines(lines[:1], width)
    for line, (*_, quick, published) in zip(lines[1:], rows[1:], strict=True):
        sizes = f"      quick: {quick}" + f"; published: {published}" * bool(published)
        folded += plain_lines([line, sizes], width)
    return folded


def _aligned(rows: Sequence[Sequence[str]], gap: str = "  ") -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ([cell.ljust(to) for cell, to in zip(row, widths, strict=True)] for row in rows)
    return [f"  {gap.join(cells)}".rstrip() for cells in padded]


def _page(families: Families, frameworks: Sequence[Manifest]) -> str:
    shown = {
        family: {
            "rows": _rows(operations, frameworks, "**{}**"),
            "reasons": [why for each in operations for why in _reasons(each, frameworks)],
        }
        for family, operations in families.items()
    }
    count = sum(map(len, families.values()))
    return rendered("operations.md.j2", families=shown, count=count)
