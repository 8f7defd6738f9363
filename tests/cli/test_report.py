"""``fwbench report``: what it writes, of whose runs, and what it makes of bad input."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fwbench import cli
from fwbench.gate.verdicts import Comparison, Judgement, Verdict
from fwbench.records.session_facts import NOT_REACHED
from fwbench.report import escaping, sections, summary, writers
from fwbench.report.model import read
from support.gangs import out
from support.launched_runs import cut_short, holding, plain, write
from support.reports import (
    UNREADABLE,
    USAGE_ERROR,
    case,
    column,
    foreign_run,
    parsed,
    part,
    run_of,
    shown,
)
from support.tables import tabled

_FAILED = 3
_SOME_UNREADABLE = 1
_INCOMPLETE = 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case())
    return tmp_path


def test_what_to_write_must_be_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captured = out(capsys, "report", "run.json", status=USAGE_ERROR)
    for option in ("-o", "--markdown", "--csv"):
        assert option in captured
    assert [path.name for path in folder.iterdir()] == ["run.json"]


def test_all_outputs_are_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for name in ("report.html", "report.md", "report.csv"):
        assert f"written: {name}" in captured.out
        assert "numpy" in (folder / name).read_text(encoding="utf-8")


@pytest.mark.usefixtures("folder")
def test_standard_output_has_nothing_but_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a pipe here; programs that read it would take what else is there for a part of it."""
    reader, writer = os.pipe()
    try:
        assert cli.main(["report", "run.json", "--json", f"/dev/fd/{writer}"]) == 0
        assert capsys.readouterr().out == ""
        assert json.loads(os.read(reader, 2**16))
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("option", ["-o", "--markdown", "--csv"])
@pytest.mark.parametrize("output_path", ["taken", "nowhere/report"])
@pytest.mark.usefixtures("folder")
def test_unwritable_outputs_are_said_first(
    capsys: pytest.CaptureFixture[str], option: str, output_path: str
) -> None:
    """A folder, or a file in none: said before a run is read, and no other output is written."""
    Path("taken").mkdir()
    arguments = ["report", "unread.json", "-o", "other.html", "--csv", "other.csv"]
    captured = out(capsys, *arguments, option, output_path, status=_FAILED)
    assert "cannot write" in captured
    assert Path(output_path).name in captured
    assert "unread.json" not in captured
    assert sorted(path.name for path in Path().iterdir()) == ["run.json", "taken"]
    assert not [*Path("taken").iterdir()]


@pytest.mark.parametrize(("make", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_the_others_are_rendered(
    folder: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Any], message: str
) -> None:
    make(folder / "bad.json")
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "bad.json", "run.json", *arguments]) == _SOME_UNREADABLE
    problem = capsys.readouterr().err
    assert problem.startswith("fwbench: ")
    assert "bad.json" in problem
    assert message in problem
    shown_page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    (section,) = shown_page.all("section", **{"aria-labelledby": "problems"})
    assert "bad.json" in section.text
    assert message in section.text
    assert shown_page.all("section", id="part-gemm-cpu-forward-float32")
    assert escaping.markdown(message) in (folder / "report.md").read_text(encoding="utf-8")
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["run"] for row in csv.DictReader(file)] == ["run.json"]


