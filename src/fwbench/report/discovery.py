"""Extensions of reports: each is a module, in fwbench or in another package.

fwbench's own sections and charts are the modules of a package. All others, and every study, are
named by the entry points of a group (``fwbench.sections``, ``fwbench.charts``,
``fwbench.studies``). There is no other list of them.
"""

import functools
import importlib
import pkgutil
from collections.abc import Iterable
from importlib import metadata
from types import ModuleType
from typing import Any

from fwbench.errors import DeclarationError


@functools.cache
def extensions(package: ModuleType | None, group: str, *needed: str) -> tuple[Any, ...]:
    """The modules of a package and those that entry points name, sorted by their ``ORDER``.

    Args:
        package: of fwbench's own modules; None if it has none of this kind.
        needed: what a module must define, in addition to ``ORDER``.

    Raises:
        DeclarationError: a module of another package cannot be imported, or lacks what is needed.
    """
    modules = pkgutil.iter_modules(package.__path__, f"{package.__name__}.") if package else ()
    internal = [importlib.import_module(module.name) for module in modules]
    external = [_loaded(point, (*needed, "ORDER")) for point in metadata.entry_points(group=group)]
    every = sorted([*internal, *external], key=lambda module: (module.ORDER, module.__name__))
    return tuple(every)


def _loaded(point: metadata.EntryPoint, needed: Iterable[str]) -> Any:
    package = point.dist.name if point.dist else "an unknown package"
    described = f"the package {package} names {point.value} in {point.group}"
    try:
        module = point.load()
    except Exception as error:
        raise DeclarationError(
            f"{described}, which cannot be imported ({type(error).__name__}: {error}); fix or "
            "uninstall it"
        ) from error
    missing = [name for name in needed if not hasattr(module, name)]
    if missing:
        raise DeclarationError(
            f"{described}, which does not define {', '.join(missing)}; see docs/extending.md"
        )
    return module
