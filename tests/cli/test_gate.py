"""``fwbench gate`` judges stored runs, and ``fwbench baseline`` says which one is compared with."""

import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from fwbench import cli
from support.gangs import out
from support.launched_runs import case_id, entry, plain, times, write
from support.schemas import load_valid
from support.tables import tabled
from support.terminals import Terminal

# Fwbench gate


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a baseline, one run that is slower, and one that is not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    write(tmp_path / "base.json", entry(), entry("dot"))
    for i, base_s in enumerate(times(1.0, 4)):
        write(tmp_path / "base" / f"{i}.json", entry(values_s=[base_s] * 8), entry("dot"))
    write(tmp_path / "same.json", entry(), entry("dot"))
    write(tmp_path / "slower.json", entry(values_s=times(2.0, 8)), entry("dot"))
    nodeid = f"test_it.py::test_it[{case_id('dot')}]"
    write(
        tmp_path / "missing.json",
        entry(),
        missing=[{"nodeid": nodeid, "framework": "numpy", "why": "deselected"}],
    )
    write(tmp_path / "contended.json", entry(contended=True), entry("dot"))
    return tmp_path


@pytest.mark.usefixtures("folder")
@tabled
def test_gate_exits_with_its_verdict(
    capsys: pytest.CaptureFixture[str], contender: str, options: tuple[str, ...], status: int
) -> None:
    try:
        result = cli.main(["gate", "base", contender, *options])
    except SystemExit as refused:  # by argparse
        result = int(str(refused.code))
    assert result == status
    captured = capsys.readouterr()
    assert (captured.out == "") == (status == _USAGE_ERROR)
    assert (captured.err == "") == (status != _USAGE_ERROR)


_USAGE_ERROR = 2


@pytest.mark.parametrize("columns", [40, 80])
def test_the_table_fits_the_terminal(folder: Path, columns: int) -> None:
    """In a file a case has one line, however long that is."""
    command = [sys.executable, "-m", "fwbench", "gate", "base", "slower.json"]
    terminal = Terminal(columns=columns)
    ascii_alone = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "NO_COLOR": "1"}
    assert terminal.run(command, folder, ascii_alone) == 1
    lines = terminal.written.splitlines()
    assert max(map(len, lines)) <= columns
    written = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    ).stdout
    assert terminal.written.split()[-8:] == written.split()[-8:]
    assert max(map(len, written.splitlines())) > columns


def test_gate_writes_what_it_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--markdown", "verdicts.md", "--json", "figures.json"]
    assert cli.main(["gate", "base", "slower.json", *arguments]) == 1
    table = capsys.readouterr().out
    markdown = (folder / "verdicts.md").read_text(encoding="utf-8")
    figures = load_valid("comparison", folder / "figures.json")
    headline = "slower.json against base: 1 regressed, 1 unchanged"
    assert headline in table
    assert headline in markdown
    assert figures["verdicts"] == {"regressed": 1, "unchanged": 1}
    assert (figures["base"], figures["contender"]) == ("base", "slower.json")
    first = figures["judgements"][0]
    assert first["name"] == case_id()
    assert first["verdict"] == "regressed"
    assert first["base"] == list(times(1.0, 4))
    assert first["contender"] == [median(times(2.0, 8))]
    assert first["low"] <= first["ratio"] <= first["high"]
    note = "4 sessions against 1 session: a slow-down by "
    assert any(line.startswith(note) for line in figures["notes"])
    assert figures["means"]["numpy"] == pytest.approx((first["ratio"]) ** 0.5, rel=1e-2)


