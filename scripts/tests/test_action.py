"""The actions for pull requests: their scripts do what they should, whatever is measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from fwbench.report import escaping
from support.suites import FEW, Suite, run_git

_ROOT = Path(__file__).parents[2]

#: The files through which a step tells the runner something.
_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")

#: Stands in for the interpreter: splits as the real one, and writes a comparison as fwbench ab.
_PYTHON = f"""\
#!{sys.executable}
import json, os, subprocess, sys
from pathlib import Path
if sys.argv[2] == "-c":
    sys.exit(subprocess.call([{sys.executable!r}, *sys.argv[1:]]))
Path("given.json").write_text(json.dumps(sys.argv[1:]))
for option in ("--markdown", "--json"):
    Path(sys.argv[sys.argv.index(option) + 1]).write_text("| table |\\n")
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

#: Looks for tokens in every process up to the runner, and writes to all that it reads.
_HOSTILE = """
import contextlib, itertools, os, psutil
from pathlib import Path

temporary = Path({temporary!r})
above = itertools.takewhile(lambda process: process.pid != {runner}, psutil.Process().parents())
seen = [dict(os.environ)]
for process in above:
    seen.append(process.environ())
    with contextlib.suppress(OSError), open(f"/proc/{{process.pid}}/fd/1", "w") as log:
        log.write("\\n::set-output name=status::9\\n::stop-commands::x\\n::x::\\n::add-path::/x\\n")
Path({seen!r}).write_text(str(seen))
for file in temporary.glob("commands-*/*"):
    with contextlib.suppress(OSError):
        Path(file).write_text("status=99\\nfolder=/evil\\nLD_PRELOAD=/evil.so\\n")
for folder, kind in itertools.product(temporary.glob("fwbench-*"), ("md", "json")):
    with contextlib.suppress(OSError):
        (folder / f"comparison.{{kind}}").write_text("evil")
"""


def _run(action: str, folder: Path, inputs: str = "", **variables: str) -> SimpleNamespace:
    """Run the scripts of an action as GitHub does, until one of them fails."""
    temporary = Path(variables.get("RUNNER_TEMP", folder))
    for name, source in (("python", _PYTHON), ("gh", _GH)):
        (temporary / name).write_text(variables.get(name, source), encoding="utf-8")
        (temporary / name).chmod(0o755)
    path = f"{temporary}{os.pathsep}{os.environ['PATH']}"
    runner = {"PATH": path, "RUNNER_TEMP": str(temporary), "GITHUB_REPOSITORY": "me/mine"}
    known = {"inputs.arguments": inputs, "inputs.base": "HEAD~1", "inputs.contender": "HEAD"}
    known["inputs.python"] = variables.get("PYTHON", "python")
    known["github.event.pull_request.number"] = "7"
    told = dict.fromkeys(_FILES, "")
    ran = SimpleNamespace(status=0, log="", errors="", told=told, known=known)
    text = (_ROOT / ".github" / "actions" / action / "action.yml").read_text(encoding="utf-8")
    for step in yaml.safe_load(text)["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "in the text of a script inputs would be code"
        if ran.status or "run" not in step or "if" in step:
            continue
        commands = Path(tempfile.mkdtemp(prefix="commands-", dir=temporary))
        files = {name: str(commands / name) for name in _FILES}
        for file in files.values():
            Path(file).touch()
        given = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda match: known.get(match[1], ""), value)
            for name, value in step["env"].items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, **runner, **variables, **files, **given},
            capture_output=True,
            text=True,
            check=False,
        )
        ran.status, ran.log, ran.errors = done.returncode, ran.log + done.stdout, done.stderr
        for left in commands.iterdir():
            told[left.name] += left.read_text(encoding="utf-8")
        outputs = (line.split("=", 1) for line in told["GITHUB_OUTPUT"].splitlines())
        known.update({f"steps.{step.get('id')}.outputs.{name}": value for name, value in outputs})
        told["GITHUB_OUTPUT"] = ""
    return ran


def test_arguments_are_split_and_never_run(tmp_path: Path) -> None:
    """Quotes group words; what a shell would run or expand is text."""
    arguments = "benchmarks -k 'gemm and not $(touch ran)' `touch ran`; touch ran * ~"
    ran = _run("ab", tmp_path, arguments)
    assert (ran.status, ran.told["GITHUB_STEP_SUMMARY"]) == (1, "| table |\n")
    given = json.loads((tmp_path / "given.json").read_text(encoding="utf-8"))
    words = ["benchmarks", "-k", "gemm and not $(touch ran)", "`touch", "ran`;", "touch", "ran"]
    assert given[: given.index("--markdown")] == [
        *("-P", "-m", "fwbench", "ab", "git:HEAD~1", "git:HEAD", *words, "*", "~")
    ]
    assert not (tmp_path / "ran").exists()


def test_arguments_that_cannot_be_split_fail(tmp_path: Path) -> None:
    ran = _run("ab", tmp_path, "-k 'gemm")
    assert (ran.status, "No closing quotation" in ran.errors) == (1, True)
    assert not (tmp_path / "given.json").exists()


