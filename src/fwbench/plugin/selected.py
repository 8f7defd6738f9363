"""A small pytest plugin: of what is collected, run the node ids that a file names.

``fwbench ab`` measures flagged cases again with it, whatever else its user has selected.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fwbench.processes.session import SELECTED_VARIABLE


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the items whose node ids the file does not have."""
    file = os.environ.get(SELECTED_VARIABLE)
    if not file:
        return
    selected = {*json.loads(Path(file).read_text(encoding="utf-8"))}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in selected])
    items[:] = [item for item in items if item.nodeid in selected]
