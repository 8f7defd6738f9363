"""``fwbench run``: the suite, measured by pytest."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from fwbench import suite
from fwbench.errors import SuiteError
from fwbench.processes import session

#: The settings of a checkout for ``pytest benchmarks``, as options (pyproject.toml says why).
DEFAULTS = ("--benchmark-max-time=0.06", "-Wignore::DeprecationWarning:gast.astn")

_DESCRIPTION = f"""\
Measure the suite in a session of pytest, started where you are. Every argument goes to pytest:
fwbench run ARGUMENTS is

  pytest {" ".join(DEFAULTS)} --pyargs fwbench.suite ARGUMENTS

so that it measures as a checkout does; the same options among your arguments win. Settings are
those of the project around the current directory (pytest.ini, pyproject.toml), whose .fwbench and
.benchmarks keep the records; without a project, the current directory does. The exit status is
pytest's.
"""

_EXAMPLES = """\
examples:
  fwbench run                              representatives of every family, two sizes each
  fwbench run --fw numpy,torch             of these frameworks
  fwbench run -k "gemm and mxnet"          operations by name
  fwbench run --fw-family linalg,fft       all operations of these families
  fwbench run --benchmark-json=run.json    and keep the numbers: fwbench report run.json
  fwbench run benchmarks/test_linalg.py    one file; ids of cases are taken, too

pytest --help lists all options: those of fwbench under "fwbench", those of pytest-benchmark under
"benchmark". fwbench list lists the operations, fwbench doctor the frameworks.
"""


def add_to(commands: Any) -> None:
    """Add ``fwbench run`` to the commands."""
    parser = commands.add_parser(
        "run",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="fwbench run [pytest arguments]",
        help="measure the suite",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.set_defaults(run=_run, takes_more=True)


def _run(arguments: argparse.Namespace) -> int:
    session.become(pytest_arguments(arguments.more))


def pytest_arguments(given: Sequence[str]) -> list[str]:
    """The arguments of the session of pytest that measures the suite.

    Args:
        given: the user's. Files and cases of the suite are named as records and reports name them,
            wherever the suite is installed.
    """
    files = suite.files()
    if not files:
        raise SuiteError(
            f"{suite.folder()} has no test_*.py: fwbench's suite is missing; reinstall"
        )
    modules = {suite.node_id(file): f"{suite.NAME}.{file.stem}" for file in files}
    arguments = [*given[1:]] if given[:1] == ["--"] else [*given]
    named = [_named(argument, modules) for argument in arguments]
    return [*DEFAULTS, "--pyargs", *([suite.NAME] if named == arguments else []), *named]


def _named(argument: str, modules: Mapping[str | None, str]) -> str:
    """An argument, with a file of the suite as the module that ``--pyargs`` finds."""
    file, *parts = argument.partition("::")
    return "".join([modules.get(file, file), *parts])
