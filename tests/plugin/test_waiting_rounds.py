"""Rounds of work that is waited for: each is one call, and the record knows what waiting takes."""

from __future__ import annotations

from support.projects import Project

_NOOP = """
import pytest
from fwbench.workloads import noop

@pytest.mark.fwbench(noop)
def test_it(case):
    case.measure()
"""


def test_a_round_is_one_call_wherever_a_wait_is_part_of_it(project: Project) -> None:
    """However short: calls of one round would share the wait, and times would jump where they do.

    Where calls return when they are done there is no wait, and a round of shortest calls has many.
    """
    project.install_pool()
    project.write("test_it.py", _NOOP)
    _, records = project.measure(fw="pool,numpy")
    by_framework = {entry["params"]["framework"]: entry for entry in records.values()}
    pool, numpy = (by_framework[name] for name in ("pool", "numpy"))
    assert pool["stats"]["iterations"] == 1
    assert pool["extra_info"]["fwbench"]["wait_s"] > 0.0
    assert numpy["stats"]["iterations"] > 1
    assert "wait_s" not in numpy["extra_info"]["fwbench"]
