"""The action for pull requests: its scripts do what they should with any input."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

_ACTION = Path(__file__).parents[1] / ".github" / "actions" / "ab" / "action.yml"

#: Stands in for the interpreter: splits as the real one, and writes a comparison as fwbench ab.
_PYTHON = f"""\
#!{sys.executable}
import json, os, subprocess, sys
from pathlib import Path
if sys.argv[1] == "-c":
    sys.exit(subprocess.call([{sys.executable!r}, *sys.argv[1:]]))
Path("given.json").write_text(json.dumps(sys.argv[1:]))
Path(sys.argv[sys.argv.index("--markdown") + 1]).write_text("| table |\\n")
sys.exit(1)
"""

#: Stands in for GitHub's program: notes its calls, and knows of one comment if it is told to.
_GH = f"""\
#!{sys.executable}
import json, os, sys
from pathlib import Path
with Path("gh.jsonl").open("a") as log:
    print(json.dumps(sys.argv[1:]), file=log)
if "--jq" in sys.argv:
    print(os.environ.get("COMMENT", ""))
"""


def _steps() -> list[dict[str, Any]]:
    action = yaml.safe_load(_ACTION.read_text(encoding="utf-8"))
    steps: list[dict[str, Any]] = action["runs"]["steps"]
    return steps


def _script(part: str) -> str:
    (script,) = [step["run"] for step in _steps() if part in step.get("run", "")]
    return str(script)


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """The environment of a runner; its folder is the current one of scripts."""
    for name, source in (("python", _PYTHON), ("gh", _GH)):
        program = tmp_path / name
        program.write_text(source, encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_REPOSITORY": "me/mine",
    }


def _run(script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # As GitHub runs "shell: bash".
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=variables["RUNNER_TEMP"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_arguments_are_split_and_never_run(runner: dict[str, str]) -> None:
    """Quotes group words; what a shell would run or expand is text."""
    folder = Path(runner["RUNNER_TEMP"])
    variables = {
        **runner,
        "ARGUMENTS": "benchmarks -k 'gemm and not $(touch ran)' `touch ran`; touch ran * ~",
        "BASE": "b4se",
        "CONTENDER": "HEAD",
        "PYTHON": "python",
    }
    done = _run(_script("-m fwbench ab"), variables)
    assert done.returncode == 0, done.stderr
    given = yaml.safe_load((folder / "given.json").read_text(encoding="utf-8"))
    words = ["benchmarks", "-k", "gemm and not $(touch ran)", "`touch", "ran`;", "touch", "ran"]
    assert given[: given.index("--markdown")] == [
        *("-m", "fwbench", "ab", "git:b4se", "git:HEAD", *words, "*", "~")
    ]
    assert not (folder / "ran").exists()
    output = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    assert output["status"] == "1"
    assert [path.name for path in Path(output["folder"]).iterdir()] == ["comparison.md"]
    assert (folder / "summary").read_text(encoding="utf-8") == "| table |\n"


def test_arguments_that_cannot_be_split_fail(runner: dict[str, str]) -> None:
    variables = {**runner, "ARGUMENTS": "-k 'gemm", "BASE": "b", "CONTENDER": "c"}
    done = _run(_script("-m fwbench ab"), {**variables, "PYTHON": "python"})
    assert done.returncode != 0
    assert "No closing quotation" in done.stderr
    assert not (Path(runner["RUNNER_TEMP"]) / "given.json").exists()


@pytest.mark.parametrize(
    ("known", "method", "place"),
    [
        ("", "POST", "repos/me/mine/issues/7/comments"),
        ("42", "PATCH", "repos/me/mine/issues/comments/42"),
    ],
)
def test_the_comment_is_the_actions_own(
    runner: dict[str, str], known: str, method: str, place: str
) -> None:
    """It begins with a mark that nobody sees; the one that has it is edited, and no other."""
    folder = Path(runner["RUNNER_TEMP"])
    (folder / "comparison.md").write_text("| table |\n", encoding="utf-8")
    variables = {**runner, "FOLDER": str(folder), "NUMBER": "7", "COMMENT": known}
    done = _run(_script("gh api"), variables)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    listed, written = map(yaml.safe_load, (folder / "gh.jsonl").read_text().splitlines())
    assert "repos/me/mine/issues/7/comments" in listed
    assert "<!-- fwbench ab -->" in listed[-1]
    assert [method, place] == [written[written.index("--method") + 1], written[4]]
    body = (folder / "comment.md").read_text(encoding="utf-8")
    assert body == "<!-- fwbench ab -->\n| table |\n"


def test_no_expression_is_within_a_script() -> None:
    """Inputs reach scripts as variables: in their text they would be code."""
    assert [step["run"] for step in _steps() if "${{" in step.get("run", "")] == []
