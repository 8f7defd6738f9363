"""``fwbench report`` of cases that are chosen, and to files that are not the runs."""

import csv
from pathlib import Path

import pytest

from fwbench import cli
from support.gangs import out
from support.launched_runs import plain, write
from support.reports import case, parsed, training
from support.section_parts import as_run, compared, keep
from support.tables import tabled

_USAGE_ERROR = 2
_SOME_UNREADABLE = 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case(), case("dot", "torch"))
    return tmp_path


def test_cases_are_chosen_by_their_names(folder: Path) -> None:
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", "-k", "gemm", *arguments]) == 0
    result = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [node.attributes["id"] for node in result.of_class("detail")] == [
        "part-gemm-cpu-forward-float32"
    ]
    assert "1 case of 1 run" in result.text
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert "gemm" in written
    assert "dot" not in written
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["workload"] for row in csv.DictReader(file)] == ["gemm"]


@pytest.mark.parametrize("name", ["torch", "dot-torch-eager", "float32-100"])
def test_any_part_of_a_name_chooses(folder: Path, name: str) -> None:
    assert cli.main(["report", "run.json", "-k", name, "--csv", "report.csv"]) == 0
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert {row["framework"] for row in csv.DictReader(file)} >= {"torch"}


def test_trainings_and_plain_benchmarks_are_chosen(folder: Path) -> None:
    write(folder / "run.json", case(), training(), plain("test_lenet"), plain("test_other"))
    assert cli.main(["report", "run.json", "-k", "lenet", "--csv", "report.csv"]) == 0
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        result = [row["case"] for row in csv.DictReader(file)]
    assert result == ["lenet-torch-eager-cpu-train-float32-200", "test_lenet"]


def test_a_name_that_nothing_has_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "other.json", case("relu"))
    arguments = ["report", "run.json", "other.json", "-k", "relu", "-o", "report.html"]
    assert cli.main(arguments) == _SOME_UNREADABLE
    message = capsys.readouterr().err
    assert "run.json: no case has 'relu' in its name" in message
    assert "other.json" not in message
    result = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert result.all("section", id="part-relu-cpu-forward-float32")
    assert "no case has 'relu'" in result.text


def test_verdicts_are_chosen_by_the_names_of_cases(folder: Path) -> None:
    """Only cases with this in their names: those that were judged, too."""
    keep(folder / "run.json", as_run(compared().to_json()))
    keep(folder / "verdicts.json", compared().to_json())
    for name in ("run.json", "verdicts.json"):
        cli.main(["report", name, "-k", "slow", "--markdown", "report.md"])
        written = (folder / "report.md").read_text(encoding="utf-8")
        assert "| regressed | slow |" in written
        assert "| improved | fast |" not in written


@tabled
def test_two_outputs_are_not_one_file(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    (folder / "taken").mkdir()
    (folder / "link").symlink_to("x")
    captured = out(capsys, "report", "run.json", *arguments, status=_USAGE_ERROR)
    assert "two reports would be written to one file" in captured
    assert not (folder / "x").exists()


@pytest.mark.parametrize("option", ["-o", "--markdown", "--csv"])
def test_a_report_does_not_replace_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    before = (folder / "run.json").read_bytes()
    assert "would replace a run" in out(
        capsys, "report", "run.json", option, "./run.json", status=_USAGE_ERROR
    )
    assert (folder / "run.json").read_bytes() == before


@pytest.mark.parametrize("option", ["-o", "--markdown", "--csv", "--png"])
def test_what_to_show_must_be_said(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    captured = out(capsys, "report", option, "x", status=_USAGE_ERROR)
    assert "--benchmark-json" in captured
    assert "--history" in captured
    assert not (folder / "x").exists()


def test_a_page_is_not_written_under_the_name_of_another_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    captured = out(capsys, "report", "run.json", "-o", "run.md", status=_USAGE_ERROR)
    assert "-o writes a page in HTML" in captured
    assert "give --markdown run.md" in captured