def test_without_a_run_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each bad file is named, and an earlier report stays as it was, byte for byte."""
    holding("")(folder / "empty.json")
    cut_short(folder / "cut.json")
    earlier = b"earlier\r\n\xff"
    (folder / "report.html").write_bytes(earlier)
    arguments = ["-o", "report.html", "--csv", "report.csv"]
    captured = out(capsys, "report", "empty.json", "cut.json", *arguments, status=USAGE_ERROR)
    assert "empty.json is empty" in captured
    assert "cut.json is not JSON, or is cut off" in captured
    assert (folder / "report.html").read_bytes() == earlier
    assert not (folder / "report.csv").exists()


def test_an_earlier_report_is_replaced(folder: Path) -> None:
    (folder / "report.html").write_text("earlier " * 1_000_000, encoding="utf-8")
    assert cli.main(["report", "run.json", "-o", "report.html"]) == 0
    assert "earlier" not in (folder / "report.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json"]


def test_several_runs_are_in_one_report(folder: Path) -> None:
    write(folder / "other.json", case(), case("dot"))
    assert cli.main(["report", "run.json", "other.json", "-o", "report.html"]) == 0
    result = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert "3 cases of 2 runs" in result.text
    (provenance,) = result.all("section", **{"aria-labelledby": "provenance"})
    assert [node.text for node in provenance.all("h3")] == ["run.json", "other.json"]
    (gemm,) = result.all("section", id="part-gemm-cpu-forward-float32")
    names = [node.text for node in gemm.all("th", scope="row")]
    assert names == ["numpy eager (run.json)", "numpy eager (other.json)"]


def test_a_run_without_a_case_is_a_report() -> None:
    run = run_of(missing=[{"nodeid": "a", "framework": "", "why": "skipped"}])
    result = shown(run)
    assert "0 cases of 1 run" in result.text
    assert "skipped" in result.text
    assert writers.comma_separated([run]).count("\n") == 1


def test_plain_pytest_benchmark_is_shown(tmp_path: Path) -> None:
    run = read(foreign_run(tmp_path / "plain.json"))
    result = shown(run)
    (section,) = result.all("section", id="part-other-benchmarks")
    assert [node.text for node in section.all("th", scope="row")] == ["test_a", "test_b"]
    assert "750 ms" in section.text
    assert "fwbench did not write these" in section.text
    assert [shown_section.title for shown_section in summary.sections([run])] == []
    (provenance,) = result.all("section", **{"aria-labelledby": "provenance"})
    assert "pytest-benchmark" in provenance.text
    assert "not recorded" in provenance.text
    assert "Fake CPU" in provenance.text


def test_markdown_says_what_fwbench_did_not_write(tmp_path: Path) -> None:
    """Who reads only the tables must know it, too."""
    written = writers.markdown([read(foreign_run(tmp_path / "plain.json"))])
    assert "### other benchmarks" in written
    assert "| test_a | 750 ms |" in written
    assert "fwbench did not write these" in written


def test_plain_and_own_records_are_apart() -> None:
    run = run_of(case(), plain("test_c"))
    titles = [section.title for section in sections.details([run])]
    assert titles == ["gemm cpu forward float32", "other benchmarks"]
    assert [*column(part([run], "other benchmarks"), "median")] == ["test_c"]


def _interrupted(path: Path, **session: Any) -> None:
    """A run of which one case of two was measured."""
    lost = {"nodeid": "test_it.py::test_it[dot]", "framework": "torch", "why": NOT_REACHED}
    stopped = {"outcome": {"failed": 0, "interrupted": True}, "planned": 2, "missing": [lost]}
    write(path, case(), **{**stopped, **session})


def test_an_interrupted_run_is_said_to_be_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _interrupted(folder / "run.json")
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", *arguments]) == _INCOMPLETE
    message = "interrupted: 1 of 2 cases measured"
    assert capsys.readouterr().err == f"fwbench: run.json: {message}\n"
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert page.of_class("note")[0].text == f"{message.capitalize()}."
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert f"\n\n- {message.capitalize()}.\n" in written.partition("###")[0]
    assert f"| {escaping.markdown('test_it.py::test_it[dot]')} | torch |" in written
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        measured, lost = csv.DictReader(file)
    assert (measured["outcome"], lost["outcome"]) == ("measured", NOT_REACHED)
    assert (lost["case"], lost["framework"]) == ("test_it.py::test_it[dot]", "torch")
    assert lost["median_s"] == ""


@pytest.mark.parametrize("why", ["setup failed", "call failed"])
def test_a_failed_case_is_not_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], why: str
) -> None:
    failed = {"nodeid": "test_it.py::test_it[dot]", "framework": "torch", "why": why}
    outcome = {"failed": 1, "interrupted": False}
    write(folder / "run.json", case(), outcome=outcome, planned=2, missing=[failed])
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", *arguments]) == _INCOMPLETE
    message = "1 case failed: test_it[dot]"
    assert capsys.readouterr().err == f"fwbench: run.json: {message}\n"
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert page.of_class("note")[0].text == f"{message}."
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert f"\n\n- {escaping.markdown(message)}.\n" in written.partition("###")[0]
    table = written.partition("### Failed")[2]
    assert f"| {escaping.markdown('test_it.py::test_it[dot]')} | torch |" in table
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        measured, missed = csv.DictReader(file)
    assert (measured["outcome"], missed["outcome"], missed["median_s"]) == ("measured", why, "")


def test_a_plain_test_that_failed_has_one_line() -> None:
    """Its function was timed, and returned something else."""
    made = plain("test_c")
    failed = {"nodeid": made["fullname"], "framework": "", "why": "call failed"}
    (line,) = writers.lines([run_of(made, missing=[failed])])
    assert line["outcome"] == "call failed"


@tabled
def test_how_a_session_ended(folder: Path, session: dict[str, Any], message: str) -> None:
    """Whoever stopped it; a test that failed did not end it."""
    _interrupted(folder / "run.json", **session)
    assert read(folder / "run.json").incompleteness == message


def test_a_choice_of_cases_does_not_make_a_run_incomplete(folder: Path) -> None:
    """``-k`` shows less than was measured, and what was measured is still said."""
    _interrupted(folder / "run.json")
    arguments = ["report", "run.json", "-k", "gemm", "--markdown", "report.md"]
    assert cli.main(arguments) == _INCOMPLETE
    assert "1 of 2 cases measured" in Path("report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "took_s", "text", "colour"),
    [
        ([0.021] * 9 + [None], 130.0, "3 % in 2 min", "#1a7f37"),
        ([0.021] * 8 + [0.151] * 2, 20.0, "16 % in 20 s", "#9a6700"),
        ([0.07], 89.0, "7 % in 1 min", "#1a7f37"),
        ([0.021] * 8 + [None] * 2, 600.0, "no change in 10 min", "#9a6700"),
        ([], 600.0, "no change in 10 min", "#9a6700"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_badge_says_what_a_runner_sees(
    changes: list[float | None], took_s: float, text: str, colour: str
) -> None:
    """The change that nine of ten cases would have shown, and how long that took."""
    judgements = [
        Judgement(f"{n}", f"{n}", "", Verdict.UNCHANGED, metric="minimum", visible=change)
        for n, change in enumerate(changes)
    ]
    judgements.append(Judgement("new", "new", "", Verdict.NEW))
    rules = {"took_s": took_s, "confidence": 0.9}
    comparison = Comparison("git:HEAD", "git:HEAD", judgements, rules)
    Path("same.json").write_text(json.dumps(comparison.to_json()), encoding="utf-8")
    assert cli.main(["report", "same.json", "--badge", "badge.svg"]) == 0
    picture = Path("badge.svg").read_text(encoding="utf-8")
    assert f'aria-label="this runner sees {text}"' in picture
    assert colour in picture
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314


def test_a_badge_is_of_a_comparison_in_turns(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gated = Comparison("main", "branch", [], {"confidence": 0.9})
    (folder / "gated.json").write_text(json.dumps(gated.to_json()), encoding="utf-8")
    for given, why in (("run.json", "0 are given"), ("gated.json", "no such time")):
        arguments = ("report", given, "-o", "report.html", "--badge", "badge.svg")
        assert why in out(capsys, *arguments, status=USAGE_ERROR)
    assert not (folder / "report.html").exists()
