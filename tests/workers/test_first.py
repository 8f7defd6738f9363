"""What a process does once is told from what every case takes."""

from __future__ import annotations

import json

from support.projects import Project

_CASES = """
import pytest
from fwbench.workloads import tanh

@pytest.mark.fwbench(tanh, sizes=(4, 5))
def test_it(case):
    case.measure()
"""


def test_the_first_case_of_a_process_is_marked(project: Project) -> None:
    """Its first call starts what a framework, and a GPU, start once: later ones do not compare."""
    project.write("test_it.py", _CASES)
    project.run("--fw-direction=forward", "--benchmark-json=run.json").assert_outcomes(passed=2)
    run = json.loads((project.path / "run.json").read_text(encoding="utf-8"))
    facts = [entry["extra_info"]["fwbench"] for entry in run["benchmarks"]]
    assert [(each["size"], each["first_in_process"]) for each in facts] == [(4, True), (5, False)]
