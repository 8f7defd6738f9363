"""Regressions that others reported: each has a thread, a test that anyone can run, and a result."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fwbench_extras import regressions

_THREAD = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")

_REPORTS = [
    pytest.param(name, study, report, id=f"{name}: {report['title']}")
    for name, study in regressions.studies().items()
    for report in study["reports"]
]


@pytest.mark.parametrize(("name", "study", "report"), _REPORTS)
def test_a_report_has_a_thread_a_command_a_test_and_a_result(
    name: str, study: dict[str, Any], report: dict[str, Any]
) -> None:
    """If a result is missing: python benchmarks/harness/regressions.py --only NAME."""
    command = regressions.command(name, study)
    tests = (regressions.FOLDER.parents[1] / command[-1]).read_text(encoding="utf-8")
    versions = command[command.index("--versions") + 1].split(",")
    found = regressions.results()[name]
    assert _THREAD.fullmatch(report["thread"])
    assert report["claim"]
    assert f"\ndef {report['case'].partition('[')[0]}(benchmark" in tests
    assert {claimed[end] for claimed in report["changes"] for end in ("from", "to")} <= {*versions}
    assert found["versions"] == versions
    assert report["case"] in found["cases"]


@pytest.mark.parametrize(
    ("ratios", "told", "claimed", "verdict"),
    [
        ([1.9], True, {"factor": 2.0}, "**confirmed**: 2.0 takes 1.9x"),
        ([1.1], True, {"factor": 2.0}, "**confirmed, smaller**: 2.0 takes 1.1x"),
        ([5.0], True, {"factor": 2.0}, "**confirmed, larger**: 2.0 takes 5x"),
        ([0.5], True, {"says": "faster"}, "**confirmed**: 2.0 takes 0.5x"),
        ([0.5], True, {"factor": 2.0}, "**contradicted**: 2.0 takes 0.5x"),
        ([2.0, 3.0], True, {"factor": 6.0, "to": "3.0"}, "**confirmed**: 3.0 takes 6x"),
        ([], True, {"factor": 2.0}, "**not seen: no change above 2.0% in a step** from 1.0 to"),
        ([], False, {"factor": 2.0}, "**cannot tell** from 1.0 to 2.0"),
        ([], True, {"factor": 2.0, "to": "4.0"}, "**not measured** in 4.0: no wheel"),
    ],
)
def test_a_verdict_says_what_was_found(
    ratios: list[float], *, told: bool, claimed: dict[str, Any], verdict: str
) -> None:
    changes = [{"since": f"{place}.0", "ratio": ratio} for place, ratio in enumerate(ratios, 2)]
    times_s = dict.fromkeys(("1.0", "2.0", "3.0"), 1.0)
    last = "unchanged" if told else None
    steps = [{"since": version, "verdict": last, "bounds": [0.99, 1.02]} for version in times_s]
    case = {"times_s": times_s, "changes": changes, "steps": steps, "missing": {}}
    found = {"versions": [*times_s], "gaps": {"4.0": "no wheel"}, "cases": {"t": case}}
    said = regressions.verdict({"from": "1.0", "to": "2.0"} | claimed, found, "t")
    assert said.startswith(verdict)
