"""The statements of 2020: every verdict, and the figures of today.

``verdicts.jsonl`` has a run in each line: what was measured (workload, framework, execution,
seconds of epochs or calls, and other facts), the verdict, and a part of the text on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from runs_of_2020 import Entry, judged, lenet

from support.reports import QUIET, case

_LINES = Path(__file__).with_name("verdicts.jsonl").read_text(encoding="utf-8").splitlines()
_RUNS = [json.loads(line) for line in _LINES]


def _measured(
    workload: str,
    framework: str,
    execution: str,
    values_s: Sequence[float] | None,
    facts: dict[str, Any],
) -> Entry:
    if workload in ("lenet", "mlp"):
        entry = lenet(framework, execution, values_s or (), **facts)
        entry["extra_info"]["fwbench"]["workload"] = workload
        return entry
    return case(workload, framework, values_s or QUIET, execution, **facts)


@pytest.mark.parametrize("run", _RUNS, ids=lambda run: str(run["name"]))
def test_statements_are_judged(run: dict[str, Any]) -> None:
    """With the figures that the verdict is made on, in every order."""
    entries = [_measured(*measured) for measured in run["entries"]]
    for order in (entries, entries[::-1]):
        row = judged(run["statement"], *order)
        assert row["verdict"] == run["verdict"]
        assert run["figures"] in row["today"]
