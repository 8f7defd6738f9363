"""``fwbench run``: the suite, measured by pytest."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from fwbench import suite
from fwbench.cli.common import add_command
from fwbench.errors import SuiteError
from fwbench.processes import session

#: The settings of a checkout for ``pytest benchmarks``, as options (pyproject.toml says why).
DEFAULTS = ("--benchmark-max-time=0.03", "-Wignore::DeprecationWarning:gast.astn")


def add_to(commands: Any) -> None:
    """Add ``fwbench run`` to the commands."""
    parser = add_command(commands, "run", _run, defaults=" ".join(DEFAULTS))
    parser.set_defaults(takes_more=True)


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
