"""Folders of compiled code, of cases with ``--fw-toggle cache=cold`` or ``cache=warm``.

A framework's manifest names the environment variables of its folder
(:attr:`fwbench.terms.manifest.Capabilities.cache_variables`). With ``cold`` it is emptied before
each case; with ``warm`` each case has filled it before, in a process of its own. Without the toggle
a framework has its own folder, in which code of earlier sessions may be.
"""

import os
import shutil
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from fwbench.errors import FwbenchError
from fwbench.frameworks import probes
from fwbench.plugin.probing import RunAlone
from fwbench.plugin.progress import Progress
from fwbench.plugin.session import CELL
from fwbench.records.units import count
from fwbench.terms.manifest import Manifest
from fwbench.terms.toggles import CACHE
from fwbench.workloads.grid import Cell

#: The environment variables that name the folder of a session, and that of a worker to be emptied.
VARIABLE = "FWBENCH_COMPILED_CODE"
_EMPTIED = "FWBENCH_EMPTIED"

#: Has a worker call a case a few times and time nothing, whatever it finds.
_CALLED = {probes.VARIABLE: probes.MEMORY}


def _value(cell: Cell) -> str:
    return "" if cell.gap else dict(cell.toggles).get(CACHE, "")


def is_redirected(cell: Cell) -> bool:
    """True if a case has a folder of its session's, and not its framework's own."""
    return bool(_value(cell))


def variables(cell: Cell, manifest: Manifest, number: int) -> dict[str, str]:
    """The environment variables that redirect a case's compiled code.

    Args:
        number: of the worker; those that measure and are alive together have different ones.
    """
    if not is_redirected(cell):
        return {}
    is_warm = _value(cell) == "warm"
    folder = Path(os.environ[VARIABLE], f"{cell.framework}-{'warm' if is_warm else number}")
    folder.mkdir(exist_ok=True)
    given = {
        name: value.format(folder=folder, given=os.environ.get(name, "")).strip()
        for name, value in manifest.cache_variables.items()
    }
    return given if is_warm else {**given, _EMPTIED: str(folder)}


def empty() -> None:
    """Empty the folder of this worker, if its cases begin with an empty one."""
    if _EMPTIED in os.environ:
        for path in Path(os.environ[_EMPTIED]).iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def fill(items: Iterable[pytest.Item], run_alone: RunAlone, progress: Progress) -> None:
    """Have each case that begins with a filled folder compiled once, in a process of its own.

    One that cannot be compiled says so when it is measured.
    """
    warm = [item for item in items if _value(item.stash[CELL]) == "warm"]
    if warm:
        progress.announce(f"cache=warm: {count(len(warm), 'case')} to compile before the first")
    for number, item in enumerate(warm, start=1):
        part = f"cache=warm, compiling ahead {number} of {len(warm)}"
        with progress.ahead(part, item), suppress(FwbenchError):
            deque(run_alone(item, _CALLED), maxlen=0)
