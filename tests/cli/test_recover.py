"""``fwbench recover`` writes what was measured of a session that was killed."""

import json
from pathlib import Path

import pytest

from fwbench import cli
from fwbench.records.journal import Journal, finish, journal_folder
from support.fakes import entry
from support.gangs import out
from support.tables import tabled


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def journal(project: Path, name: str, *entries: str) -> Path:
    """A journal of a session in this project, with entries of these names."""
    made = Journal(journal_folder(project), name)
    for line in ({"fwbench_journal": 1, "version": "5"}, *map(entry, entries)):
        made.append(line)
    made.close()
    return made.path


def test_recover_writes_the_latest_journal(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal(project, "20300101T000000-9.jsonl", "old")
    journal(project, "20300102T000000-1.jsonl", "new", "newer")
    # Of a session that was killed before it began.
    (project / ".fwbench" / "journal" / "20300103T000000-1.jsonl").touch()
    expected_text = out(capsys, "recover", "--output", "run.json")
    latest = Path(".fwbench") / "journal" / "20300102T000000-1.jsonl"
    assert expected_text == f"2 records of {latest} written to run.json\n"
    assert json.loads((project / "run.json").read_text(encoding="utf-8")) == {
        "version": "5",
        "benchmarks": [entry("new"), entry("newer")],
    }


def test_the_recovered_session_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Journal(journal_folder(project), "20300101T000000-9.jsonl")
    facts = {"arguments": ["-k", "a b\u202e"]}
    head = {"fwbench_journal": 1, "datetime": "2030-01-01T00:00:00.5+00:00", "fwbench": facts}
    for line in (head, entry("first")):
        made.append(line)
    made.close()
    assert out(capsys, "recover", "-o", "run.json").splitlines()[1:] == [
        "the session began 2030-01-01 00:00:00 UTC: pytest -k 'a b\\u202e'"
    ]


def test_recover_writes_the_journal_that_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = journal(project, "20300101T000000-9.jsonl", "old")
    journal(project, "20300102T000000-1.jsonl", "new")
    (project / "run.json").write_text("earlier", encoding="utf-8")
    out(capsys, "recover", str(old), "-o", "run.json")
    result = json.loads((project / "run.json").read_text(encoding="utf-8"))
    assert result["benchmarks"] == [entry("old")]


def test_what_is_damaged_is_left_out_and_told(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest is written, and the journal may be deleted one day."""
    path = journal(project, "20300101T000000-9.jsonl", "first")
    with path.open("a", encoding="utf-8") as file:
        file.write("garbage\n")
    assert cli.main(["recover", "-o", "run.json"]) == 0
    assert capsys.readouterr().err == (
        f"fwbench: left out: {path.relative_to(project)}: line 3: is not a record\n"
    )
    assert len(json.loads((project / "run.json").read_text(encoding="utf-8"))["benchmarks"]) == 1
    for number in range(10):
        journal(project, f"203002{number:02}T000000-9.jsonl", "later")
        finish(project / ".fwbench" / "journal" / f"203002{number:02}T000000-9.jsonl")
    journal(project, "20300301T000000-9.jsonl", "last")
    assert not path.exists()


def test_the_journal_of_a_running_session_is_left_as_it_is(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Journal(journal_folder(project), "20300101T000000-9.jsonl")
    for line in ({"fwbench_journal": 1, "version": "5"}, entry("first")):
        running.append(line)
    before = running.path.read_bytes()
    assert "1 record of " in out(capsys, "recover", "-o", "run.json")
    assert running.path.read_bytes() == before
    running.close()


def test_the_journal_of_the_project_is_found_from_below(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    journal(project, "20300101T000000-9.jsonl", "first")
    (project / "tests").mkdir()
    monkeypatch.chdir(project / "tests")
    assert "1 record of " in out(capsys, "recover", "-o", "run.json")


def test_a_journal_is_not_replaced(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = journal(project, "20300101T000000-9.jsonl", "first")
    before = path.read_bytes()
    expected_text = out(capsys, "recover", str(path), "-o", str(path), status=2)
    assert "is the journal, and would be lost" in expected_text
    assert path.read_bytes() == before


@tabled
def test_what_cannot_be_recovered(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
    status: int,
) -> None:
    (project / "foreign.json").write_text('{"benchmarks": []}\n', encoding="utf-8")
    good = f'{{"fwbench_journal": 1}}\n{json.dumps(entry("good"))}\n'
    (project / "good.jsonl").write_text(good, encoding="utf-8")
    expected_text = out(capsys, "recover", *arguments, status=status)
    assert expected_text.startswith(f"fwbench: error: {message}")
    assert not (project / "run.json").exists()