def test_gate_refuses_what_it_cannot_write(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--json", "figures.json", "--markdown", "nowhere/verdicts.md"]
    status = cli.main(["gate", "base.json", "slower.json", *arguments])
    assert status not in (0, 1, 10, 11)
    captured = capsys.readouterr()
    assert "nowhere" in captured.err
    assert captured.out == ""
    assert not (folder / "figures.json").exists()


@pytest.mark.parametrize("option", ["--json", "--markdown"])
@pytest.mark.parametrize("path", ["base.json", "slower.json", "../{}/slower.json"])
def test_gate_does_not_replace_a_run(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, path: str
) -> None:
    before = {name: (folder / name).read_bytes() for name in ("base.json", "slower.json")}
    arguments = ["gate", "base.json", "slower.json", option, path.format(folder.name)]
    assert "would replace a run" in out(capsys, *arguments, status=_USAGE_ERROR)
    assert {name: (folder / name).read_bytes() for name in before} == before


def test_gate_does_not_write_among_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next comparison would take it for one."""
    write(folder / "runs" / "1.json", entry())
    write(folder / "runs" / "2.json", entry())
    assert "be among runs" in out(
        capsys, "gate", "runs", "slower.json", "--json", "runs/figures.json", status=_USAGE_ERROR
    )
    arguments = ["gate", "runs", "same.json", "--markdown", "runs/verdicts.md"]
    assert cli.main([*arguments, "--fail-on", "regressed"]) == 0


def test_gate_takes_the_baseline_that_was_set(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "fwbench baseline set FILE" in out(capsys, "gate", "slower.json", status=_USAGE_ERROR)
    assert cli.main(["baseline", "set", "base"]) == 0
    shutil.rmtree(folder / "base")
    assert cli.main(["gate", "slower.json"]) == 1
    assert cli.main(["gate", "same.json"]) == 0


def test_a_run_that_failed_does_not_become_the_baseline(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out(capsys, "baseline", "set", "base")
    failed = {"outcome": {"failed": 1, "interrupted": False}}
    write(folder / "unfit.json", entry(values_s=times(2.0, 8)), entry("dot"), **failed)
    for files in (["unfit.json"], ["base.json", "unfit.json"]):
        error = out(capsys, "baseline", "set", *files, status=_USAGE_ERROR)
        assert "failed" in error
        assert "unfit.json" in error
    kept = sorted(path.name for path in (folder / ".fwbench" / "baseline").iterdir())
    assert kept == [f"{i}.json" for i in range(4)]
    assert cli.main(["gate", "slower.json"]) == 1


def test_an_empty_run_does_not_become_the_baseline(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against it nothing could ever regress."""
    write(folder / "empty.json")
    assert "no benchmark" in out(capsys, "baseline", "set", "empty.json", status=_USAGE_ERROR)
    assert not (folder / ".fwbench" / "baseline").exists()


@pytest.mark.parametrize("number", [1, 2], ids=["one session", "contended"])
def test_a_run_that_judges_nothing_does_not_become_the_baseline(
    folder: Path, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Against it no case could ever regress; unless that is what is wanted."""
    for i in range(number):
        write(folder / "unfit" / f"{i}.json", entry(contended=number > 1))
    error = out(capsys, "baseline", "set", "unfit", status=_USAGE_ERROR)
    assert "not one of 1 case could be judged" in error
    assert "--anyway" in error
    assert not (folder / ".fwbench" / "baseline").exists()
    assert cli.main(["baseline", "set", "--anyway", "unfit"]) == 0
    assert cli.main(["gate", "slower.json"]) == _INCONCLUSIVE
    write(folder / "base" / "unfit.json", entry("other"))
    assert cli.main(["baseline", "set", "base"]) == 0


_INCONCLUSIVE = 10


def test_one_session_informs_and_decides_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice the time is shown, and is not called regressed: two sessions differ, too."""
    assert (folder / "base.json").exists()
    assert cli.main(["gate", "base.json", "slower.json"]) == _INCONCLUSIVE
    shown = capsys.readouterr().out
    assert "nothing could be judged" in shown
    assert "+99.4%" in shown
    assert "the base has one session" in shown
    assert "1 session against 1 session, for information only" in shown
    assert "(fwbench ab)" in shown
    assert cli.main(["gate", "base.json", "slower.json", "--fail-on", "regressed"]) == 0


def test_plain_benchmarks_are_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A session is a process, whoever wrote the test."""
    for i, base_s in enumerate(times(1.0, 4)):
        write(folder / "plain" / f"{i}.json", plain(min_s=base_s))
    write(folder / "slow.json", plain(min_s=2.0))
    assert cli.main(["gate", "plain", "slow.json"]) == 1
    assert "regressed  test_it.py::test_plain" in capsys.readouterr().out


def test_a_baseline_of_several_sessions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "other.json", entry(values_s=times(1.1, 8)), entry("dot"))
    assert cli.main(["baseline", "set", "--anyway", "slower.json"]) == 0
    assert cli.main(["baseline", "set", "base.json", "other.json"]) == 0
    kept = sorted(path.name for path in (folder / ".fwbench" / "baseline").iterdir())
    assert kept == ["base.json", "other.json"]
    capsys.readouterr()
    reported = out(capsys, "baseline", "show")
    assert f"{case_id()}: 2 sessions" in reported
    assert "2 cases" in reported


def test_two_sessions_of_one_name_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of them would be lost."""
    write(folder / "else" / "base.json", entry())
    assert "one name" in out(
        capsys, "baseline", "set", "base.json", "else/base.json", status=_USAGE_ERROR
    )
    write(folder / "else" / "base.txt", entry())
    assert cli.main(["baseline", "set", "base.json", "else/base.txt"]) == _USAGE_ERROR
    assert not (folder / ".fwbench" / "baseline").exists()


def test_a_folder_of_sessions_becomes_the_baseline(folder: Path) -> None:
    write(folder / "runs" / "1.json", entry())
    write(folder / "runs" / "2.json", entry())
    write(folder / "runs" / "3.json", entry())
    assert cli.main(["baseline", "set", "runs"]) == 0
    assert cli.main(["gate", "same.json"]) == 0


def test_no_baseline_is_shown_as_none(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert "fwbench baseline set" in out(capsys, "baseline", "show", status=_USAGE_ERROR)
    assert not (folder / ".fwbench").exists()
