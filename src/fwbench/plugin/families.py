"""Selection of operations by the requested families.

The others are collected and deselected, as with pytest's own ``-k``: the count is in its summary.
"""

from collections.abc import Iterable, Mapping

import pytest

from fwbench import suite
from fwbench.errors import unknown
from fwbench.options.options import REPRESENTATIVES, Selection
from fwbench.plugin.session import CELL, UNASKED, Session
from fwbench.terms.presets import PUBLISHED
from fwbench.workloads import FAMILIES, MODELS
from fwbench.workloads.grid import Cell

#: What stands for every family that a session need not ask for by name, and for work in none.
ALL = "all"


def deselect(config: pytest.Config, session: Session, items: list[pytest.Item]) -> None:
    """Take out the cases that are not in the requested families."""
    cells = {item: item.stash[CELL] for item in items if CELL in item.stash}
    requested = _selections(session, cells)
    _check({name for selection in requested.values() for name in selection.families or ()}, cells)
    everything = _names_tests(config)
    out = {
        item
        for item, cell in cells.items()
        if not _is_in(requested[item], cell) and not (everything and _is_for_all(requested[item]))
    }
    for item in out:
        item.stash[UNASKED] = True
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def _selections(session: Session, items: Iterable[pytest.Item]) -> dict[pytest.Item, Selection]:
    """Requested selection where each item is; looked up once for each marker."""
    by_mark: dict[int, Selection] = {}
    requested = {}
    for item in items:
        mark = next(item.iter_markers("fwbench"))
        if id(mark) not in by_mark:
            by_mark[id(mark)] = session.selection(mark)
        requested[item] = by_mark[id(mark)]
    return requested


def _check(requested: set[str], cells: Mapping[pytest.Item, Cell]) -> None:
    """Refuse families that are not there; operations of the user's own may have some, too."""
    if not requested:
        return
    used = [workload.family for workload in MODELS]
    used += [cell.workload.family for cell in cells.values()]
    known = dict.fromkeys(name for name in (*FAMILIES, *used, ALL, REPRESENTATIVES) if name)
    for name in sorted(requested - known.keys()):
        raise unknown("family", name, known)


def _is_in(requested: Selection, cell: Cell) -> bool:
    """True if a case is in the requested families; None stands for all."""
    families, workload = requested.families, cell.workload
    if families is None or workload.family in families:
        return True
    if ALL in families and not workload.on_request:
        return True
    return _is_for_all(requested) and _represents(cell, requested.sizes)


def _is_for_all(requested: Selection) -> bool:
    """True if work of every family is requested, or what represents it."""
    return bool({ALL, REPRESENTATIVES} & {*(requested.families or ())})


def _represents(cell: Cell, sizes: object) -> bool:
    """True if a case is among those that represent the families where no tests are named.

    They are operations that stand for others; if no sizes are requested, at the smallest and at the
    largest of the quick ones: what a call costs, and what the arithmetic costs. If sizes are that
    others have published, they are the operations that these had.
    """
    workload = cell.workload
    if sizes in PUBLISHED:
        declares = workload.by_preset.declares(str(sizes))
        return not workload.family or (not workload.on_request and declares)
    middling = workload.by_preset.quick[1:-1] if sizes is None else ()
    return workload.representative and cell.size not in middling


def _names_tests(config: pytest.Config) -> bool:
    """True if the command line asks for particular tests: ``-k``, ``-m``, files, node ids.

    So does ``--lf``: the tests that failed were selected when they ran. Files that are added to a
    directory ask for no more of the directory.
    """
    options = config.option
    if options.keyword or options.markexpr or getattr(options, "lf", False):
        return True
    folder = config.invocation_params.dir
    named = options.file_or_dir or ()
    return bool(named) and all(
        "::" in argument or (folder / (suite.path(argument) or argument)).is_file()
        for argument in named
    )
