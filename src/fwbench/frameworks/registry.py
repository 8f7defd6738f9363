"""The registry of frameworks: entry points, loaded when a framework is needed.

The registry is the entry-point group ``fwbench.frameworks``; fwbench's own frameworks are in it
like anyone's, and there is no other list of them.
"""

from __future__ import annotations

import functools
from importlib import metadata

from fwbench.errors import (
    DeclarationError,
    FrameworkBroken,
    FrameworkMissing,
    FrameworkUnavailable,
)
from fwbench.frameworks.contract import Framework

#: The entry-point group in which packages name their frameworks.
GROUP = "fwbench.frameworks"


@functools.cache
def registered() -> dict[str, metadata.EntryPoint]:
    """Every framework that an installed package names, by name. Nothing is imported.

    Raises:
        DeclarationError: two packages claim one name.
    """
    found: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=GROUP):
        other = found.setdefault(point.name, point)
        if other.value != point.value:
            raise DeclarationError(
                f"two packages name a framework {point.name!r}: {_package(other)} ({other.value}) "
                f"and {_package(point)} ({point.value}); uninstall one of them"
            )
    return found


@functools.cache
def load(name: str, threads: int) -> Framework:
    """Import a framework into this process and have it compute with ``threads`` threads.

    Args:
        name: of the framework.
        threads: the same for every framework of a session.

    Raises:
        FrameworkMissing: nobody names it, or a package that it needs is not installed.
        FrameworkBroken: it is installed, and importing or starting it fails, or it computes with
            another number of threads.
    """
    point = registered().get(name)
    if point is None:
        raise FrameworkMissing(f"no package that is installed there names a framework {name!r}")
    framework = _start(point, threads)
    found = framework.threads()
    if found not in (threads, None):
        raise FrameworkBroken(
            f"computes with {found} threads, asked for {threads}",
            "its times would not compare; choose --fw-threads so that it can",
        )
    return framework


def _start(point: metadata.EntryPoint, threads: int) -> Framework:
    try:
        framework: Framework = point.load()()
        if framework.name != point.name:
            raise FrameworkBroken(
                f"its entry point is named {point.name!r}, and its class {framework.name!r}",
                "give both one name: cases are named by one and found by the other",
            )
        framework.set_threads(threads)
        return framework
    except FrameworkUnavailable:
        raise
    except ModuleNotFoundError as error:
        raise FrameworkMissing(f"not installed ({error})", _remedy(point)) from error
    except Exception as error:
        raise FrameworkBroken(
            f"does not import ({type(error).__name__}: {error})",
            f"try it alone: python -c 'import {point.module}'",
        ) from error


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown package"


def _remedy(point: metadata.EntryPoint) -> str:
    """How to install what is missing: the extra of the same name, where the package has one."""
    extras = point.dist.metadata.get_all("Provides-Extra") or [] if point.dist else []
    if point.name in extras:
        return f"install it: pip install '{_package(point)}[{point.name}]'"
    return f"install what {_package(point)} asks for"
