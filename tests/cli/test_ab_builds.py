"""``fwbench ab`` of builds, end to end: each side in an environment of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from support import wheels
from support.suites import CONFTEST, FEW, INI, commit_all, count_worktrees, run_git

_TESTS = """
import quick

def test_work(benchmark):
    benchmark(quick.work)
"""

_CASES = """
import pytest, quick
from fwbench import Operation

operation = Operation(
    name="summed", inputs=lambda size, rng: (rng.standard_normal(size),),
    reference=lambda x: x + x, sizes=(50,),
)

@operation.implement("numpy")
def made(np):
    def run(x):
        quick.work()
        return x + x
    return run

@pytest.mark.fwbench(operation)
def test_case(case):
    case.measure()
"""

Ab = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the project ``tiny``, whose tests are of the package ``quick``."""
    made = tmp_path / "project"
    made.mkdir()
    run_git(made, "init", "--quiet")
    files = wheels.project(pytest__ini=INI, conftest__py=CONFTEST, test_it__py=_TESTS)
    commit_all(made, **files, __gitignore=".fwbench\n__pycache__\n*.json\n*.md\n")
    wheels.serve(tmp_path / "index", monkeypatch)
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def ab(capfd: pytest.CaptureFixture[str]) -> Ab:
    def run(*arguments: str) -> tuple[int, str, str]:
        outputs = ("--json", "figures.json", "--markdown", "verdicts.md")
        status = cli.main(["ab", *arguments, *FEW, *outputs])
        captured = capfd.readouterr()
        return status, captured.out, captured.err

    return run


def _figures(root: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((root / "figures.json").read_text(encoding="utf-8"))
    return result


def test_two_versions_of_a_package(root: Path, ab: Ab) -> None:
    """A plain test, which takes turns; the versions are above the verdicts. Then cases."""
    status, out, err = ab("quick==1.0", "quick==2.0", "test_it.py", "--with", "needed==2.0")
    assert status == 1, out + err
    lines = out.splitlines()
    assert lines[0] == "quick: 1.0 -> 2.0"
    assert lines[1].startswith("verdict ")
    row = next(line.split() for line in lines if "test_it.py::test_work  m" in line)
    assert row[0] == "regressed"
    assert "both sides run the tests of this folder" in lines
    assert "took no turns" not in out
    assert err.count(": being built (") == 2
    figures = _figures(root)
    assert figures["versions"] == [{"name": "quick", "base": "1.0", "contender": "2.0"}]
    assert 2 < figures["judgements"][0]["ratio"] < 4
    sides = figures["rules"]["sides"]
    assert sides["base"]["environment"] != sides["contender"]["environment"]
    markdown = (root / "verdicts.md").read_text(encoding="utf-8")
    assert markdown.index("- quick: 1.0 -> 2.0\n\n| verdict") > 0

    (root / "test_it.py").write_text(_CASES, encoding="utf-8")
    status, out, err = ab("quick==1.0", "quick==2.0", "test_it.py", "--with", "needed==2.0")
    assert status == 1, out + err
    row = next(line.split() for line in out.splitlines() if "-float32-50  m" in line)
    assert row[:2] == ["regressed", "summed-numpy-cpu-eager-forward-float32-50"]
    assert "took no turns" not in out
    assert err.count(": kept from before") == 2
    assert "being built" not in err


def test_two_revisions_with_what_they_need(root: Path, ab: Ab) -> None:
    """Only a build sees that a pin has changed, which makes the same test slower."""
    commit_all(root, **wheels.project(needs=["quick==1.0"]))
    commit_all(root, **wheels.project(needs=["quick==2.0"]))
    status, out, err = ab("git:HEAD~1", "git:HEAD", "test_it.py", "--build")
    assert status == 1, out + err
    assert out.startswith("quick: 1.0 -> 2.0\n")
    assert "both sides run the tests of git:HEAD" in out
    assert _figures(root)["rules"]["sides"]["base"]["tests"] == "git:HEAD"
    assert count_worktrees(root) == 1
    assert run_git(root, "status", "--porcelain") == ""


def test_a_suite_that_needs_more(root: Path, ab: Ab) -> None:
    """The side, the last output, and how to add it."""
    (root / "test_it.py").write_text("import needed\n" + _TESTS, encoding="utf-8")
    status, out, err = ab("quick==1.0", "quick==2.0", "test_it.py")
    assert (status, out) == (3, "")
    assert "a launch of quick==1.0 broke down (pytest's exit status is 2)" in err
    assert "is added to both sides by --with; its last output:" in err
    assert "No module named 'needed'" in err


def test_builds_have_to_be_resumed_as_builds(
    root: Path, ab: Ab, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(root, **wheels.project(needs=["quick==1.0"]))
    with monkeypatch.context() as patch:
        patch.setattr("fwbench.cli.ab.conclude", _interrupted)
        assert ab("git:HEAD", ".", "test_it.py", "--build")[0] == 130
    status, _, err = ab("git:HEAD", ".", "test_it.py", "--build", "--with", "needed", "--resume")
    assert status == 2
    assert "  base.environment: " in err
    status, _, err = ab("git:HEAD", ".", "test_it.py", "--resume")
    assert status == 2
    assert "  base.environment: " in err
    assert " -> None" in err
    status, out, err = ab("git:HEAD", ".", "test_it.py", "--build", "--resume")
    assert status in (0, 1, 10), err
    assert "resumed: " in out


def _interrupted(*_: object) -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("numpy", "numpy", "--with", "needed"), "--with is for environments that are built"),
        (("git:HEAD", ".", "--pin", "needed"), "name a requirement (PACKAGE==VERSION), or have"),
        (("git:HEAD", ".", "--python", "3.12"), "--python is for environments that are built"),
        (("git:HEAD", ".", "--tests", "base"), "--tests base: git:HEAD brings no tests for both"),
        (("quick==1.0", "quick==9"), "quick==9: no versions satisfy all"),
    ],
)
def test_builds_are_refused(ab: Ab, arguments: tuple[str, ...], message: str) -> None:
    status, out, err = ab(*arguments)
    assert status == 2
    assert message in err
    assert out == ""
    assert "pair 1: " not in err
