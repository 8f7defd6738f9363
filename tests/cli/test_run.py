"""``fwbench run``: the suite from wherever fwbench is installed, as a checkout has it."""

import json
import os
import subprocess
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli, suite
from fwbench.cli import run
from fwbench.errors import SuiteError
from fwbench.processes import session
from support import programs
from support.projects import QUICKLY
from support.tables import tabled

ROOT = Path(__file__).parents[2]

_LINALG = "benchmarks/test_linalg.py"
_CASE = f"{_LINALG}::test_linalg[dot-numpy-cpu-eager-forward-float32-1000]"

# What pytest is started with


@tabled
def test_arguments_go_to_pytest(given: Sequence[str], passed: Sequence[str]) -> None:
    assert run.pytest_arguments([*given]) == [*run.DEFAULTS, "--pyargs", *passed]


def test_settings_are_those_of_a_checkout() -> None:
    """Measured with the same options, runs of both compare."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ini = settings["tool"]["pytest"]["ini_options"]
    ours = {option for option in ini["addopts"] if option.startswith("--benchmark")}
    assert {*run.DEFAULTS} == ours | {f"-W{warning}" for warning in ini["filterwarnings"]}


def test_the_help_shows_these_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["run", "--help"])
    assert f"pytest {' '.join(run.DEFAULTS)} --pyargs {suite.NAME} " in capsys.readouterr().out


def test_a_suite_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(suite, "folder", lambda: tmp_path)
    monkeypatch.setattr(session, "become", lambda _: pytest.fail("pytest was started"))
    with pytest.raises(SuiteError, match=f"{tmp_path} has no test_"):
        run.pytest_arguments([])
    assert cli.main(["run"]) == 3


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory outside the repository, in which a virtual environment has the wheel alone."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / ".venv" / "site-packages")
    return folder


@pytest.fixture(scope="module")
def installed(elsewhere: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a module of Python outside the repository, with the wheel before what is installed."""
    return partial(_python, elsewhere, path=elsewhere / ".venv" / "site-packages")


def _python(
    folder: Path, *arguments: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module of Python in a folder, with a folder of packages before what is installed.

    That xdist runs the tests is no business of the session: nothing is timed under xdist.
    """
    inherited = {name: os.environ[name] for name in os.environ if "XDIST" not in name}
    variables = {**inherited, "PYTHONPATH": str(path or "")}
    return programs.run("-P", "-m", *arguments, cwd=folder, env=variables, timeout=300)


@pytest.fixture(scope="module")
def measured(
    elsewhere: Path, installed: Callable[..., subprocess.CompletedProcess[str]]
) -> dict[str, Any]:
    """The record of one operation that ``fwbench run`` has stored."""
    chosen = ("--fw=numpy", "-k", "noop", *QUICKLY)
    done = installed("fwbench", "run", *chosen, "--benchmark-json=run.json")
    assert done.returncode == 0, done.stdout + done.stderr
    stored: dict[str, Any] = json.loads((elsewhere / "run.json").read_text(encoding="utf-8"))
    return stored


def test_the_wheels_suite_is_measured(measured: dict[str, Any]) -> None:
    """By its worker, too, although no file of the suite is in a checkout."""
    names = {entry["fullname"].partition("[")[0] for entry in measured["benchmarks"]}
    assert names == {"benchmarks/test_overhead.py::test_overhead"}
    assert {entry["params"]["framework"] for entry in measured["benchmarks"]} == {"numpy"}


@pytest.mark.usefixtures("measured")
def test_records_lie_where_it_was_started(elsewhere: Path) -> None:
    left = {path.name for path in elsewhere.iterdir()} - {"run.json"}
    assert left <= {".venv", ".fwbench", ".benchmarks", ".pytest_cache"}
    assert len([*elsewhere.glob(".fwbench/journal/*.jsonl")]) == 1


def test_ids_are_those_of_a_checkout(
    measured: dict[str, Any],
    elsewhere: Path,
    installed: Callable[..., subprocess.CompletedProcess[str]],
    suite_cache: Path,
) -> None:
    chosen = ("--fw=numpy", "--fw-family=all", "--collect-only", "-q")
    ids = _ids(installed("pytest", "--pyargs", suite.NAME, *chosen))
    assert len(ids) > 500
    assert {entry["fullname"] for entry in measured["benchmarks"]} <= ids
    kept = ("-o", f"cache_dir={suite_cache}")
    assert _ids(_python(ROOT, "pytest", "benchmarks", *chosen, *kept)) == ids
    assert _ids(_python(elsewhere, "fwbench", "run", *chosen, *kept)) == ids


def _ids(session: subprocess.CompletedProcess[str]) -> set[str]:
    """The node ids that a session has collected."""
    assert session.returncode == 0, session.stdout + session.stderr
    return {line for line in session.stdout.splitlines() if line.startswith("benchmarks/")}


def test_a_file_of_the_wheel_is_named_as_in_a_checkout(
    installed: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """A named file has all its operations, not the representatives alone."""
    done = installed("fwbench", "run", _LINALG, "--fw=numpy", "--collect-only", "-q")
    assert _CASE in done.stdout.splitlines()
    assert "deselected" not in done.stdout
