"""A small pytest plugin: what makes a session a launch of ``fwbench ab``.

It runs the collected node ids that a file names, which measures undecided cases again. It neither
races nor judges.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fwbench.options.options import DEST
from fwbench.processes.session import SELECTED_VARIABLE

#: What a command line asks of a project's own sessions, which launches are not.
_OF_OWN_SESSIONS = ("race", "budget_s", "gate")


@pytest.hookimpl(tryfirst=True)  # before anybody reads an option
def pytest_configure(config: pytest.Config) -> None:
    """Ignore what ``addopts`` and ``PYTEST_ADDOPTS`` have for the project's own sessions.

    ``fwbench ab`` has refused the same on its own command line.
    """
    for name in _OF_OWN_SESSIONS:
        setattr(config.option, DEST[name], None)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the items whose node ids the file does not have."""
    file = os.environ.get(SELECTED_VARIABLE)
    if not file:
        return
    selected = {*json.loads(Path(file).read_text(encoding="utf-8"))}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in selected])
    items[:] = [item for item in items if item.nodeid in selected]
