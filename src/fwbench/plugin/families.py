"""Which operations a session has: those of the families that are asked for.

The others are collected and deselected, as with pytest's own ``-k``: the count is in its summary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest

from fwbench import suite
from fwbench.errors import unknown
from fwbench.grid import Cell
from fwbench.options.options import REPRESENTATIVES
from fwbench.plugin.session import CELL, UNASKED, Session
from fwbench.presets import PUBLISHED
from fwbench.workloads import FAMILIES, MODELS
from fwbench.workloads.workload import Workload

#: What stands for every family that a session need not ask for by name, and for work in none.
ALL = "all"


def deselect(config: pytest.Config, session: Session, items: list[pytest.Item]) -> None:
    """Take out the cases that are not in the families asked for.

    Args:
        config: pytest's.
        session: fwbench's.
        items: all that were collected; those that stay are left.

    Raises:
        UsageError: a family that was asked for is not there.
    """
    cells = {item: item.stash[CELL] for item in items if CELL in item.stash}
    asked = _asked(session, cells)
    _check({name for names in asked.values() for name in names or ()}, cells)
    represents = _all if _names_tests(config) else _representing(_sizes(session))
    out = {
        item for item, cell in cells.items() if not _is_in(asked[item], cell.workload, represents)
    }
    for item in out:
        item.stash[UNASKED] = True
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item in out])
        items[:] = [item for item in items if item not in out]


def _asked(
    session: Session, items: Iterable[pytest.Item]
) -> dict[pytest.Item, Sequence[str] | None]:
    """The families that are asked for where each item is; looked up once for each marker."""
    by_mark: dict[int, Sequence[str] | None] = {}
    asked = {}
    for item in items:
        mark = next(item.iter_markers("fwbench"))
        if id(mark) not in by_mark:
            by_mark[id(mark)] = session.families(mark)
        asked[item] = by_mark[id(mark)]
    return asked


def _check(asked: set[str], cells: Mapping[pytest.Item, Cell]) -> None:
    """Refuse families that are not there; operations of the user's own may have some, too."""
    if not asked:
        return
    own = [workload.family for workload in MODELS]
    own += [cell.workload.family for cell in cells.values()]
    known = dict.fromkeys(name for name in (*FAMILIES, *own, ALL, REPRESENTATIVES) if name)
    for name in sorted(asked - known.keys()):
        raise unknown("family", name, known)


def _is_in(
    families: Sequence[str] | None, workload: Workload, represents: Callable[[Workload], bool]
) -> bool:
    """Whether work is in the families that are asked for; None stands for whatever is there."""
    if families is None or workload.family in families:
        return True
    if ALL in families and not workload.on_request:
        return True
    return bool({ALL, REPRESENTATIVES} & {*families}) and represents(workload)


def _all(_: Workload) -> bool:
    return True


def _sizes(session: Session) -> object:
    """The sizes that the session asks for, by option or ini setting."""
    return session.options.asked.over(session.options.configured).sizes


def _representing(sizes: object) -> Callable[[Workload], bool]:
    """Tells the work that represents the families in a session that names no tests.

    With sizes that others have published they are the operations that these had.

    Args:
        sizes: that it asks for.
    """
    if sizes not in PUBLISHED:
        return lambda workload: workload.representative
    preset = str(sizes)
    return lambda workload: (
        not workload.family or (not workload.on_request and workload.by_preset.declares(preset))
    )


def _names_tests(config: pytest.Config) -> bool:
    """Whether the command line asks for particular tests: ``-k``, ``-m``, a file, a node id.

    So does ``--lf``: the tests that failed were selected when they ran.
    """
    options = config.option
    if options.keyword or options.markexpr or getattr(options, "lf", False):
        return True
    folder = config.invocation_params.dir
    return any(
        "::" in argument or (folder / (suite.path(argument) or argument)).is_file()
        for argument in options.file_or_dir or ()
    )
