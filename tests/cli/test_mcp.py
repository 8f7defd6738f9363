"""Tools of the Model Context Protocol, asked over pipes as an agent asks them."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from support import programs
from support.schemas import problems
from support.suites import commit_all, run_git
from support.tables import tables

_PLAIN = "def test_sum(benchmark):\n    benchmark(sum, range(1000))\n"

_OTHERS = """
import time

def test_wrong(benchmark):
    benchmark(sum, [1, 2])
    assert "right" == "wrong"

def test_slow():
    time.sleep(300)
"""

_SMALL = ("--benchmark-max-time=0.01", "--benchmark-min-rounds=2", "-p", "no:cacheprovider")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with tests that are none of fwbench's."""
    pytest.importorskip("mcp.server.stdio", reason="the extra mcp is not installed")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {' '.join(_SMALL)}\n")
    (tmp_path / "test_it.py").write_text(_PLAIN)
    (tmp_path / "test_others.py").write_text(_OTHERS)
    return tmp_path


def _served(folder: Path, ask: Callable[[Any], Awaitable[Any]]) -> Any:
    """Answers to a client by a server that was started in a folder."""
    from mcp import Client, StdioServerParameters

    async def session() -> Any:
        given = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "fwbench", "mcp"],
            env={**os.environ},
            cwd=folder,
        )
        async with Client(given) as client:
            return await ask(client)

    return asyncio.run(session())


def _text(answer: Any) -> str:
    (content,) = answer.content
    return str(content.text)


def test_tools_say_what_they_take(folder: Path) -> None:
    """All have a folder and a time; those that compare have a budget."""
    found = _served(folder, lambda client: client.list_tools())
    taken = {tool.name: {*tool.input_schema["properties"]} for tool in found.tools}
    assert taken.keys() == {"list", "measure", "ab", "since", "explain", "verify"}
    assert all({"folder", "timeout"} <= names for names in taken.values())
    assert {name for name in taken if "budget" in taken[name]} == {"ab", "since"}
    assert all(tool.description for tool in found.tools)


def test_what_a_call_cannot_have_is_refused(folder: Path) -> None:
    """By one server, which goes on after each."""
    (folder / "link").symlink_to(folder.parent)
    rows = tables(__file__)["test_what_a_call_cannot_have_is_refused"]["rows"]

    async def ask(client: Any) -> list[Any]:
        return [await client.call_tool(tool, arguments) for tool, arguments, _ in rows]

    for answer, (tool, arguments, said) in zip(_served(folder, ask), rows, strict=True):
        assert answer.is_error, (tool, arguments)
        assert said in _text(answer), (tool, arguments)


@pytest.mark.parametrize("texts", [["x" * 3_000_000], ["x" * 100_000] * 11])
def test_what_no_command_line_takes_is_refused(folder: Path, texts: list[str]) -> None:
    """Otherwise the system would say that an argument list is too long."""
    answer = _served(folder, lambda client: client.call_tool("list", {"operations": texts}))
    assert answer.is_error
    assert _text(answer).startswith("operations is too long for a command line, which takes ")


def test_operations_are_listed(folder: Path) -> None:
    async def ask(client: Any) -> tuple[Any, Any]:
        return await client.call_tool("list", {}), await client.call_tool(
            "list", {"operations": ["gemm"]}
        )

    everything, one = _served(folder, ask)
    assert "gemm" in everything.structured_content["linalg"]
    assert one.structured_content["linalg"]["gemm"]["sizes"]["quick"]
    assert _text(one) == "linalg: gemm"


