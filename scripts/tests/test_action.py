"""The actions for pull requests: their scripts do what they should, whatever is measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from fwbench.gate.verdicts import Comparison
from fwbench.report import escaping
from support.documents import blocks
from support.histories import saved
from support.reports import case
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

#: Stands in for GitHub's program: notes its calls, lists pull requests, and knows of one comment if
#: it is told to.
_GH = f"""\
#!{sys.executable} -I
import json, os, sys
from pathlib import Path
with Path("gh.jsonl").open("a") as log:
    print(json.dumps(sys.argv[1:]), file=log)
if "--raw-field" in sys.argv:
    print(os.environ["PULLS"])
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
    stubs = {"python": _PYTHON, "gh": _GH, "sleep": "#!/bin/sh\n"}
    for name, source in stubs.items():
        (temporary / name).write_text(variables.get(name, source), encoding="utf-8")
        (temporary / name).chmod(0o755)
    path = f"{temporary}{os.pathsep}{os.environ['PATH']}"
    runner = {"PATH": path, "RUNNER_TEMP": str(temporary), "GITHUB_REPOSITORY": "me/mine"}
    runner["GITHUB_ACTION_PATH"] = str(_ROOT / ".github" / "actions" / action)
    runner |= {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_RUN_ID": "6"}
    known = {"inputs.arguments": inputs, "inputs.base": "HEAD~1", "inputs.contender": "HEAD"}
    known["inputs.python"] = variables.get("PYTHON", "python")
    known |= {name: value for name, value in variables.items() if "." in name}
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

#: The run of a workflow for a fork's pull request, whose branch has a name to trip over.
_BRANCH = '$(touch ran)"; touch ran; @x'
_MEASURED = {
    "id": 5,
    "head_sha": "abc",
    "head_branch": _BRANCH,
    "head_repository": {"full_name": "you/fork", "owner": {"login": "you"}},
}


def _pull(**changes: str) -> dict[str, Any]:
    """A pull request as GitHub's API lists it."""
    head = {"full_name": "you/fork", "ref": _BRANCH, "sha": "abc", **changes}
    return {"number": 7, "head": {**head, "repo": {"full_name": head["full_name"]}}}


def _comment(
    folder: Path, comparison: str, pulls: Sequence[Mapping[str, Any]] = (), **variables: str
) -> SimpleNamespace:
    """Comment on a comparison that another job has kept; of a fork's if pull requests are given."""
    kept = folder / "fwbench-ab"
    kept.mkdir(exist_ok=True)
    (kept / "comparison.md").write_text(comparison, encoding="utf-8")
    event: dict[str, Any] = {"pull_request": {"number": 7, "head": {"sha": "0123456789"}}}
    known = {"github.event_name": "pull_request"}
    if pulls:
        event = {"workflow_run": _MEASURED}
        of_run = "github.event.workflow_run"
        known = {
            "github.event_name": "workflow_run",
            f"{of_run}.head_branch": _BRANCH,
            f"{of_run}.head_repository.owner.login": "you",
        }
    (folder / "event.json").write_text(json.dumps(event), encoding="utf-8")
    known |= {"GITHUB_EVENT_PATH": str(folder / "event.json"), "PULLS": json.dumps(pulls)}
    return _run("comment", folder, **known, **variables)


def _calls(folder: Path) -> list[list[str]]:
    """The arguments of each call of GitHub's program."""
    return [*map(json.loads, (folder / "gh.jsonl").read_text(encoding="utf-8").splitlines())]


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
    listed, written = _calls(tmp_path)
    assert "repos/me/mine/issues/7/comments" in listed
    assert "<!-- fwbench ab -->" in listed[-1]
    assert written[2:5] == ["--method", method, f"repos/me/mine/issues/{place}"]
    text = (tmp_path / "comment.md").read_text(encoding="utf-8")
    heading, rest = _TABLE.split("\n", 1)
    url = "https://github.com/me/mine/actions/runs/6"
    told = f"{heading} ([figures of 0123456]({url}))\n{rest}| row |\n"
    assert text.startswith(f"<!-- fwbench ab -->\n{told}")
    assert ("the artifact fwbench-ab of that run has the rest" in text) == (lines > 1)
    assert len(text) <= 2**16


def test_a_forks_pull_request_is_commented(tmp_path: Path) -> None:
    """It is found by the head of the run, whose branch may have any name."""
    ran = _comment(tmp_path, _TABLE, [_pull()])
    assert (ran.status, ran.log, ran.errors) == (0, "", "")
    pulls, _, written = _calls(tmp_path)
    assert pulls[-4:] == ["--raw-field", "state=open", "--raw-field", f"head=you:{_BRANCH}"]
    assert written[4] == "repos/me/mine/issues/7/comments"
    assert "actions/runs/5))" in (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", [{"sha": "def"}, {"ref": "main"}, {"full_name": "she/fork"}])
def test_no_other_pull_request_is_commented(tmp_path: Path, change: dict[str, str]) -> None:
    """Whatever the artifact says: one that was pushed to since, or of another branch or fork."""
    ran = _comment(tmp_path, _TABLE, [_pull(**change)])
    assert (ran.status, "::warning::one open pull request must" in ran.errors) == (0, True)
    assert len(_calls(tmp_path)) == 1


def test_nothing_of_an_artifact_is_run(tmp_path: Path) -> None:
    """A fork may change the workflow, and keep what it likes: only the table is looked at."""
    evil = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    for folder in (tmp_path, tmp_path / "fwbench-ab"):
        for name in (
            "json.py",
            "fwbench/__init__.py",
            "fwbench_extras/comment.py",
            "sitecustomize.py",
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(evil, encoding="utf-8")
    (tmp_path / "fwbench-ab" / "number").write_text("8", encoding="utf-8")
    ran = _comment(tmp_path, _TABLE, [_pull()])
    assert (ran.status, ran.errors) == (0, "")
    assert _calls(tmp_path)[-1][4] == "repos/me/mine/issues/7/comments"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize("head", ["### fwbench: ", ""])
def test_a_comparison_that_fwbench_has_not_written(tmp_path: Path, head: str, text: str) -> None:
    ran = _comment(tmp_path, f"{head}{text * bool(head)}\n")
    assert (ran.status, "not as fwbench writes it" in ran.errors) == (1, True)
    assert not (tmp_path / "gh.jsonl").exists()


def _documented() -> dict[str, str]:
    """The workflows that the page shows whole, by their paths."""
    shown = (block for block in blocks("docs/ci.md") if block.before.startswith("<!-- .github/"))
    return {block.before.removeprefix("<!-- ").removesuffix(" -->"): block.text for block in shown}


def _variant() -> str:
    """The first of them with both parts that the page shows: on a label, and other arguments."""
    known = [block for block in blocks("docs/ci.md") if block.language == "yaml"]
    label, arguments = (b.text for b in known if not b.before.startswith("<!-- "))
    workflow, on_label = yaml.safe_load(known[0].text), yaml.safe_load(label)
    workflow["jobs"]["ab"] |= on_label["jobs"]["ab"]
    workflow["jobs"]["ab"]["steps"][-1]["with"] |= yaml.safe_load(textwrap.dedent(arguments))
    del workflow[True]
    return yaml.safe_dump({"on": on_label[True], **workflow})


def _workflows() -> dict[str, str]:
    """The workflows of the page, and this repository's own."""
    own = (_ROOT / ".github" / "workflows").glob("*.yml")
    return {**_documented(), **{file.name: file.read_text(encoding="utf-8") for file in own}}


@pytest.mark.parametrize(
    ("measuring", "commenting"),
    [
        ("ab.yml", "comment.yml"),
        (".github/workflows/fwbench.yml", ".github/workflows/fwbench-comment.yml"),
    ],
)
def test_no_job_that_may_write_runs_anything_of_the_pull_request(
    measuring: str, commenting: str
) -> None:
    """In the workflows of this repository, and in the documented ones."""
    measure, comment = (yaml.safe_load(_workflows()[name]) for name in (measuring, commenting))
    assert [*measure[True]] == ["pull_request"], "YAML takes on for true"
    (ab,) = measure["jobs"].values()
    assert (measure["permissions"], ab["permissions"]) == ({}, {"contents": "read"})
    assert ab["steps"][0]["with"]["persist-credentials"] is False
    assert comment[True] == {
        "workflow_run": {"workflows": [measure["name"]], "types": ["completed"]}
    }
    (job,) = comment["jobs"].values()
    assert job["if"] == "github.event.workflow_run.event == 'pull_request'"
    assert (comment["permissions"], job["permissions"]) == (
        {},
        {"actions": "read", "pull-requests": "write"},
    )
    (step,) = job["steps"]
    assert "/.github/actions/comment" in step["uses"]


def test_documented_workflows_are_whole() -> None:
    """They can be copied: each says when, where, how long and with which permissions it runs."""
    assert len(_documented()) == 3
    for name, text in _documented().items():
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {}, name
        for job in workflow["jobs"].values():
            assert {"runs-on", "timeout-minutes", "permissions", "steps"} <= job.keys(), name
            for step in job["steps"]:
                action, _, revision = step.get("uses", "").partition("@")
                if action.startswith("OWNER/fwbench/"):
                    known = yaml.safe_load(
                        (_ROOT / action.removeprefix("OWNER/fwbench/") / "action.yml").read_text()
                    )
                    assert {*step.get("with", {})} <= {*known.get("inputs", {})}
                elif action:
                    assert re.fullmatch("[0-9a-f]{40}", revision), step


_TOOLS = Path(sys.executable).parent


@pytest.mark.skipif(not (_TOOLS / "actionlint").exists(), reason="the linters are not installed")
def test_workflows_and_scripts_of_actions_are_linted(tmp_path: Path) -> None:
    """The documented workflows as those of the repository, which make lint looks at."""
    variant = {".github/workflows/variant.yml": _variant()}
    for name, text in {**_documented(), **variant}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"(?<=/)(\w+)@main", rf"\1@{'a' * 40}", text), encoding="utf-8")
    path = f"{_TOOLS}{os.pathsep}{os.environ['PATH']}"
    for command in (
        ["actionlint", *map(str, tmp_path.rglob("*.yml"))],
        ["zizmor", "--offline", "--pedantic", "--quiet", str(tmp_path)],
    ):
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for file in (_ROOT / ".github" / "actions").glob("*/action.yml"):
        for step in yaml.safe_load(file.read_text(encoding="utf-8"))["runs"]["steps"]:
            done = subprocess.run(
                [_TOOLS / "shellcheck", "--shell=bash", "--exclude=SC2016", "-"],
                input=step.get("run", ""),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{file}: {done.stdout}"


# The history


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """An empty repository, as GitHub has it."""
    path = tmp_path / "server" / "me" / "mine"
    path.mkdir(parents=True)
    run_git(path, "init", "--quiet", "--bare")
    return path


#: Draws the page as fwbench does, and once before it does something else to the branch.
_MEANWHILE = f"""\
#!/bin/bash
if [ ! -e "$0.done" ]; then
  touch "$0.done"
  (cd "$(dirname "$0")" && unset "${{!GIT_@}}" && {{meanwhile}}) >/dev/null
fi
exec {sys.executable} "$@"
"""


def _keep(
    tmp_path: Path, *runs: Path, meanwhile: str = ":", comparison: str = ""
) -> SimpleNamespace:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    known = {
        "inputs.runs": "".join(f"{run}\n" for run in runs),
        "inputs.comparison": comparison,
        "inputs.branch": "fwbench-history",
        "inputs.token": "hushhush",
    }
    return _run(
        "history",
        folder,
        RUNNER_TEMP=str(folder),
        GITHUB_SERVER_URL=f"file://{tmp_path}/server",
        python=_MEANWHILE.replace("{meanwhile}", meanwhile),
        **known,
    )


def _kept(server: Path) -> list[str]:
    """The days of the runs on the branch."""
    listed = run_git(server, "ls-tree", "-r", "--name-only", "fwbench-history")
    assert {"index.html", ".nojekyll"} <= {*listed.splitlines()}
    return [name[5:15] for name in listed.splitlines() if name.startswith("runs/")]


def _commits(server: Path) -> int:
    return len(run_git(server, "rev-list", "fwbench-history").splitlines())


def test_runs_are_kept_once(server: Path, tmp_path: Path) -> None:
    """Also if the job is repeated, or a run has another name."""
    first, second = (saved(tmp_path / f"{n}.json", case(), at=n) for n in range(2))
    ran = _keep(tmp_path, first)
    assert (ran.status, ran.errors) == (0, "")
    assert (_kept(server), _commits(server)) == (["2026-01-01"], 1)
    kept = Path(ran.known["steps.keep.outputs.folder"])
    assert "gemm" in (kept / "index.html").read_text(encoding="utf-8")
    assert not (kept / "badge.svg").exists()
    again = tmp_path / "again.json"
    again.write_bytes(first.read_bytes())
    assert _keep(tmp_path, again).status == 0
    assert (_kept(server), _commits(server)) == (["2026-01-01"], 1)
    same = Comparison("git:HEAD", "git:HEAD", [], {"took_s": 90.0, "confidence": 0.9})
    (tmp_path / "same.json").write_text(json.dumps(same.to_json()), encoding="utf-8")
    comparison = str(tmp_path / "same.json")
    ran = _keep(tmp_path, again, second, first, comparison=comparison)
    assert (_kept(server), _commits(server)) == (["2026-01-01", "2026-01-02"], 2), ran.errors
    badge = run_git(server, "show", "fwbench-history:badge.svg")
    assert "this runner sees no change in 2 min" in badge
    assert "hushhush" not in run_git(server, "log", "-p", "fwbench-history")


#: What others may do to the branch between the look at it and the push.
_PUSH = """git clone --quiet --branch fwbench-history {server} clone && cd clone &&
cp {other} runs/2026-01-03-other.json && git add . &&
git -c user.name=x -c user.email=x@x commit -qm theirs && git push --quiet origin fwbench-history"""
_REWRITE = """git clone --quiet --branch fwbench-history {server} clone && cd clone &&
git checkout --quiet --orphan new && git -c user.name=x -c user.email=x@x commit -qm theirs &&
git push --quiet --force origin new:fwbench-history"""
_DROP = _REWRITE.replace("--orphan new &&", "--orphan new && git rm --quiet -rf runs &&").replace(
    "commit", "commit --allow-empty"
)


@pytest.mark.parametrize(
    ("meanwhile", "days", "commits"),
    [
        (_PUSH, ["2026-01-01", "2026-01-02", "2026-01-03"], ["ours", "theirs", "ours"]),
        (_REWRITE, ["2026-01-01", "2026-01-02"], ["ours", "theirs"]),
        (_DROP, ["2026-01-02"], ["ours", "theirs"]),
    ],
    ids=["push", "rewrite", "drop"],
)
def test_a_run_is_added_to_what_the_branch_has_meanwhile(
    server: Path, tmp_path: Path, meanwhile: str, days: list[str], commits: list[str]
) -> None:
    """The run is added to what is there then, and what others did stays."""
    first, second, other = (saved(tmp_path / f"{n}.json", case(), at=n) for n in range(3))
    assert _keep(tmp_path, first).status == 0
    ran = _keep(tmp_path, second, meanwhile=meanwhile.format(server=server, other=other))
    assert ran.status == 0, ran.errors
    subjects = run_git(server, "log", "--format=%s", "fwbench-history").splitlines()
    assert _kept(server) == days
    assert ["theirs" if subject == "theirs" else "ours" for subject in subjects] == commits


def test_what_is_no_run_is_not_kept(server: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    assert _keep(tmp_path, tmp_path / "bad.json").status != 0
    assert run_git(server, "branch", "--list") == ""


def test_a_branch_that_cannot_be_pushed_to_fails_the_job(server: Path, tmp_path: Path) -> None:
    hook = server / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    ran = _keep(tmp_path, saved(tmp_path / "run.json", case()))
    assert (ran.status, "::error::the branch fwbench-history" in ran.log) == (1, True)
