"""What stands above everything else: on what, when, with which versions, and the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fwbench.report import summary
from fwbench.report.drawing import palette
from fwbench.report.model import Run, frameworks
from support.launched_runs import plain
from support.reports import case, run_of, runs_of, shown


def _heads(runs: list[Run]) -> list[summary.Head]:
    return summary.heads(runs, palette.colours(frameworks(runs)))


def _run(**session: object) -> Run:
    """Torch is the faster at two of three, and one is too close to call."""
    return run_of(
        *(case("gemm", name, t) for name, t in (("torch", 1.0), ("numpy", 2.0))),
        *(case("dot", name, t) for name, t in (("torch", 1.0), ("numpy", 3.0))),
        *(case("sum", name, t) for name, t in (("torch", 1.0), ("numpy", 1.01))),
        **session,
    )


def test_the_answer_is_on_top() -> None:
    ((verdict,),) = (one.verdicts for one in _heads([_run()]))
    assert verdict.title == "Fastest (operations, forward)"
    assert verdict.text == "torch for 2 of 3; 1 too close to call"
    assert [(share.name, share.contests, share.colour) for share in verdict.shares] == [
        ("torch", 2, palette.COLOURS["torch"]),
        ("too close to call", 1, ""),
    ]
    (header,) = shown(_run()).all("header")
    assert "torch for 2 of 3; 1 too close to call" in header.text


def test_machine_and_versions_are_on_top() -> None:
    known = _run(
        threads=2,
        machine={"cpu": "Fake CPU", "usable_cpus": 3, "os": "Fake OS"},
        frameworks={"torch": {"version": "2.9", "build": {}}},
        launches={"launches": 5, "seed": 7},
    )
    (found,) = _heads([known])
    facts = dict(found.facts)
    facts.pop("measured", None)
    assert facts == {
        "machine": "Fake CPU, 3 CPUs used, Fake OS",
        "threads": "2",
        "versions": "torch 2.9",
        "launches": "5, shuffled",
        "cases": "6",
    }
    assert found.title == ""


def test_the_date_has_its_time_zone() -> None:
    """pytest-benchmark stores UTC; without a date nothing is said."""
    made = _run()
    (dated,) = _heads([replace(made, when="2026-11-22T11:40:26.123456+00:00")])
    assert dated.facts["measured"] == "2026-11-22 11:40 UTC"
    (undated,) = _heads([replace(made, when="")])
    assert "measured" not in undated.facts


@pytest.mark.parametrize(
    ("least", "ended", "said"), [(1, 14, "1 to 14 a case"), (5, 5, "5"), (5, 3, "3")]
)
def test_launches_of_a_budget_are_a_range(least: int, ended: int, said: str) -> None:
    """A race launches some cases more often than others; head and provenance say so."""
    spent = {"budget_s": 300.0, "took_s": 290.0, "launches": ended, "cases": 6}
    made = _run(launches={"launches": least, "seed": 7}, budget=spent)
    (found,) = _heads([made])
    assert found.facts["launches"] == f"{said}, shuffled"
    assert f"{said}, seed 7" in [node.text for node in shown(made).all("dd")]


def test_an_interrupted_run_says_so_above_its_answer() -> None:
    made = _run(outcome={"failed": 0, "interrupted": True}, planned=9)
    (found,) = _heads([made])
    assert found.facts["cases"] == "interrupted: 6 of 9 cases measured"


def test_a_report_has_a_title() -> None:
    runs = [_run(machine={"cpu": "Fake CPU"})]
    assert summary.title(runs) == "torch and numpy on Fake CPU"
    other = run_of(case("gemm", "jax"), machine={"cpu": "Other CPU"})
    assert summary.title([*runs, other]) == "torch, numpy and jax"
    assert summary.title([]) == "fwbench report"
    assert summary.title([run_of(plain())]) == "fwbench report"


def test_several_runs_have_their_names() -> None:
    runs = runs_of(
        first=[case("gemm", "torch", 1.0), case("gemm", "numpy", 2.0)],
        second=[case("gemm", "torch", 3.0), case("gemm", "numpy", 2.0)],
    )
    said = {one.title: [verdict.text for verdict in one.verdicts] for one in _heads(runs)}
    assert said == {"first.json": ["torch for 1 of 1"], "second.json": ["numpy for 1 of 1"]}