def test_what_is_measured_is_returned_and_kept(folder: Path) -> None:
    """With what has failed; two runs that are kept are explained."""

    async def ask(client: Any) -> list[Any]:
        answers = [
            await client.call_tool("measure", {"tests": ["test_it.py"], "save": f"{name}.json"})
            for name in ("base", "contender")
        ]
        wrong = {"tests": ["test_others.py"], "options": ["-k", "wrong"]}
        answers += [await client.call_tool(tool, wrong) for tool in ("measure", "verify")]
        runs = {"base_run": "base.json", "contender_run": "contender.json", "only": "sum"}
        same = {"base_run": "base.json", "contender_run": "base.json"}
        return [*answers, *[await client.call_tool("explain", each) for each in (runs, same)]]

    first, _, failing, verified, explained, nothing = _served(folder, ask)
    (line,) = first.structured_content["cases"]
    assert (line["case"], line["run"], line["outcome"]) == ("test_sum", "base.json", "measured")
    assert line["median_s"] > 0
    assert None not in line.values()
    assert first.structured_content["overran"] is False
    assert _text(first).startswith("1 passed, 0 failed, 0 skipped\ntest_sum: ")
    for answer in (failing, verified):
        assert not answer.is_error
        (failed,) = answer.structured_content["failed"]
        assert failed["test"] == "test_others::test_wrong"
        assert "assert 'right' == 'wrong'" in failed["message"]
    assert problems("explanations", explained.structured_content) == []
    assert "test_sum" in _text(explained)
    assert nothing.structured_content == {"explanations": [], "overran": False}
    assert "1 case: " in _text(nothing)


def test_a_call_that_overruns_returns_what_was_kept(folder: Path) -> None:
    """Meanwhile no other call measures."""

    async def ask(client: Any) -> list[Any]:
        both = {"tests": ["test_it.py", "test_others.py"], "timeout": "15s"}
        measuring = asyncio.create_task(client.call_tool("measure", both))
        await asyncio.sleep(1)
        refused = await client.call_tool("verify", {"tests": ["test_it.py"]})
        return [await measuring, refused]

    answer, refused = _served(folder, ask)
    assert not answer.is_error, _text(answer)
    assert answer.structured_content["overran"] is True
    cases = {line["case"] for line in answer.structured_content["cases"]}
    assert cases == {"test_sum", "test_wrong"}
    assert answer.structured_content["passed"] == 1, "the test that was interrupted has not"
    assert "interrupted after 15s" in _text(answer)
    assert refused.is_error
    assert "would disturb another call of this server" in _text(refused)


def test_two_revisions_are_compared(folder: Path) -> None:
    """By ab, and as a row by since."""
    run_git(folder, "init", "--quiet")
    commit_all(folder, test_it__py=_PLAIN)
    commit_all(folder, test_it__py=_PLAIN.replace("1000", "5000"))

    async def ask(client: Any) -> list[Any]:
        more = {"tests": ["test_it.py"], "budget": "90s", "timeout": "5min"}
        both = {"base": "git:HEAD~1", "contender": "git:HEAD", **more}
        row = {"row": "git:HEAD~1..git:HEAD", **more}
        return [await client.call_tool("ab", both), await client.call_tool("since", row)]

    compared, row = _served(folder, ask)
    assert problems("comparison", compared.structured_content) == [], _text(compared)
    verdicts = [each["verdict"] for each in compared.structured_content["judgements"]]
    assert "regressed" in verdicts
    assert "test_it.py::test_sum" in _text(compared)
    assert problems("row", row.structured_content) == [], _text(row)
    assert [*row.structured_content["cases"]] == ["test_it.py::test_sum"]


def test_the_server_imports_no_framework(folder: Path) -> None:
    imported = programs.result(
        "-P",
        "-c",
        "import fwbench.cli.mcp, mcp.server, json, sys; print(json.dumps([*sys.modules]))",
        cwd=folder,
    )
    assert {"jax", "mxnet", "onnxruntime", "tensorflow", "torch"}.isdisjoint(imported)


def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)  # type: ignore[arg-type]
    assert cli.main(["mcp"]) == 2
    assert "pip install 'fwbench[mcp]'" in capsys.readouterr().err
