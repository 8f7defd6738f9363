"""The hooks that fwbench adds to pytest's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest


@pytest.hookspec
def pytest_fwbench_launch(
    launch: int, launches: int | None, cases: int, nodeids: Sequence[str]
) -> None:
    """A launch begins; only with ``--fw-launches``, ``--fw-budget`` or ``--fw-race``.

    Args:
        launch: counted from 0.
        launches: how many there will be; None if that depends on what they bring.
    """


@pytest.hookspec
def pytest_fwbench_launched(nodeid: str, entry: Mapping[str, Any] | None) -> None:
    """A case has been measured in a launch; its report follows when all launches are over.

    Args:
        entry: pytest-benchmark's, of this launch alone; None if it failed or was skipped.
    """


@pytest.hookspec
def pytest_fwbench_epoch(nodeid: str, epoch: Mapping[str, Any]) -> None:
    """A training loop has finished an epoch.

    Called in the user's process, wherever the case runs, while it runs.

    Args:
        epoch: the fields of :class:`fwbench.cases.epochs.Epoch`, and ``epochs`` and
            ``repetitions`` of the schedule and ``rate`` and ``unit`` (examples or tokens a second).
    """
