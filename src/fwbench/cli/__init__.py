"""The command line in addition to pytest's: ``fwbench COMMAND``, one module a command."""

import argparse
import difflib
import errno
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import shtab

from fwbench.cli.common import warn
from fwbench.errors import FwbenchError, UsageError
from fwbench.processes.interruption import as_keyboard_interrupt, has_arrived
from fwbench.report import escaping
from fwbench.version import __version__

_USAGE_ERROR = 2
_FAILED = 3  # 1 says that something has regressed
_INTERRUPTED = 130

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

#: Virtual memory that the libraries of a command take: with less OpenBLAS does not fail, it tries
#: for ever to get it, and no signal but SIGKILL ends that.
_ADDRESS_SPACE_BYTES = 2**29

#: What follows goes to pytest, whether or not the command has such an option, too.
_PASSED_ON = "--"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``fwbench``.

    Args:
        arguments: without the program's name; None for those of the process.

    Returns:
        The exit status: the command's own, 0 if it has none; 2 for a usage error, 3 when
        something could not be done, 130 when it was interrupted.
        docs/ci.md lists them all.
    """
    _escape_what_cannot_be_encoded()
    # A job that is cancelled removes unfinished work, as with Ctrl-C.
    with as_keyboard_interrupt():
        return _status(arguments)


def _status(arguments: Sequence[str] | None) -> int:
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        warn("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        _write_nowhere()  # the reader has closed the pipe
        return _FAILED
    except FwbenchError as error:
        warn(f"error: {error}")
        return _USAGE_ERROR if isinstance(error, UsageError) else _FAILED
    except Exception as error:  # noqa: BLE001 (Python's own exit status for it, 1, is a verdict)
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    if has_arrived():  # in a moment whose exceptions Python wraps
        warn("interrupted")
        return _INTERRUPTED
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        warn(f"error: cannot write: {error.strerror}")
        _write_nowhere()
        return _FAILED
    traceback.print_exc()
    warn(f"this is a bug of fwbench: {type(error).__name__}. Please report it with the lines above")
    return _FAILED


def _write_nowhere() -> None:
    """Let Python write the rest once more when it ends, but not where it cannot."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_address_space() -> None:
    if sys.platform != "linux":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE_BYTES:
        raise FwbenchError(
            f"virtual memory is limited to {limit / 2**20:.0f} MiB, and fwbench needs "
            f"{_ADDRESS_SPACE_BYTES / 2**20:.0f} MiB without its launches; raise the limit: "
            "ulimit -v unlimited"
        )


def _run(arguments: Sequence[str] | None) -> int:
    _check_address_space()
    parser = build_parser()
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    parsed, more = parser.parse_known_args(given)
    if not hasattr(parsed, "run"):
        parser.exit(_USAGE_ERROR, parser.format_help())
    takes_more = getattr(parsed, "takes_more", False)
    if more and not takes_more:
        parsed.parser.error(f"unrecognized arguments: {' '.join(more)}{_meant(parsed, more[0])}")
    if takes_more and _PASSED_ON in given:
        # argparse leaves the sign among the others, where pytest would take options for files.
        place = given.index(_PASSED_ON)
        parsed, more = parser.parse_known_args(given[:place])
        more += given[place + 1 :]
    parsed.more = more
    run: Callable[[argparse.Namespace], int] = parsed.run
    status = run(parsed)
    sys.stdout.flush()  # while a closed pipe can still be distinguished from a bug
    return status


def _meant(parsed: argparse.Namespace, option: str) -> str:
    """The option of a command that is most like one that it does not have, as advice."""
    every = (flag for action in parsed.parser._actions for flag in action.option_strings)  # noqa: SLF001
    flags = {flag.lstrip("-"): flag for flag in every}  # all are alike in these
    close = difflib.get_close_matches(option.partition("=")[0].lstrip("-"), flags, n=1)
    return f"; did you mean {flags[close[0]]}?" if close else ""


def _escape_what_cannot_be_encoded() -> None:
    """Escape characters that the terminal cannot show, instead of losing a verdict."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 (closed by a shell)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _commands() -> Sequence[Any]:
    """The commands, imported within :func:`main`: in that half a second Ctrl-C says no more."""
    from fwbench.cli import (
        ab,
        doctor,
        env,
        explain,
        gate,
        mcp,
        operations,
        recover,
        report,
        run,
        since,
    )

    return run, ab, since, doctor, env, gate, explain, operations, recover, report, mcp


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(escaping.terminal(message))


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of ``fwbench`` with all of its commands."""
    parser = _Parser(
        prog="fwbench",
        description="Benchmarks of deep-learning frameworks. fwbench COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"fwbench {__version__}")
    shtab.add_argument_to(parser, help="print a completion script for a shell: docs/installing.md")
    commands = parser.add_subparsers(metavar="COMMAND")
    for command in _commands():
        command.add_to(commands)
    return parser
