"""``fwbench since``, end to end, with releases in a folder."""

import json
from pathlib import Path

import pytest

from fwbench import cli
from fwbench.records.session_facts import StoredRow
from fwbench.turns import referee
from support import wheels
from support.schemas import load_valid
from support.suites import commit_all, run_git
from support.tables import tabled

_INI = "[pytest]\naddopts = --benchmark-max-time=0.05 -p no:cacheprovider\n"

_TESTS = """
from {package} import work

def test_work(benchmark):
    benchmark(work)
"""

#: Rows of revisions without a step, with what is said of them.
_NO_ROWS = {
    "git:HEAD..git:HEAD~1": "is in the wrong order: HEAD~1 is an ancestor of HEAD; use "
    "git:HEAD~1..git:HEAD",
    "git:HEAD..git:HEAD": "is one revision, and a row takes two: name an ancestor first",
}

_LOCKED = """
import fcntl
from mine import work

def test_work(benchmark):
    with open("{lock}", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        benchmark(work)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a plain test of a package whose second release does three times the work."""
    root, index = tmp_path / "project", tmp_path / "index"
    root.mkdir()
    (root / "pytest.ini").write_text(_INI, encoding="utf-8")
    (root / "test_it.py").write_text(_TESTS.format(package="quick"), encoding="utf-8")
    wheels.serve(index, monkeypatch)
    page = tmp_path / "simple" / "quick"
    page.mkdir(parents=True)
    links = [f'<a href="{file.as_uri()}">{file.name}</a>' for file in index.glob("quick-*.whl")]
    (page / "index.html").write_text("\n".join(links), encoding="utf-8")
    # uv takes the same from the folder.
    monkeypatch.setenv("PIP_INDEX_URL", page.parent.as_uri())
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(root)
    return root


def test_the_release_that_is_slower_is_named(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    outputs = ("--json", "row.json", "--markdown", "row.md")
    assert cli.main(["since", "quick", "--budget", "2min", "test_it.py", *outputs]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("test_it.py::test_work: slower since 2.0 (+"), out + err
    assert "environment of 2.0: built in " in err
    assert "launch 2: 2 versions, 1 case open, " in err
    row = load_valid("row", project / "row.json")
    (change,) = row["cases"]["test_it.py::test_work"]["changes"]
    assert (change["after"], change["since"]) == ("1.0", "2.0")
    assert 2.5 < change["ratio"] < 3.5
    assert "slower since 2.0" in (project / "row.md").read_text(encoding="utf-8")


def test_another_call_measures_only_what_is_new(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the launches of the one before, which the time ended; then a report of all of it."""
    arguments = ["since", "quick", "test_it.py", "--json", "row.json"]
    assert cli.main([*arguments, "--budget", "1s"]) == 0
    assert "test_it.py::test_work: cannot tell: 1.0 to 2.0" in capfd.readouterr().out
    assert cli.main([*arguments, "--resume"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("test_it.py::test_work: slower since 2.0 (+"), out + err
    assert "; 1 launch of earlier calls" in out
    assert "launch 1: " not in err
    assert cli.main([*arguments, "--resume"]) == 0
    out, err = capfd.readouterr()
    assert ": 0 launches, 0 sessions; " in out
    assert "launch " not in err
    assert cli.main(["report", "row.json", "-o", "row.html", "--markdown", "row2.md"]) == 0
    assert "quick by version" in (project / "row.html").read_text(encoding="utf-8")
    assert "slower since 2.0" in (project / "row2.md").read_text(encoding="utf-8")
    capfd.readouterr()
    (project / "test_it.py").write_text(_TESTS.format(package="quick") + "\n", encoding="utf-8")
    assert cli.main([*arguments, "--resume"]) == 2
    assert "no row of versions is like this one" in " ".join(capfd.readouterr().err.split())


def test_a_change_is_explained(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By the functions of both versions, in sessions of their own."""
    arguments = ["since", "quick", "test_it.py", "--explain", "--json", "row.json"]
    assert cli.main([*arguments, "--markdown", "row.md"]) == 0
    out, err = capfd.readouterr()
    assert "test_it.py::test_work, 1.0 to 2.0: " in out, out + err
    assert "  functions: sum() (built-in): " in out, out + err
    row = StoredRow.checked(load_valid("row", project / "row.json"))
    (explained,) = row.explanations or []
    assert explained.verdict == "regressed"
    assert "### Why it changed" in (project / "row.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("project")
def test_a_row_is_explained_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    """With its launches, which a call without an explanation has made."""
    arguments = ["since", "quick", "test_it.py"]
    assert cli.main(arguments) == 0
    first = capfd.readouterr().out.splitlines()[0]
    assert cli.main([*arguments, "--resume", "--explain"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith(first), out + err
    assert ": 0 launches, 0 sessions; " in out
    assert "1.0 and 2.0: launched once more, to be explained" in err
    assert "  functions: sum() (built-in): " in out, out + err


def test_launches_that_cannot_be_read(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["since", "quick", "test_it.py"]
    assert cli.main([*arguments, "--budget", "1s"]) == 0
    (file,) = project.glob(".fwbench/since/*/launch-0001.json")
    launch = json.loads(file.read_text(encoding="utf-8"))
    launch["logs"]["test_it.py::test_work"]["2.0"] = ["fast"]
    file.write_text(json.dumps(launch), encoding="utf-8")
    capfd.readouterr()
    assert cli.main([*arguments, "--resume"]) == 2
    err = " ".join(capfd.readouterr().err.split())
    assert "launch-0001.json is not a launch of fwbench since; measure the row again" in err


def test_the_revision_that_is_slower_is_named(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the environment that runs this, each with its own tests."""
    run_git(project, "init", "--quiet")
    tests = _TESTS.format(package="mine")
    commit_all(project, mine__py=wheels.work(2000), test_it__py=tests)
    slower = commit_all(project, mine__py=wheels.work(6000))
    assert cli.main(["since", "git:HEAD~1..git:HEAD", "--budget", "2min", "test_it.py"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith(f"test_it.py::test_work: slower since {slower[:9]} (+"), out + err


def test_a_test_that_holds_a_lock_does_not_stop_the_row(
    project: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another version waits for the lock, and this one for its turn."""
    monkeypatch.setattr(referee, "_STALLED_S", 3.0)
    run_git(project, "init", "--quiet")
    tests = _LOCKED.format(lock=tmp_path / "lock")
    for number in (2000, 2001):
        commit_all(project, mine__py=wheels.work(number), test_it__py=tests)
    assert cli.main(["since", "git:HEAD~1..git:HEAD", "--budget", "1s", "test_it.py"]) == 0
    out, err = capfd.readouterr()
    assert "test_it.py::test_work: cannot tell: " in out, out + err
    assert "test_it.py::test_work cannot take turns: a side computed nothing for" in err


@pytest.mark.parametrize("row", _NO_ROWS)
def test_revisions_that_make_no_row(
    project: Path, capfd: pytest.CaptureFixture[str], row: str
) -> None:
    run_git(project, "init", "--quiet")
    for number in (1, 2):
        commit_all(project, mine__py=wheels.work(number))
    assert cli.main(["since", row, "test_it.py"]) == 2
    err = " ".join(capfd.readouterr().err.split())
    assert f"{row} {_NO_ROWS[row]}" in err


@pytest.mark.usefixtures("project")
@tabled
def test_rows_that_cannot_be_measured(
    capfd: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    """Each says what was found, and what to do."""
    assert cli.main(["since", *arguments, "test_it.py"]) == status
    err = " ".join(capfd.readouterr().err.split())
    assert message in err, err
