"""A second interpreter is measured beside this one, and what is wrong with one stops no other."""

import json
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fwbench.version import __version__
from fwbench.workers.environments import Environment, complete
from support.projects import Project, measuring
from support.venvs import change_fwbench, make, name_framework

_BROKEN = "raise OSError('libbroken.so: cannot open shared object file')"


def _environment(folder: Path, name: str, change: Callable[[Path], object]) -> None:
    """A complete environment; ``change`` is given the folder of its packages."""
    change(make(folder / name))
    held = {"numpy": np.__version__}
    requirements = ("numpy",)
    complete(
        Environment(name, folder / name, requirements, platform.python_version(), "link", held)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where environments are: one that works, and others that have aged."""
    made = tmp_path_factory.mktemp("envs")
    _environment(made, "second", lambda packages: None)
    _environment(made, "aged", lambda packages: change_fwbench(packages, "0.0.1"))
    _environment(made, "third", lambda packages: name_framework(packages, "frail", _BROKEN))
    return made


@pytest.fixture
def beside(cases: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a few cases, and the environments."""
    monkeypatch.setenv("FWBENCH_ENVS", str(folder))
    return cases


_CASES_OF = ("double", "twice")
_SIZES = (4, 8)


def _ids(framework: str) -> list[str]:
    return [
        f"{name}-{framework}-cpu-eager-forward-float32-{size}"
        for name in _CASES_OF
        for size in _SIZES
    ]


def test_two_environments_are_measured_side_by_side(beside: Project) -> None:
    """One session, one table for each case: ids, records and report tell the two apart.

    What is implemented for NumPy is for NumPy wherever it is installed.
    """
    result, records = beside.measure("-v", "--junitxml=junit.xml", fw="numpy,numpy@second")
    assert result.ret == pytest.ExitCode.OK, str(result.stderr)
    result.assert_outcomes(passed=2 * 4 + 1)
    assert sorted(records) == sorted(_ids("numpy") + _ids("numpy@second"))
    for framework in ("numpy", "numpy@second"):
        for name in _ids(framework):
            entry = records[name]
            assert f"test_it[{name}]" in beside.outcomes()
            assert entry["params"]["framework"] == framework
            assert entry["extra_info"]["fwbench"]["framework"] == framework
            assert entry["extra_info"]["fwbench"]["framework_version"] == np.__version__
            assert entry["group"] == records[name.replace(framework, "numpy")]["group"]
    assert len({entry["group"] for entry in records.values()}) == 4
    output = str(result.stdout)
    assert output.count(": 2 tests ") == 4, output
    result.stdout.fnmatch_lines(
        [f"  numpy {np.__version__}: cpu (*", f"  numpy@second {np.__version__}: cpu (*"]
    )
    assert "numpy@second" in output[output.index("operations, forward: ") :]


def test_groups_of_a_users_own(beside: Project) -> None:
    """The parameter, by which pytest-benchmark groups and pytest chooses, is the whole name."""
    result = beside.run(
        "--benchmark-group-by=param:framework", "-k", "double", fw="numpy,numpy@second"
    )
    result.stdout.fnmatch_lines(["*framework=numpy'*: 2 tests*", "*framework=numpy@second'*"])
    beside.run("-k", "second", fw="numpy,numpy@second").assert_outcomes(passed=4, deselected=5)


_NOTING = """
import sys
import pytest
from helper import note
from declared import double

@pytest.mark.fwbench(double, sizes=(4,))
def test_it(case):
    note(case.cell.framework, sys.prefix, *sys.path)
    case.measure()

def test_ordinary():
    note("none", sys.prefix)
"""


def test_each_is_measured_by_its_own_interpreter(beside: Project, folder: Path) -> None:
    """Neither has packages of the other, and both have the modules of the project."""
    beside.write("pytest.ini", "[pytest]\npythonpath = lib\n")
    beside.write(
        "lib/helper.py",
        """
        import json

        def note(*words):
            with open("notes", "a") as notes:
                print(json.dumps(words), file=notes)
        """,
    )
    beside.write("test_it.py", _NOTING)
    result = beside.run("--junitxml=junit.xml", fw="numpy,numpy@second")
    result.assert_outcomes(passed=3)
    words = [json.loads(line) for line in beside.lines("notes")]
    results = {name: (prefix, path) for name, prefix, *path in words}
    second = str(folder / "second")
    assert results["none"][0] == results["numpy"][0] == sys.prefix
    assert results["numpy@second"][0] == second
    assert [entry for entry in results["numpy@second"][1] if entry.startswith(sys.prefix)] == []
    assert [entry for entry in results["numpy"][1] if entry.startswith(second)] == []
    assert any(entry.startswith(second) for entry in results["numpy@second"][1])


def test_an_environment_may_be_named_after_its_framework(
    beside: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the framework's plain name is the one in the environment, in every process."""
    environments = beside.path / "envs"
    _environment(environments, "pool", lambda packages: None)
    monkeypatch.setenv("FWBENCH_ENVS", str(environments))
    beside.install_pool()
    noting = """
        with open("notes", "a") as notes:
            print(case.cell.framework, sys.prefix, file=notes)
        case.measure()
    """
    imports = ("import sys", "from fwbench.workloads import tanh")
    beside.write("test_it.py", measuring("tanh, sizes=(8,)", *imports, body=noting))
    result, records = beside.measure(fw="pool,numpy@pool")
    result.assert_outcomes(passed=2)
    assert {*records} == {
        f"tanh-{name}-cpu-eager-forward-float32-8" for name in ("pool", "numpy@pool")
    }
    prefix = environments / "pool"
    assert sorted(beside.lines("notes")) == [f"numpy@pool {prefix}", f"pool {prefix}"]


def test_environments_of_the_project_are_found_without_a_variable(
    cases: Project, folder: Path
) -> None:
    """They are under the project's root, also if pytest is started in a folder below."""
    envs = cases.path / ".fwbench" / "envs"
    envs.mkdir(parents=True)
    (envs / "second").symlink_to(folder / "second")
    cases.write("pytest.ini", "[pytest]\n")
    (cases.path / "inner").mkdir()
    result = cases.run("--rootdir=.", "test_it.py", fw="numpy@second")
    result.assert_outcomes(passed=5)


#: Frameworks of environments that cannot be used, and what must be said of each.
_UNUSABLE = {
    "numpy@aged": ["its environment has fwbench 0.0.1", f"this is {__version__}", "recreate it"],
    "frail@third": ["does not import (OSError: libbroken.so"],
    "torch@second": ["not installed (No module named 'torch')"],
    "nothing@second": ["nothing"],
}


def test_what_cannot_be_used_is_skipped_with_the_reason(beside: Project) -> None:
    """The others run, the session succeeds, and the header and the skips say what is wrong."""
    result, records = beside.measure(
        "-v", "--junitxml=junit.xml", fw=",".join(["numpy", *_UNUSABLE])
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    result.assert_outcomes(passed=5, skipped=4 * len(_UNUSABLE))
    assert sorted(records) == sorted(_ids("numpy"))
    skipped = [outcome.text for outcome in beside.outcomes().values() if outcome.kind == "skipped"]
    for framework, message in _UNUSABLE.items():
        reasons = [text for text in skipped if framework in text]
        assert len(reasons) == 4
        (line,) = [line for line in result.outlines if line.startswith(f"  {framework}")]
        for text in (*reasons, line):
            assert [part for part in message if part not in text] == [], text
            assert "Traceback" not in text


@pytest.mark.parametrize(("framework", "text"), _UNUSABLE.items(), ids=_UNUSABLE)
def test_nothing_that_can_be_used_is_a_usage_error(
    beside: Project, framework: str, text: list[str]
) -> None:
    """Where only such frameworks are asked for nothing runs, and the reason is said."""
    result = beside.run(fw=framework)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = str(result.stderr)
    assert [part for part in (framework, *text) if part not in message] == [], message
    assert "Traceback" not in message


def test_an_environment_that_has_gone(beside: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose Python is no more is named, cached or not; the cache has no say if all is gone."""
    environments = beside.path / "envs"
    _environment(environments, "second", lambda packages: None)
    monkeypatch.setenv("FWBENCH_ENVS", str(environments))
    beside.run(fw="numpy,numpy@second").assert_outcomes(passed=9)
    (environments / "second" / "bin" / "python").unlink()
    for flag in ("-v", "--cache-clear"):
        result = beside.run(flag, "--junitxml=junit.xml", fw="numpy,numpy@second")
        output = str(result.stdout) + str(result.stderr)
        assert result.ret == pytest.ExitCode.OK, output
        result.assert_outcomes(passed=5, skipped=4)
        texts = [
            outcome.text for outcome in beside.outcomes().values() if outcome.kind == "skipped"
        ]
        assert all("its interpreter does not run" in text for text in texts), texts
        assert all("bin/python" in text for text in texts)
    shutil.rmtree(environments / "second")
    result = beside.run(fw="numpy,numpy@second")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "unknown framework 'numpy@second'" in str(result.stderr)


def test_facts_that_cannot_be_read_are_a_usage_error(
    beside: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the file and the remedy: a requested environment is not passed over."""
    environments = beside.path / "envs" / "second"
    environments.mkdir(parents=True)
    (environments / "fwbench-environment.json").write_text("{", encoding="utf-8")
    monkeypatch.setenv("FWBENCH_ENVS", str(environments.parent))
    result = beside.run(fw="numpy,numpy@second")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = str(result.stderr)
    assert "fwbench-environment.json" in message
    assert "fwbench env remove second, then fwbench env add" in message
    assert "Traceback" not in message + str(result.stdout)
    beside.run(fw="numpy").assert_outcomes(passed=5)


def test_named_environments_need_processes(beside: Project) -> None:
    """Without isolation there is one interpreter: what is in others is skipped, with the reason.

    It is refused if there is nothing else.
    """
    result = beside.run("--fw-isolation=none", "--junitxml=junit.xml", fw="numpy,numpy@second")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    result.assert_outcomes(passed=5, skipped=4)
    reasons = [outcome.text for outcome in beside.outcomes().values() if outcome.kind == "skipped"]
    assert all("it needs --fw-isolation=process" in text for text in reasons)
    result = beside.run("--fw-isolation=none", fw="numpy@second")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "it needs --fw-isolation=process" in str(result.stderr)


@pytest.mark.parametrize("name", ["numpy@nowhere", "numpy@secnd", "second", "nowhere"])
def test_an_environment_that_is_not_there(beside: Project, name: str) -> None:
    """A name that leads nowhere is refused, and those that are there are named.

    The name of an environment alone is none of a framework.
    """
    result = beside.run(fw=f"numpy,{name}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR, str(result.stdout)
    message = str(result.stderr)
    assert f"unknown framework {name!r}" in message
    assert "numpy@second" in message
    assert "torch" in message
