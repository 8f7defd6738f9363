"""Arguments that are not understood are errors, and asking for help is none."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench import cli
from fwbench.errors import StorageError, UsageError
from fwbench.version import __version__
from support import programs
from support.gangs import out
from support.launched_runs import entry, write
from support.tables import tabled


@tabled
def test_what_is_not_understood_exits_with_2_and_help_with_0(
    capsys: pytest.CaptureFixture[str], arguments: str, status: int, said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments.split())
    assert caught.value.code == status
    captured = capsys.readouterr()
    assert said.format(version=__version__) in (captured.err if status else captured.out)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit it")
def test_too_little_virtual_memory_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In it libraries would not come to their end."""
    monkeypatch.setattr("resource.getrlimit", lambda _: (200 * 2**20, -1))
    assert cli.main(["ab", "git:HEAD", "."]) == 3
    err = capsys.readouterr().err
    assert "memory is limited to 200 MiB" in err
    assert "ulimit -v unlimited" in err


@pytest.mark.parametrize(
    ("option", "meant"), [("--peeks", "; did you mean --peaks?"), ("--zzz", ""), ("--bogus", "")]
)
def test_the_option_that_is_meant_is_named(
    capsys: pytest.CaptureFixture[str], option: str, meant: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["doctor", option])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("usage: fwbench doctor ")
    assert err.endswith(f"fwbench doctor: error: unrecognized arguments: {option}{meant}\n")


def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--print-completion", "bash"])
    script = capsys.readouterr().out
    for words, completed in (("fwbench rec", "recover"), ("fwbench gate --fail", "--fail-on")):
        requested = f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_fwbench"
        command = ["bash", "-c", f"{script}\n{requested}; echo ${{COMPREPLY[@]}}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [completed]


def _raises(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


def _command(run: Callable[[argparse.Namespace], int]) -> Any:
    def add_to(commands: Any) -> None:
        commands.add_parser("tried").set_defaults(run=run)

    return SimpleNamespace(add_to=add_to)


@pytest.mark.parametrize(
    ("run", "status", "expected_text"),
    [
        (lambda _: 0, 0, ""),
        (lambda _: 11, 11, ""),
        (_raises(UsageError("no such case")), 2, "fwbench: error: no such case\n"),
        (_raises(StorageError("the disk is full")), 3, "fwbench: error: the disk is full\n"),
        (_raises(KeyboardInterrupt()), 130, "fwbench: interrupted\n"),
        (_raises(KeyError("x")), 3, "this is a bug of fwbench: KeyError"),
        (_raises(RecursionError()), 3, "this is a bug of fwbench: RecursionError"),
        (_raises(MemoryError()), 3, "this is a bug of fwbench: MemoryError"),
    ],
    ids=["done", "verdict", "usage", "failure", "interrupt", "bug", "depth", "memory"],
)
def test_each_ending_has_its_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: Callable[[argparse.Namespace], int],
    status: int,
    expected_text: str,
) -> None:
    """Only a verdict is 1, and a bug shows where it is."""
    monkeypatch.setattr(cli, "_commands", lambda: (_command(run),))
    assert cli.main(["tried"]) == status
    errors = capsys.readouterr().err
    assert expected_text in errors
    assert ("Traceback" in errors) == ("bug" in expected_text)


def test_all_behind_two_dashes_goes_to_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that the command has as well, too; and the sign itself does not."""
    given: list[argparse.Namespace] = []

    def add_to(commands: Any) -> None:
        command = commands.add_parser("tried", allow_abbrev=False)
        command.add_argument("base")
        command.add_argument("--pairs")
        command.set_defaults(run=given.append, takes_more=True)

    monkeypatch.setattr(cli, "_commands", lambda: (SimpleNamespace(add_to=add_to),))
    cli.main(["tried", "numpy", "tests", "--pairs", "3", "--", "--fw-threads=1", "--pairs", "--"])
    (parsed,) = given
    assert (parsed.base, parsed.pairs) == ("numpy", "3")
    assert parsed.more == ["tests", "--fw-threads=1", "--pairs", "--"]


def test_what_is_said_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of cases come from files that were sent."""
    made = entry(load="high")
    made["param"] = "gemm\x1b[2J"
    path = write(tmp_path / "run.json", made)
    expected_text = out(capsys, "gate", str(path), str(path), status=2)
    assert "\x1b" not in expected_text
    assert "gemm\\x1b[2J: load is 'high'" in expected_text


@pytest.mark.parametrize(
    "arguments", [("--what\x1b[2J",), ("gate", "--threshol=\x1b[2J", "a", "b")]
)
def test_what_argparse_says_moves_no_cursor(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["list", *arguments] if len(arguments) == 1 else arguments)
    printed = capsys.readouterr().err
    assert "\x1b" not in printed
    assert "\\x1b[2J" in printed


_PRINTS = """
import sys
from types import SimpleNamespace
from fwbench import cli

def run(_):
    for _ in range({lines}):
        print({text!r})
    return 0

def add_to(commands):
    commands.add_parser("tried").set_defaults(run=run)

cli._commands = lambda: (SimpleNamespace(add_to=add_to),)
sys.exit(cli.main(["tried"]))
"""


@pytest.mark.parametrize("lines", [1, 100_000], ids=["at its end", "while it prints"])
def test_a_closed_pipe_ends_quietly(lines: int) -> None:
    """Whoever reads may stop; nobody is shown a traceback for it."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PRINTS.format(lines=lines, text="a line")],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (3, "")


def test_what_cannot_be_encoded_is_escaped() -> None:
    """A name of a case is no reason to lose a verdict."""
    program = _PRINTS.format(lines=1, text="größe \ud800")
    done = programs.run("-c", program, variables={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "gr\\xf6\\xdfe \\ud800\n"
