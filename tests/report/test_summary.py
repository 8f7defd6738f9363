"""The summary: the head of a report, means, largest differences, and notes."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fwbench.records.session_facts import SessionFacts, StoredRace
from fwbench.report import summary, writers
from fwbench.report.drawing import palette
from fwbench.report.model import Run, frameworks, read
from fwbench.report.terminal import notes
from support.histories import OPEN, RACE
from support.launched_runs import plain
from support.reports import (
    case,
    column,
    foreign_run,
    interpreted,
    part,
    part_of,
    rounds_of,
    run_of,
    runs_of,
    shown,
    training,
)
from support.section_parts import compared
from support.tables import tabled


def _heads(runs: list[Run]) -> list[summary.Head]:
    return summary.heads(runs, palette.colours(frameworks(runs)))


def _run(**session: object) -> Run:
    """Torch is the faster at two of three, and one is too close to call."""
    return run_of(
        *(case("gemm", name, t) for name, t in (("torch", 1.0), ("numpy", 2.0))),
        *(case("dot", name, t) for name, t in (("torch", 1.0), ("numpy", 3.0))),
        *(
            case("sum", name, t)
            for name, t in (("torch", (0.98, 0.99, 1.0, 1.01, 1.02)), ("numpy", 1.01))
        ),
        **session,
    )


@pytest.mark.parametrize(("used", "said"), [((1, 1), "1"), ((1, 3), "2"), ((None, 1), "1")])
def test_threads_are_those_that_all_cases_had(used: tuple[int | None, ...], said: str) -> None:
    """A session with two may have cases that are given one each, as replicas are."""
    cases = (case(f"work {n}", threads=threads) for n, threads in enumerate(used))
    run = run_of(*cases, threads=2)
    (head,) = _heads([run])
    assert head.facts["threads"] == said
    assert f"<dt>threads</dt><dd>{said}</dd>" in writers.html([run]).replace("\n", "")


def test_the_answer_is_on_top() -> None:
    ((verdict,),) = (one.verdicts for one in _heads([_run()]))
    assert verdict.title == "Fastest (operations, forward)"
    assert verdict.text == "torch for 2 of 3; 1 too close to call"
    assert [(share.name, share.contests, share.colour) for share in verdict.shares] == [
        ("torch", 2, palette.COLOURS["torch"]),
        ("too close to call", 1, ""),
    ]
    page = shown(_run())
    assert "torch for 2 of 3; 1 too close to call" in page.all("header")[0].text
    assert len(page.of_class("shares")) == 1


def test_repeatability_is_stated_on_top() -> None:
    twice = {"numpy": {"cases": 12, "sd": 0.0296, "pairs": {}}}
    run = run_of(rounds_of(case()), rounds_of(case("dot")), revisits=twice)
    text = "medians here repeat to within 14 % (numpy): 12 cases revisited"
    assert text in shown(run).all("header")[0].text
    assert f"- uncertainty: {text}" in writers.markdown([run]).splitlines()
    assert "assumed to repeat to within 5 %" in writers.markdown([run_of(rounds_of(case()))])


def test_what_cannot_be_told_is_said_alike_everywhere() -> None:
    """Without a bar: 6 of 46 rows are what happened to be quiet."""
    run = run_of(
        *(case(f"work{i}", "torch", 1.0) for i in range(46)),
        *(case(f"work{i}", "numpy", 2.0, contended=i < 40) for i in range(46)),
        machine={"cpu": "Fake CPU"},
    )
    text = "cannot be told: 40 of 46 rows disturbed"
    ((verdict,),) = (one.verdicts for one in _heads([run]))
    assert (verdict.text, verdict.shares) == (text, [])
    page = shown(run)
    assert text in page.all("header")[0].text
    assert (len(page.of_class("shares")), len(page.of_class("step0"))) == (0, 6)
    assert notes.answer(run.records) == [f"Fastest here: {text}"]
    head = writers.markdown([run]).partition("\n\n### ")[0].splitlines()
    assert head[0] == "# numpy and torch on Fake CPU"
    assert {"- machine: Fake CPU", f"- Fastest (operations, forward): {text}"} <= {*head}
    (found,) = [section for section in summary.sections([run]) if section.title == "Not ranked"]
    assert found.rows[0].cells[1].text == (
        "torch eager, numpy eager share 46 cases, 6 of them undisturbed"
    )


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
        "uncertainty": "medians here repeat to within 1 % (numpy), 1 % (torch): by launches",
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
    assert summary.title(runs) == "numpy and torch on Fake CPU"
    other = run_of(case("gemm", "jax"), machine={"cpu": "Other CPU"})
    assert summary.title([*runs, other]) == "jax, numpy and torch"
    assert summary.title([]) == "fwbench report"
    assert summary.title([run_of(plain())]) == "fwbench report"
    compared_alone = interpreted(compared().to_json())
    assert summary.title([compared_alone]) == "head.json against base.json"


def test_several_runs_have_their_names() -> None:
    runs = runs_of(
        first=[case("gemm", "torch", 1.0), case("gemm", "numpy", 2.0)],
        second=[case("gemm", "torch", 3.0), case("gemm", "numpy", 2.0)],
    )
    said = {one.title: [verdict.text for verdict in one.verdicts] for one in _heads(runs)}
    assert said == {"first.json": ["torch for 1 of 1"], "second.json": ["numpy for 1 of 1"]}


def _contest() -> list[Run]:
    """Torch is 2 times as fast at gemm, TensorFlow 8 times as fast at dot."""
    return [
        run_of(
            case("gemm", "torch", 1.0),
            case("gemm", "tensorflow", 2.0),
            case("dot", "torch", 8.0),
            case("dot", "tensorflow", 1.0),
            case("noop", "torch", 1.0),
            case("noop", "tensorflow", 1000.0),
        )
    ]


def test_geometric_means() -> None:
    found = part(_contest(), "Geometric mean")
    means = column(found, "largest size (2 of 2 rows)")
    assert {name: cell.value for name, cell in means.items()} == pytest.approx(
        {"tensorflow eager": math.sqrt(2), "torch eager": math.sqrt(8)}
    )
    assert [*means] == ["tensorflow eager", "torch eager"]
    assert [cell.text for cell in means.values()] == ["1.41x", "2.83x"]
    assert len(found.columns) == 2  # no work has two sizes


def test_largest_differences() -> None:
    first, second = part(_contest(), "Largest differences").rows
    assert [cell.text for cell in first.cells] == [
        *("dot cpu forward float32 100", "tensorflow eager", "1 s", "torch eager", "8 s", "8.0x")
    ]
    assert [cell.text for cell in second.cells] == [
        *("gemm cpu forward float32 100", "torch eager", "1 s", "tensorflow eager", "2 s", "2.0x")
    ]


def test_a_case_that_two_tests_measured_is_two_contestants() -> None:
    again = case("gemm", "torch", 8.0)
    again["fullname"] = "test_other.py::test_other[gemm]"
    first = [case("gemm", "torch", 1.0), case("gemm", "numpy", 2.0)]
    found = part_of("Geometric mean", *first, again)
    means = column(found, "largest size (1 of 1 row)")
    assert {name: cell.text for name, cell in means.items()} == {
        "torch eager": "1.00x",
        "numpy eager": "2.00x",
        "torch eager #2": "8.00x",
    }


def test_only_the_largest_differences_are_named() -> None:
    entries = [
        case("gemm", framework, seconds, size=size)
        for size in range(1, 12)
        for framework, seconds in (("torch", 1.0), ("numpy", 1.0 + size))
    ]
    ratios = [row.cells[-1].text for row in part_of("Largest differences", *entries).rows]
    assert ratios == [f"{1.0 + size:.1f}x" for size in range(11, 1, -1)]


def test_a_case_without_a_rival_is_no_difference() -> None:
    assert summary.sections([run_of(case(), case("dot"))]) == []


def test_the_same_work_is_compared() -> None:
    entries = [case("gemm", "torch", 2.0), case("gemm", "numpy"), case("dot", "numpy")]
    entries = [{**one, "group": one["params"]["framework"]} for one in entries]
    means = column(part_of("Geometric mean", *entries), "largest size (1 of 1 row)")
    assert [*means] == ["numpy eager", "torch eager"]


def test_what_is_missing_is_said() -> None:
    reasons = ["deselected", "gpu: no GPU", "deselected"]
    run = run_of(
        case(),
        missing=[{"nodeid": "x", "framework": "torch", "why": why} for why in reasons],
        absent={"jax": "not installed"},
    )
    found = {name: cell.text for name, cell in column(part([run], "Not measured"), "cases").items()}
    assert found == {"deselected": "2 cases", "gpu: no GPU": "1 case", "jax: not installed": "all"}


def test_summaries_are_of_one_run_each() -> None:
    runs = runs_of(
        slow=[case("gemm", "torch", 100.0), case("gemm", "mxnet", 200.0)],
        fast=[case("gemm", "torch", 1.0), case("gemm", "numpy", 2.0)],
    )
    titles = [one.title for one in summary.sections(runs)]
    assert titles == [
        f"{what} ({run}.json)"
        for what in (
            "Geometric mean of time against the fastest: operations, forward",
            "Largest differences",
        )
        for run in ("slow", "fast")
    ]
    means = column(part(runs, titles[0]), "largest size (1 of 1 row)")
    assert {name: cell.text for name, cell in means.items()} == {
        "torch eager": "1.00x",
        "mxnet eager": "2.00x",
    }


@tabled
def test_what_must_be_known_first_is_noted(facts: dict[str, Any], said: str) -> None:
    run = run_of(case(), training(**facts))
    (note,) = summary.notes([run])
    assert said in note
    assert [one.text for one in shown(run).of_class("note")] == [note]
    assert note in writers.markdown([run])
    assert summary.notes([run_of(case(), training())]) == []


@pytest.mark.parametrize(("brand", "differs"), [("Fake CPU", False), ("Other CPU", True)])
def test_different_machines_are_noted(tmp_path: Path, brand: str, differs: bool) -> None:
    own, plain_here = run_of(case()), read(foreign_run(tmp_path / "here.json"))
    plain_there = read(foreign_run(tmp_path / "there.json", brand))
    there = run_of(case(), machine={"cpu": brand})
    for one, other in ((own, there), (own, plain_there), (plain_here, plain_there)):
        notes = summary.notes([one, other])
        assert ["different machines" in note for note in notes] == [True] * differs


def test_a_race_is_the_answer_of_its_run() -> None:
    """It is in the head and on the first card, and none by medians is beside it."""
    text = "torch eager for 1 of 3; 1 tie; 1 undecided"
    run = replace(_run(), session=SessionFacts(race=RACE))
    ((verdict,),) = [head.verdicts for head in _heads([run])]
    assert (verdict.title, verdict.text) == ("Fastest, by the race", text)
    assert [(share.name, share.contests) for share in verdict.shares] == [
        *[("torch eager", 1), ("tie", 1), ("undecided", 1)]
    ]
    race, *by_medians = summary.cards([run], palette.COLOURS)
    assert (race.title, race.verdicts) == ("race", [replace(verdict, title="fastest")])
    assert [card.verdicts for card in by_medians] == [[]]
    assert f"Fastest, by the race: {text}" in writers.markdown([run])
    assert text in shown(run).text


def test_a_race_that_decided_nothing_leaves_the_answer_to_medians() -> None:
    undecided = SessionFacts(race=StoredRace(level=0.01, groups=[OPEN]))
    ((verdict,),) = [head.verdicts for head in _heads([replace(_run(), session=undecided)])]
    assert verdict.title.startswith("Fastest (operations")


def test_the_answer_is_a_picture() -> None:
    """Small sizes and large ones apart, for the kind with most rows first."""
    run = run_of(
        *(case("gemm", name, s, size=9) for name, s in (("torch", 1.0), ("numpy", 4.0))),
        *(case("gemm", name, s, size=99) for name, s in (("torch", 8.0), ("numpy", 1.0))),
        *(training(name) for name in ("torch", "mxnet")),
    )
    operations, trained = summary.cards([run], palette.COLOURS)
    assert (operations.title, trained.title) == ("operations, forward", "training loops")
    assert [(verdict.title, verdict.text) for verdict in operations.verdicts] == [
        ("fastest", "torch for 1 of 2, numpy for 1"),
        ("smallest sizes", "torch for 1 of 1"),
        ("largest sizes", "numpy for 1 of 1"),
    ]
    bars = [[cell.bar and cell.bar.share for cell in row.cells] for row in operations.table.rows]
    numpy, torch = bars
    assert (numpy[1:], torch[1:]) == (pytest.approx([0.25, 1.0]), pytest.approx([1.0, 0.125]))
    assert len(trained.verdicts) == 1
    page = shown(run)
    meters = page.all("header")[0].of_class("meter")
    styles = [meter.all("span")[0].attributes["style"] for meter in meters]
    assert styles[0] == f"--share:0.250;background:{palette.COLOURS['numpy']}"
    assert len(styles) == 6
