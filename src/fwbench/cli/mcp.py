"""``fwbench mcp``: the commands as tools of agents and editors, over the Model Context Protocol.

A tool runs a command in a process of its own, and returns what that writes with ``--json`` and a
short text. Nothing is measured in the server, and no framework is imported there.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from fwbench.cli.common import add_command
from fwbench.errors import FwbenchError, SuiteError, UsageError, unknown
from fwbench.options import values
from fwbench.packaged import read_table
from fwbench.processes import command, scratch
from fwbench.processes.session import JOURNAL_VARIABLE, PYTEST
from fwbench.records.units import time
from fwbench.version import __version__

_FWBENCH = ("-P", "-m", "fwbench")

#: How long a command that overran may take to keep what it has, and one that only reads to run.
_GRACE_S = 20.0
_READING_S = 60.0

#: Bytes of the longest argument of a program on Linux, and of all of them together.
_ARGUMENT_BYTES, _ARGUMENTS_BYTES = 2**17 - 1, 2**20

#: Lines of a text, and of the output in an error.
_SHOWN_LINES = 40

#: Parameters of all tools, and those that are files in the server's folder.
_ALWAYS = ("folder", "timeout")
_PATHS = ("save", "base_run", "contender_run")

#: Files that a command writes.
_FILES = ("figures", "junit", "journal", "lines")

#: What was found, and lines that say it.
_Result = tuple[dict[str, Any], Sequence[str]]


def add_to(commands: Any) -> None:
    """Add ``fwbench mcp`` to the commands."""
    add_command(commands, "mcp", _mcp)


def _mcp(_: argparse.Namespace) -> int:
    try:
        import anyio
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
        from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
    except ImportError as error:
        raise UsageError(
            "fwbench mcp needs version 2 of the SDK of the Model Context Protocol, and cannot "
            f"import it ({error}): pip install 'fwbench[mcp]'"
        ) from None
    tools = Tools(Path())

    async def list_tools(_: Any, __: Any) -> Any:
        return ListToolsResult(tools=[Tool(**each) for each in tools.described()])

    async def call_tool(_: Any, call: Any) -> Any:
        try:
            found, text = await tools.call(call.name, call.arguments or {})
        except (FwbenchError, OSError, ValueError) as error:
            found, text = None, str(error)
        content = [TextContent(type="text", text=text)]
        return CallToolResult(content=content, structured_content=found, is_error=found is None)

    async def serve() -> None:
        handlers = {"on_list_tools": list_tools, "on_call_tool": call_tool}
        server = Server("fwbench", version=__version__, **handlers)
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())

    anyio.run(serve)
    return 0


@dataclass(frozen=True)
class _Ran:
    """A command that has ended, by itself or because its time was over."""

    status: int
    output: Sequence[str]
    errors: Sequence[str]
    overran: bool


class Tools:
    """The tools of a server, as ``tools.toml`` declares them.

    Args:
        root: the folder that they work in.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._is_busy = False
        declared = read_table("fwbench.cli", "tools.toml")
        self._tools, self._parameters = declared["tools"], declared["parameters"]

    def described(self) -> Iterator[dict[str, Any]]:
        """Names, descriptions and schemas of the arguments of all tools."""
        for name, tool in self._tools.items():
            yield {
                "name": name,
                "description": tool["description"],
                "input_schema": self._schema(tool["command"]),
            }

    def _schema(self, template: str) -> dict[str, Any]:
        names = [name for name in re.findall(r"{(\w+)}", template) if name in self._parameters]
        properties = {name: self._parameters[name] for name in (*names, *_ALWAYS)}
        required = [name for name, row in properties.items() if "default" not in row]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """The result of a tool, and a text of few lines; never two tools at a time.

        Raises:
            UsageError: there is no such tool, its arguments are wrong, or another one is at work.
            SuiteError: it has come to no result.
        """
        if name not in self._tools:
            raise unknown("tool", name, self._tools)
        if self._is_busy:
            raise UsageError(
                f"{name} would disturb another call of this server, which is measuring; call it "
                "again when that has returned"
            )
        template = self._tools[name]["command"]
        given = self._checked(self._schema(template), arguments)
        _check_options(template, given.get("options", ()))
        self._is_busy = True
        try:
            with scratch.folder() as temporary:
                files = {part: str(temporary / part) for part in _FILES}
                wanted = given.pop("save", "")
                run = temporary / "run"  # results name it by its file
                run.mkdir()
                files["save"] = str(run / Path(wanted or "run.json").name)
                result = await _called(template, {**given, **files})
                if wanted and _is_written(files["save"]):
                    shutil.copyfile(files["save"], wanted)
                return result
        finally:
            self._is_busy = False

    def _checked(self, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a tool, and the defaults of others; paths are absolute."""
        import jsonschema

        for error in jsonschema.Draft202012Validator(schema).iter_errors({**arguments}):
            raise UsageError(f"{error.message}; see the schema of the tool's arguments")
        _check_texts(arguments)
        rows = schema["properties"]
        given = {name: row["default"] for name, row in rows.items() if "default" in row}
        given |= arguments
        folder = given["folder"] = self._inside(given["folder"])
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}; name one in {self._root}")
        for name in (name for name in _PATHS if given.get(name)):
            given[name] = str(self._inside(folder / given[name]))
        if save := given.get("save"):
            _check_new(Path(save))
        return given

    def _inside(self, place: str | Path) -> Path:
        """A path in the server's folder, which no link may lead out of."""
        try:
            path = (self._root / place).resolve()
            path.exists()
        except OSError as error:
            raise UsageError(f"{str(place)[:80]}: {error.strerror}; name another") from None
        if not path.is_relative_to(self._root):
            raise UsageError(
                f"{place} is outside {self._root}, where the server was started; name a place in it"
            )
        return path


async def _called(template: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The result of a command, and its text."""
    name, *words = _words(template, given)
    suite = (*_FWBENCH, "run")
    program = (*_FWBENCH, name) if name != "pytest" else PYTEST if given["tests"] else suite
    ran = await _run([*program, *words], given, values.duration(given["timeout"], "timeout"))
    found, lines = await _RESULTS.get(name, _of_figures)(ran, given)
    if not found:
        how = f"was interrupted after {given['timeout']}, its timeout, and had no result"
        ended = how if ran.overran else f"ended with exit status {ran.status}"
        last = [*ran.output, *ran.errors][-_SHOWN_LINES:]
        raise SuiteError("\n".join([f"{name} {ended}; its last output:", *last]))
    over = [f"interrupted after {given['timeout']}", *ran.errors[-2:]] if ran.overran else []
    text = [*over, *lines]
    more = [f"and {len(text) - _SHOWN_LINES} more lines"] if len(text) > _SHOWN_LINES else []
    return {**found, "overran": ran.overran}, "\n".join([*text[:_SHOWN_LINES], *more])


def _check_texts(arguments: Mapping[str, Any]) -> None:
    """Refuse what no command line can have.

    Raises:
        UsageError: a text has a null character, or they are too long.
    """
    total = 0
    for name, value in arguments.items():
        for text in value if isinstance(value, list) else [str(value)]:
            if "\0" in text:
                raise UsageError(
                    f"{name} has a null character, which no command line can have; leave it out"
                )
            size = len(text.encode("utf-8", "replace"))
            total += size
            if size > _ARGUMENT_BYTES or total > _ARGUMENTS_BYTES:
                raise UsageError(
                    f"{name} is too long for a command line, which takes {_ARGUMENT_BYTES:,} bytes "
                    f"each and {_ARGUMENTS_BYTES:,} in all; shorten it"
                )


def _check_new(save: Path) -> None:
    """Before anything is measured: what cannot be kept would be lost afterwards.

    Raises:
        UsageError: a file cannot be created there.
    """
    if save.exists():
        raise UsageError(f"{save} is there already; name a new file, or remove it")
    if not save.parent.is_dir():
        raise UsageError(
            f"cannot save {save.name}: there is no folder {save.parent}; create it, or name another"
        )


def _check_options(template: str, options: Sequence[str]) -> None:
    """Refuse options for files that the server reads: it would find nothing in its own.

    Raises:
        UsageError: an option names another file.
    """
    own = {word.partition("=")[0] for word in template.split() if "={" in word}
    for option in options:
        if (name := option.partition("=")[0]) in own:
            raise UsageError(
                f"options has {name}, which the tool sets itself; leave it out, and use the tool's "
                "other arguments"
            )


def _words(template: str, given: Mapping[str, Any]) -> Iterator[str]:
    """The words of a command, with the values of its parameters."""
    for word in template.split():
        name = word.strip("{}")
        value = given[name] if word == f"{{{name}}}" else word.format_map(given)
        if isinstance(value, bool):
            yield from [f"--{name}"] * value
        else:
            yield from value if isinstance(value, list) else [value]


async def _run(words: Sequence[str], given: Mapping[str, Any], timeout_s: float) -> _Ran:
    """Run Python; when its time is over it is interrupted, as by Ctrl-C."""
    import anyio

    with scratch.folder() as temporary:
        texts = [temporary / "output.txt", temporary / "errors.txt"]
        with command.started(
            [sys.executable, *words],
            output=texts[0],
            errors=texts[1],
            folder=given["folder"],
            variables={**os.environ, JOURNAL_VARIABLE: given["journal"]},
        ) as program:
            with anyio.move_on_after(timeout_s) as limit:
                await anyio.wait_readable(program)
            if limit.cancelled_caught:
                await anyio.to_thread.run_sync(program.end, _GRACE_S)
        output, errors = (path.read_text("utf-8", "replace").splitlines() for path in texts)
        return _Ran(program.status(), output, errors, limit.cancelled_caught)


# Results


async def _of_figures(ran: _Ran, given: Mapping[str, Any]) -> _Result:
    return _read(given["figures"]), ran.output


async def _of_list(ran: _Ran, given: Mapping[str, Any]) -> _Result:
    found = {} if ran.status else json.loads("\n".join(ran.output))
    names = {family: [*operations] for family, operations in found.items()}
    text = [f"{family}: {', '.join(each)}" for family, each in names.items()]
    return found if given["operations"] else names, text


async def _of_session(_: _Ran, given: Mapping[str, Any]) -> _Result:
    """Outcomes of tests, and the cases of a run without nulls.

    They are those of its journal if the session had no time to write the run.
    """
    save, lines = given["save"], given["lines"]
    if not _is_written(save):
        for journal in Path(given["journal"]).glob("*.jsonl"):
            await _run([*_FWBENCH, "recover", str(journal), "-o", save], given, _READING_S)
    if _is_written(save):
        await _run([*_FWBENCH, "report", save, "--json", lines], given, _READING_S)
    cases = [
        {name: value for name, value in line.items() if value is not None}
        for line in _read(lines).get("cases", ())
    ]
    found = {"cases": cases, **_outcomes(given["junit"])}
    if not any(found.values()):
        return {}, []
    counts = f"{found['passed']} passed, {len(found['failed'])} failed, {found['skipped']} skipped"
    failed = [f"{each['test']}: {each['message']}" for each in found["failed"]]
    times = [f"{case['case']}: {_time(case)}" for case in cases]
    return found, [counts, *failed, *times]


def _time(case: Mapping[str, Any]) -> str:
    condition = f" ({case['condition']})" if "condition" in case else ""
    return f"{time(case['median_s'])}{condition}" if "median_s" in case else case["outcome"]


def _outcomes(junit: str) -> dict[str, Any]:
    """Tests by outcome, from JUnit's XML; those that have failed with their messages."""
    if not _is_written(junit):
        return {"passed": 0, "skipped": 0, "failed": []}
    try:
        (suite,) = ET.parse(junit).iter("testsuite")  # noqa: S314 (our own)
    except ET.ParseError:  # the session was killed while it wrote it
        return {"passed": 0, "skipped": 0, "failed": []}
    failed = [
        {"test": f"{test.get('classname')}::{test.get('name')}", "message": each.get("message", "")}
        for test in suite.iter("testcase")
        for each in test
        if each.tag in ("failure", "error")
    ]
    # A test that was interrupted is among the cases, and in no count.
    skipped = int(suite.get("skipped", 0))
    counted = (int(suite.get(name, 0)) for name in ("failures", "errors"))
    passed = int(suite.get("tests", 0)) - skipped - sum(counted)
    return {"passed": passed, "skipped": skipped, "failed": failed}


def _is_written(path: str) -> bool:
    return Path(path).is_file() and Path(path).stat().st_size > 0


def _read(path: str) -> dict[str, Any]:
    """The content of a JSON file; empty if there is none."""
    found: dict[str, Any] = json.loads(Path(path).read_bytes()) if _is_written(path) else {}
    return found


#: Results of commands other than those that write their figures to a file.
_RESULTS = {"list": _of_list, "pytest": _of_session}
