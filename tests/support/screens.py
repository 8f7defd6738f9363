"""Recorded cases, and what a terminal shows of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fwbench.report.terminal.screen import Outcome, View, screen
from fwbench.report.terminal.text import Line, plain

WIDE = View(width=200)
IN_FULL = View(width=200, verbosity=1)
QUIET = View(width=200, verbosity=-1)


def entry(framework: str, completion_s: float = 1.0, **facts: Any) -> dict[str, Any]:
    """An entry of pytest-benchmark's JSON, as far as it is printed from.

    Args:
        framework: of the case.
        completion_s: of a call.
        facts: what else is under ``extra_info``, and the ``params``.
    """
    params = facts.pop("params", {})
    values = {
        "framework": framework,
        "framework_version": "1.0",
        "execution": "eager",
        "workload": "gemm",
        "device": "cpu",
        "device_name": "Fake CPU",
        "direction": "forward",
        "dtype": "float32",
        "size": 8,
        "threads": 2,
        "completion_s": completion_s,
        "dispatch_s": completion_s,
        "steady": True,
        **facts,
    }
    param = f"{values['workload']}-{framework}"
    return {"param": param, "params": params, "extra_info": {"fwbench": values}}


def texts(lines: Iterable[Line]) -> list[str]:
    """Lines without styles, and without what is blank at their ends."""
    return [plain(line).rstrip() for line in lines]


def shown(*records: dict[str, Any], view: View = WIDE, **outcome: Any) -> list[str]:
    """The lines that are printed of cases.

    Args:
        records: entries of pytest-benchmark.
        view: how much is shown.
        outcome: what else came of the session.
    """
    return texts(screen(Outcome(records, **outcome), view))


def styled(lines: Iterable[Line], style: str) -> list[str]:
    """The pieces of lines that have a style."""
    return [span.text for line in lines for span in line if span.style == style]
