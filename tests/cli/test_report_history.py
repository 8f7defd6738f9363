"""``fwbench report --history``: a page of cases over time."""

import csv
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.report import history
from support.gangs import out
from support.histories import change, day, levels, nightly, saved, statistics_of
from support.reports import case, markdown_cells, parsed, rounds_of
from support.tables import tabled

_USAGE_ERROR = 2
_FAILED = 3
_SOME_UNREADABLE = 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a history in ``.benchmarks`` of an upgrade that made a case slower."""
    monkeypatch.chdir(tmp_path)
    nightly(tmp_path / ".benchmarks", levels((12, 0.001), (12, 0.0012)), upgraded=12)
    return tmp_path


def test_a_history_is_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-o", "history.html", "--markdown", "history.md"]
    assert cli.main(["report", "--history", ".benchmarks", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == "written: history.html\nwritten: history.md\n"
    result = parsed((folder / "history.html").read_text(encoding="utf-8"))
    sections = result.of_class("detail")
    assert [node.attributes["id"] for node in sections] == [
        "part-Lasting-shifts",
        "part-history-of-gemm-Fake-CPU-2-threads",
    ]
    assert "numpy 1.0 -> 2.0" in sections[0].text
    assert day(12) in sections[0].text
    (picture,) = result.of_class("chart")
    assert "upgrade 1.0 -> 2.0" in picture.attributes["aria-label"]
    assert len(picture.all("circle")) == 24 + 1
    assert [name for name, number in Counter(result.ids).items() if number > 1] == []
    written = (folder / "history.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (.+)$", written, re.MULTILINE) == [
        "Lasting shifts",
        "history of gemm, Fake CPU, 2 threads",
    ]
    rows = [row for row in written.splitlines() if row.startswith("| gemm-numpy")]
    assert len(rows) == 2
    assert all("1.0 -> 2.0" in row for row in rows)


def test_a_history_stands_before_runs(folder: Path) -> None:
    saved(folder / "run.json", case("dot"))
    arguments = ["-o", "report.html", "--markdown", "report.md", "--csv", "report.csv"]
    assert cli.main(["report", "run.json", "--history", ".benchmarks", *arguments]) == 0
    result = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [node.attributes["id"] for node in result.of_class("detail")] == [
        "part-Lasting-shifts",
        "part-history-of-gemm-Fake-CPU-2-threads",
        "part-dot-cpu-forward-float32",
    ]
    assert "1 case of 1 run" in result.text
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert written.index("### history of gemm") < written.index("### dot cpu")
    with (folder / "report.csv").open(newline="", encoding="utf-8") as file:
        assert [row["workload"] for row in csv.DictReader(file)] == ["dot"]


def test_markdown_tables_of_a_history_are_whole(folder: Path) -> None:
    assert cli.main(["report", "--history", ".benchmarks", "--markdown", "history.md"]) == 0
    blocks = (folder / "history.md").read_text(encoding="utf-8").split("### ")[1:]
    assert len(blocks) == 2
    for block in blocks:
        table = [row for row in block.splitlines() if row.startswith("|")]
        assert len(table) == 3
        assert len({markdown_cells(row) for row in table}) == 1


def test_a_history_of_some_cases(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(folder / ".benchmarks" / "more.json", case("dot"), case("conv"))
    arguments = ["report", "--history", ".benchmarks", "--markdown", "history.md", "-k"]
    assert cli.main([*arguments, "dot"]) == 0
    written = (folder / "history.md").read_text(encoding="utf-8")
    assert "history of dot" in written
    assert "gemm" not in written
    assert "conv" not in written
    (folder / "history.md").unlink()
    capsys.readouterr()
    assert "has 'none of them' in its name" in out(
        capsys, *arguments, "none of them", status=_USAGE_ERROR
    )
    assert not (folder / "history.md").exists()


def test_bad_files_of_a_history_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".benchmarks" / "cut.json").write_text('{"benchmarks": [', encoding="utf-8")
    saved(folder / ".benchmarks" / "newer.json", case(), schema=2, version="7.8")
    (folder / ".benchmarks" / "other.json").write_text('{"tests": []}', encoding="utf-8")
    arguments = ["-o", "history.html", "--markdown", "history.md"]
    assert cli.main(["report", "--history", ".benchmarks", *arguments]) == _SOME_UNREADABLE
    reported = capsys.readouterr().err.splitlines()
    assert len(reported) == 3
    assert all(row.startswith("fwbench: ") for row in reported)
    result = parsed((folder / "history.html").read_text(encoding="utf-8"))
    (section,) = result.all("section", **{"aria-labelledby": "problems"})
    written = (folder / "history.md").read_text(encoding="utf-8")
    for name, message in (
        ("cut.json", "is not JSON, or is cut off"),
        ("newer.json", "newer fwbench (7.8)"),
        ("other.json", "not of pytest-benchmark"),
    ):
        assert [row for row in reported if name in row and message in row]
        assert name in section.text
        assert message in section.text
        assert name in written
    assert len(result.of_class("chart")) == 1
    assert "history of gemm" in written


def test_bad_runs_beside_a_history(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.json").write_text("", encoding="utf-8")
    (folder / ".benchmarks" / "cut.json").write_text("{", encoding="utf-8")
    saved(folder / "run.json", case("dot"))
    arguments = ["report", "--history", ".benchmarks", "-o", "report.html", "bad.json"]
    assert "bad.json is empty" in out(capsys, *arguments, status=_USAGE_ERROR)
    assert not (folder / "report.html").exists()
    assert cli.main([*arguments, "run.json"]) == _SOME_UNREADABLE
    reported = capsys.readouterr().err
    assert "bad.json is empty" in reported
    assert "cut.json is not JSON" in reported
    assert (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("empty", "no run under empty"), ("nowhere", "nowhere is not a directory")],
)
def test_a_history_of_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    (folder / "empty").mkdir()
    (folder / "history.html").write_text("earlier", encoding="utf-8")
    captured = out(capsys, "report", "--history", name, "-o", "history.html", status=_USAGE_ERROR)
    assert message in captured
    assert (folder / "history.html").read_text(encoding="utf-8") == "earlier"


@pytest.mark.parametrize("option", ["-o", "--markdown"])
@pytest.mark.parametrize("output_path", ["taken", "nowhere/history"])
def test_unwritable_outputs_are_said_before_a_history_is_read(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    output_path: str,
) -> None:
    """A folder, or a file in none; thousands of files would be read for nothing."""
    (folder / "taken").mkdir()
    monkeypatch.setattr(history, "collect", lambda *_: pytest.fail("it was read"))
    arguments = ["report", "--history", ".benchmarks"]
    captured = out(capsys, *arguments, option, output_path, status=_FAILED)
    assert "cannot write" in captured
    assert sorted(path.name for path in folder.iterdir()) == [".benchmarks", "taken"]
    assert [*(folder / "taken").iterdir()] == []


def test_what_to_write_must_be_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "say what to write" in out(
        capsys, "report", "--history", ".benchmarks", status=_USAGE_ERROR
    )
    assert "--history FOLDER" in out(capsys, "report", "-o", "report.html", status=_USAGE_ERROR)
    assert [path.name for path in folder.iterdir()] == [".benchmarks"]


def test_why_there_is_no_run_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(folder / "all" / "a.json", case(), schema=2, version="7.8")
    assert "newer fwbench (7.8)" in out(
        capsys, "report", "--history", "all", "-o", "h.html", status=_USAGE_ERROR
    )


def test_a_stored_run_is_not_replaced(folder: Path) -> None:
    """A report among the runs would be taken for one."""
    path = next((folder / ".benchmarks").rglob("*.json"))
    before = path.read_bytes()
    assert cli.main(["report", "--history", ".benchmarks", "-o", str(path)]) == _USAGE_ERROR
    assert path.read_bytes() == before


@tabled
def test_changed_files_are_named(folder: Path, facts: dict[str, Any]) -> None:
    """A file edited by hand is read or named, and others are unaffected."""
    change(saved(folder / ".benchmarks" / "x.json", case()), **facts)
    assert cli.main(["report", "--history", ".benchmarks", "-o", "h.html"]) in (0, _SOME_UNREADABLE)


def test_a_case_without_a_framework(folder: Path) -> None:
    made = case("dot")
    del made["extra_info"]["fwbench"]["framework"]
    saved(folder / ".benchmarks" / "x.json", made)
    assert cli.main(["report", "--history", ".benchmarks", "-o", "h.html"]) in (0, _SOME_UNREADABLE)


@pytest.mark.parametrize(
    ("name", "value"),
    [("q1", None), ("q1", "x"), ("q3", float("nan")), ("rounds", None), ("median", float("inf"))],
)
@pytest.mark.parametrize("option", ["run", "history"])
def test_changed_statistics_are_named(folder: Path, name: str, value: Any, option: str) -> None:
    """Times that are none make a file unreadable, as a run and in a history."""
    made = statistics_of(rounds_of(case("dot")))
    made["stats"][name] = value
    for number in range(2):
        saved(folder / ".benchmarks" / f"x{number}.json", made, at=number)
    saved(folder / "run.json", case())
    what = [".benchmarks/x0.json", "run.json"] if option == "run" else ["--history", ".benchmarks"]
    assert cli.main(["report", *what, "-o", "h.html"]) == _SOME_UNREADABLE


def test_runs_are_added_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever their names are; the page has them at once."""
    for name in ("run.json", "again.json"):
        saved(folder / name, case(), at=30)
    arguments = ["report", "--history", ".benchmarks", "-o", "h.html"]
    added = [*arguments, "--add", "run.json", "--add", "again.json"]
    for _ in range(2):
        assert cli.main(added) == 0
    said = capsys.readouterr().out
    (name,) = re.findall(r"^added: .benchmarks/(.+)$", said, re.MULTILINE)
    assert re.fullmatch(r"2026-01-31T12-00-00-[0-9a-f]{12}\.json", name)
    kept = (folder / ".benchmarks" / name).read_bytes()
    assert kept == (folder / "run.json").read_bytes()
    assert len([*(folder / ".benchmarks").rglob("*.json")]) == 24 + 1
    assert day(30) in (folder / "h.html").read_text(encoding="utf-8")


def test_what_is_no_run_is_not_added(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is a run that is given with it."""
    saved(folder / "run.json", case(), at=30)
    (folder / "bad.json").write_text("{}", encoding="utf-8")
    saved(folder / "empty.json")
    both = ["--add", "run.json", "--add"]
    for name in ("bad.json", "empty.json"):
        arguments = ["report", "--history", "new", *both, name, "-o", "h.html"]
        assert name in out(capsys, *arguments, status=_USAGE_ERROR)
    assert not (folder / "new").exists()
    assert "--history FOLDER" in out(
        capsys, "report", "run.json", "--add", "run.json", "-o", "h.html", status=_USAGE_ERROR
    )
