"""The hooks that fwbench adds to pytest's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest


@pytest.hookspec
def pytest_fwbench_epoch(nodeid: str, epoch: Mapping[str, Any]) -> None:
    """A training loop has finished an epoch.

    Called in the user's process, wherever the case runs, while it runs.

    Args:
        nodeid: of the case.
        epoch: the fields of :class:`fwbench.measure.epochs.Epoch`, and ``epochs`` and
            ``repetitions`` of the schedule and ``rate`` and ``unit`` (examples or tokens a second).
    """
