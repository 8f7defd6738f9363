"""Comments on pull requests: on the right one, and with nothing in them that does anything."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fwbench.errors import UnreadableRun, UsageError
from fwbench.gate.stored import compare
from fwbench.gate.verdicts import Rules
from fwbench.report import escaping, verdicts
from fwbench_extras import comment
from support.launched_runs import run, sample, times

_URL = "https://github.com/me/mine/actions/runs/5"
_HEAD = "0123456789abcdef"

_RUN = {"head_repository": {"full_name": "you/fork"}, "head_branch": "fast", "head_sha": "abc"}


def _pull(
    number: int, repository: str | None = "you/fork", ref: str = "fast", sha: str = "abc"
) -> dict[str, Any]:
    known = None if repository is None else {"full_name": repository}
    return {"number": number, "head": {"repo": known, "ref": ref, "sha": sha}}


def test_the_pull_request_is_that_of_the_head() -> None:
    """An open one of the same commit in another repository, or on another branch, is another's."""
    others = [_pull(1, "me/mine"), _pull(2, ref="other"), _pull(3, sha="def"), _pull(4, None)]
    assert comment.pull_request({"workflow_run": _RUN}, [*others, _pull(7)]) == 7
    assert comment.pull_request({"pull_request": {"number": 9}}, []) == 9
    with pytest.raises(UsageError, match="none has"):
        comment.pull_request({"workflow_run": _RUN}, others)
    with pytest.raises(UsageError, match="pull requests 7, 8 have"):
        comment.pull_request({"workflow_run": _RUN}, [_pull(7), _pull(8)])
    with pytest.raises(UsageError, match="none has"):
        comment.pull_request({"workflow_run": {**_RUN, "head_repository": None}}, [_pull(4, None)])


def _compared(factor: float, **more: Any) -> str:
    base = run(*(sample(key, times(1.0, 8)) for key in "ab"), name="git:main")
    contender = run(sample("a", times(factor, 8)), sample("b", times(1.0, 8)), name="git:HEAD")
    return verdicts.markdown(compare(base, contender, Rules(), **more))


def test_where_nothing_has_changed_the_comment_is_one_line() -> None:
    written = _compared(1.0)
    assert written.splitlines()[0] == (
        "### fwbench: git:HEAD against git:main: 2 unchanged: +3.5% would have shown in nine "
        "of ten cases"
    )
    assert "| unchanged | a |" in written
    mark, heading = comment.body(written, _URL, _HEAD).splitlines()
    assert mark == comment.MARK
    assert heading == f"{written.splitlines()[0]} ([figures of 0123456]({_URL}))"


def test_a_change_is_commented_with_its_table() -> None:
    written = _compared(1.5)
    text = comment.body(written, _URL, _HEAD)
    assert text.startswith(f"{comment.MARK}\n### fwbench: git:HEAD against git:main: 1 regressed")
    assert "| regressed | a |" in text
    assert "- +3.5% would have shown in nine of ten cases\n" in text
    assert escaping.FOLDED not in written


@pytest.mark.parametrize("row", ["| row |", "| größe \N{SNOWMAN} |"])
def test_a_long_comment_is_cut_after_a_line(row: str) -> None:
    written = "### fwbench: 1 regressed\n\n" + f"{row}\n" * 9000
    text = comment.body(written, _URL, _HEAD)
    assert 60_000 < len(text.encode()) <= comment.LONGEST
    assert text.endswith(
        f"{row}\n\nThat is not all of it: the artifact fwbench-ab of that run has the rest.\n"
    )


@example("&#64;me &commat;me &lt; a\\")
@given(st.text())
def test_what_is_escaped_is_inert(text: str) -> None:
    assert escaping.is_inert(escaping.markdown(text))
    assert escaping.is_inert(escaping.markdown_row([text, text]))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "<img>",
            "[a](b)",
            r"a\\[b](c)",
            "http://x.y",
            "www.x.y",
            "@x",
            "(@x)",
            "&#64;x",
            "&commat;x",
        ),
        *("me/mine#3", "GH-3", "\u202ex", "\x1b[0m", "\x00"),
    ],
)
def test_what_fwbench_has_not_written_is_refused(text: str) -> None:
    for written in (f"### fwbench: {text}\n", f"### fwbench: fine\n\n{text}\n", text):
        with pytest.raises(UnreadableRun, match="not as fwbench writes it"):
            comment.body(written, _URL, _HEAD)
    with pytest.raises(UnreadableRun):
        comment.body(f"### fwbench: {'a' * 5000}\n", _URL, _HEAD)


def test_the_run_that_has_measured_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the one that comments, which has another number."""
    (tmp_path / "event.json").write_text(json.dumps({"workflow_run": {**_RUN, "id": 5}}))
    (tmp_path / "comparison.md").write_text("### fwbench: 1 regressed\n\n| a |\n")
    environment = {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_RUN_ID": "6",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "me/mine",
    }
    assert comment.main(["body", str(tmp_path / "comparison.md")], environment) == 0
    assert f"([figures of abc]({_URL}))" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["link", "folder", "bytes", "gone"])
def test_a_file_that_is_none_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    (tmp_path / "event.json").write_text("{}")
    path = tmp_path / "comparison.md"
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "folder":
        path.mkdir()
    elif kind == "bytes":
        path.write_bytes(b"### fwbench: \xff\n")
    environment = {"GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    assert comment.main(["body", str(path)], environment) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err[:9]) == ("", "::error::")