def test_measured_code_reaches_nothing(suite: Suite, tmp_path: Path) -> None:
    """It sees no token, tells the runner nothing, and the verdict is that of fwbench ab."""
    temporary, seen = tmp_path / "runner", tmp_path / "seen"
    temporary.mkdir()
    names = ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
    secrets = dict.fromkeys((*names, "INPUT_TOKEN", "NPM_TOKEN"), "hushhush")
    hostile = _HOSTILE.format(temporary=str(temporary), runner=os.getpid(), seen=str(seen))
    suite.commit(conftest__py=(suite.path / "conftest.py").read_text(encoding="utf-8") + hostile)
    for name in ("fwbench.py", "shlex.py"):
        (suite.path / name).write_text("raise RuntimeError('of the pull request')")
    arguments = " ".join((*FEW, "--pairs", "1", "-k", "steady"))
    variables = {"RUNNER_TEMP": str(temporary), "PYTHON": sys.executable, **secrets}
    ran = _run("ab", suite.path, arguments, **variables)
    assert ran.status in (0, 1, 10), ran.log  # one pair may be too few to judge
    found = seen.read_text(encoding="utf-8")
    assert "'PYTHON'" in found
    assert "hushhush" not in found + ran.log
    assert [name for name in _FILES if f"'{name}'" in found] == []
    stopped, _, log = ran.log.partition("\n")
    assert (stopped[:17], ran.errors) == ("::stop-commands::", "")
    assert ("::add-path::/x" in log, stopped[17:] in log) == (True, False), "they stay off"
    summary = ran.told.pop("GITHUB_STEP_SUMMARY")
    assert summary.startswith("### fwbench: ")
    assert {*ran.told.values()} == {""}
    assert ran.known["steps.verdict.outputs.status"] == str(ran.status)
    kept = Path(ran.known["steps.verdict.outputs.folder"])
    assert (kept / "comparison.md").read_text(encoding="utf-8") == summary
    assert json.loads((kept / "comparison.json").read_text(encoding="utf-8"))["verdicts"]

    run_git(suite.path, "config", "http.https://github.com/.extraheader", "hushhush")
    refused = _run("ab", suite.path)
    assert (refused.status, "persist-" in refused.log, "hush" in refused.log) == (2, True, False)


@pytest.mark.parametrize(
    ("ending", "status"),
    [("os.replace('comparison', p); sys.exit(0)", 3), ("sys.exit(137)", 137), ("os.abort()", 134)],
)
def test_what_is_no_verdict_is_not_shown(tmp_path: Path, ending: str, status: int) -> None:
    """Neither a link to another file, nor files of a comparison that has not come to its end."""
    (tmp_path / "comparison").symlink_to("/etc/passwd")
    last = f"p = sys.argv[sys.argv.index('--markdown') + 1]; {ending}"
    ran = _run("ab", tmp_path, python=_PYTHON.replace("sys.exit(1)", last))
    assert (ran.status, {*ran.told.values()}) == (status, {""})
    assert _run("comment", tmp_path).status == 0
    assert not (tmp_path / "gh.jsonl").exists()


_TEXTS = ("<img>", "[a](b)", "![](b)", r"a\\[b](c)", "http://x.y", "www.x.y", "@x", "(@x)")
_TABLE = f"### fwbench: 1 regressed\n\n{escaping.markdown_row(_TEXTS)}\n"


def _comment(folder: Path, comparison: str, **variables: str) -> SimpleNamespace:
    """Comment on a comparison that the other job has kept."""
    (folder / "fwbench-ab").mkdir()
    (folder / "fwbench-ab" / "comparison.md").write_text(comparison, encoding="utf-8")
    return _run("comment", folder, **variables)


@pytest.mark.parametrize(
    ("known", "method", "place"), [("", "POST", "7/comments"), ("42", "PATCH", "comments/42")]
)
@pytest.mark.parametrize("lines", [1, 9000])
def test_the_comment_is_the_actions_own(
    tmp_path: Path, known: str, method: str, place: str, lines: int
) -> None:
    """It begins with a mark that nobody sees; the one that has it is edited, and no other."""
    ran = _comment(tmp_path, _TABLE + "| row |\n" * lines, COMMENT=known)
    assert (ran.status, ran.log) == (0, "")
    listed, written = map(json.loads, (tmp_path / "gh.jsonl").read_text().splitlines())
    assert "repos/me/mine/issues/7/comments" in listed
    assert "<!-- fwbench ab -->" in listed[-1]
    assert written[2:5] == ["--method", method, f"repos/me/mine/issues/{place}"]
    body = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert body.startswith(f"<!-- fwbench ab -->\n{_TABLE}| row |\n")
    assert body.endswith("| row |\n\nThe summary of the job has the rest.\n") == (lines > 1)
    assert len(body) < 2**16


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("head", ["### fwbench: ", ""])
def test_a_comparison_that_fwbench_has_not_written(tmp_path: Path, head: str, text: str) -> None:
    ran = _comment(tmp_path, f"{head}{text * bool(head)}\n")
    assert (ran.status, "not as fwbench writes it" in ran.log) == (1, True)
    assert not (tmp_path / "gh.jsonl").exists()


@pytest.mark.parametrize("file", [".github/workflows/ab.yml", "docs/ci.md"])
def test_no_job_that_may_write_runs_anything_of_the_pull_request(file: str) -> None:
    """In the workflow of this repository, and in the documented one."""
    text = (_ROOT / file).read_text(encoding="utf-8")
    workflow = yaml.safe_load(text[text.index("on: pull_request") :].partition("```")[0])
    ab, comment = workflow["jobs"]["ab"], workflow["jobs"]["comment"]
    assert workflow[True] == "pull_request", "YAML takes on for true"
    assert (workflow["permissions"], ab["permissions"]) == ({}, {"contents": "read"})
    assert ab["steps"][0]["with"]["persist-credentials"] is False
    assert comment["permissions"] == {"pull-requests": "write"}
    assert ["/.github/actions/comment" in step["uses"] for step in comment["steps"]] == [True]
