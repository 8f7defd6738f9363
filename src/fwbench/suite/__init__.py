"""The suite that ``fwbench run`` and ``pytest --pyargs fwbench.suite`` measure.

A checkout has its tests in ``benchmarks``, from where the wheel takes them into this package. Node
ids begin with ``benchmarks/`` wherever the files are: stored runs, baselines and the gate compare
cases by node id, and those of a checkout and of an installed fwbench are the same cases.
"""

import functools
from pathlib import Path

#: What ``--pyargs`` takes for the whole suite; a file of it is ``fwbench.suite.test_linalg``.
NAME = __name__

#: The directory that node ids of the suite begin with.
ID_FOLDER = "benchmarks"

_PACKAGE = Path(__file__).parent


@functools.cache
def folder() -> Path:
    """The directory that holds the suite's tests: this package, or ``benchmarks`` of a checkout."""
    return _PACKAGE if is_packaged() else _PACKAGE.parents[2] / ID_FOLDER


def files() -> list[Path]:
    """The suite's test files, by name."""
    return sorted(folder().glob("test_*.py"))


def is_packaged() -> bool:
    """True if this package holds the tests, so that Python finds them as modules."""
    return any(_PACKAGE.glob("test_*.py"))


def node_id(file: Path) -> str | None:
    """The node id of a file of the suite; None for any other file."""
    return f"{ID_FOLDER}/{file.name}" if file.parent == folder() else None


def module_name(file: Path) -> str | None:
    """The module that a file of the suite is; None for any other file, and in a checkout.

    Unlike its path, the name is the same in every environment that has fwbench.
    """
    return f"{NAME}.{file.stem}" if file.parent == _PACKAGE else None


def path(argument: str) -> str | None:
    """The file or directory that an argument of ``--pyargs`` stands for; None if not of the suite.

    Args:
        argument: such as ``fwbench.suite`` or ``fwbench.suite.test_linalg::test_linalg``.
    """
    name, *parts = argument.partition("::")
    if name == NAME:
        return str(folder())
    package, _, module = name.rpartition(".")
    return "".join([str(folder() / f"{module}.py"), *parts]) if package == NAME else None
