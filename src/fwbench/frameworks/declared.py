"""Declarations of fwbench's own frameworks, installed or not: no process is started.

A framework's module imports its framework at the top, which takes seconds, or is not installed: so
stubs stand for frameworks meanwhile.
"""

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.registry import registered
from fwbench.terms.manifest import Device, Manifest

#: Where fwbench's own frameworks are.
_PREFIX = "fwbench.frameworks."

#: What fwbench-extras has beside them.
_IDIOMS = "fwbench_extras.idioms."


def manifests() -> dict[str, Manifest]:
    """Declarations of fwbench's own frameworks for the CPU, by the framework's name.

    It has no version, and what an installed one lacks is not known.
    """
    points = [point for point in registered().values() if point.module.startswith(_PREFIX)]
    points.sort(key=lambda point: point.name)
    with stubbed({point.name for point in points}):
        return {point.name: _manifest(point.load()) for point in points}


def _manifest(framework: type[Framework]) -> Manifest:
    return Manifest(
        **framework.declared(),
        version="",
        devices=(Device("cpu", ""),),
        operations=framework.written(),
        missing={},
        threads=None,
        build={},
        sources=(),
    )


class Stub(ModuleType):
    """A module, or anything in one: it has every attribute, and gives itself when it is called."""

    __version__ = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> "Stub":
        """Returns the stub itself, which also serves as a decorator's result."""
        return self

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """Classes derived from it have no base."""
        return ()


class _Finder(MetaPathFinder, Loader):
    """Finds the stubs of packages and of all that is in them."""

    def __init__(self, packages: Collection[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A stub of that name, if its package is one to replace."""
        if fullname.partition(".")[0] not in self._packages:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stub."""
        return Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to execute."""


@contextmanager
def stubbed(packages: Collection[str]) -> Iterator[None]:
    """A context in which stubs are imported in place of packages that are not there already.

    Frameworks of fwbench's that are imported meanwhile are forgotten, since they refer to stubs;
    so are the environment variables that they set.
    """
    modules, variables = {*sys.modules}, {**os.environ}
    finder = _Finder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in {**sys.modules}.items():
            is_imported = name.startswith((_PREFIX, _IDIOMS)) and name not in modules
            if is_imported or isinstance(module, Stub):
                del sys.modules[name]
        for name in os.environ.keys() - variables:
            del os.environ[name]
