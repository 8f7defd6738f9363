"""The registry of frameworks: entry points, loaded when a framework is needed.

The registry is the entry-point group ``fwbench.frameworks``; fwbench's own frameworks are in it
like those of other packages, and there is no other list of them.
"""

import functools
import os
from collections.abc import Sequence
from importlib import metadata, util

from fwbench.errors import DeclarationError, FrameworkBroken, FrameworkMissing, FrameworkUnavailable
from fwbench.frameworks import table
from fwbench.frameworks.contract import Framework
from fwbench.terms import toggles
from fwbench.terms.names import GROUP


@functools.cache
def _claims() -> dict[str, list[metadata.EntryPoint]]:
    """Every entry point of the group by name; those that point to the same class count once."""
    claims: dict[str, list[metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=GROUP):
        points = claims.setdefault(point.name, [])
        if all(other.value != point.value for other in points):
            points.append(point)
    return claims


def registered() -> dict[str, metadata.EntryPoint]:
    """Every framework that an installed package names, by name. Nothing is imported.

    Of a name that two packages claim it is the first one; :func:`load` refuses it.
    """
    return {name: points[0] for name, points in _claims().items()}


def is_own(name: str) -> bool:
    """True if a framework is fwbench's own, and so has no dtypes and toggles but fwbench's."""
    point = registered().get(name)
    return point is not None and point.module.startswith("fwbench.frameworks.")


@functools.cache
def load(name: str, threads: int) -> Framework:
    """Import a framework into this process and have it compute with ``threads`` threads.

    Args:
        threads: the same for every framework of a session.

    Raises:
        FrameworkMissing: no package names it, or a package that it needs is not installed.
        FrameworkBroken: it is installed, and importing or starting it fails, two packages claim
            its name, it is declared wrongly, or it computes with another number of threads.
    """
    points = _claims().get(name)
    if points is None:
        raise FrameworkMissing(f"no package that is installed there names a framework {name!r}")
    _refuse_rivals(points)
    if toggles.is_on(toggles.PIN):  # before the framework starts threads, which inherit it
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    framework = _start(points[0], threads)
    actual = framework.threads()
    if actual not in (threads, None):
        raise FrameworkBroken(
            f"computes with {actual} threads, asked for {threads}",
            "its times would not compare; choose a number of threads that it can have "
            "(--fw-threads, of fwbench doctor --threads)",
        )
    return framework


def _refuse_rivals(points: Sequence[metadata.EntryPoint]) -> None:
    if len(points) > 1:
        rivals = " and ".join(f"{_package(point)} ({point.value})" for point in points)
        raise FrameworkBroken(
            f"two packages name a framework {points[0].name!r}: {rivals}", "uninstall one of them"
        )


def _start(point: metadata.EntryPoint, threads: int) -> Framework:
    try:
        framework = _made(point)
        framework.package = _package(point)
        table.check(framework.name, framework.operations, framework.gaps)
        for problem in filter(None, map(toggles.problem, framework.capabilities.own_toggles)):
            raise FrameworkBroken(problem, f"fix own_toggles of {_package(point)}")
        framework.set_threads(threads)
        return framework
    except DeclarationError as error:
        raise FrameworkBroken(f"package {_package(point)}: {error}", _fix(point)) from error
    except FrameworkUnavailable:
        raise
    except ModuleNotFoundError as error:
        raise FrameworkMissing(f"not installed ({error})", _remedy(point)) from error
    except Exception as error:
        raise FrameworkBroken(
            f"does not import ({type(error).__name__}: {error})",
            f"try it alone: python -c 'import {point.module}'",
        ) from error


def _made(point: metadata.EntryPoint) -> Framework:
    """The framework that an entry point gives, which has the name of the entry point."""
    factory = point.load()
    framework = factory() if callable(factory) else factory
    if not isinstance(framework, Framework):
        raise FrameworkBroken(
            f"package {_package(point)}: the entry point {point.name!r} ({point.value}) gives "
            f"{_kind(framework)}, which is not a fwbench.Framework",
            "let it name a class that is derived from fwbench.Framework",
        )
    if framework.name != point.name:
        raise FrameworkBroken(
            f"its entry point is named {point.name!r}, and its class {framework.name!r}",
            "give both the same name: cases are named by one and looked up by the other",
        )
    return framework


def _kind(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__!r}"


def _fix(point: metadata.EntryPoint) -> str:
    return (
        f"correct it in {point.module} or in the tables that it imports; operations of other "
        f"packages are implemented where they are declared, with @operation.implement"
        f"({point.name!r})"
    )


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown package"


#: Installers of frameworks whose wheels in the public index have gigabytes of CUDA on Linux; they
#: take the build for this machine.
_FITTING_INSTALLERS = {"torch": "pip install uv && uv pip install --torch-backend auto"}


#: Frameworks that need another NumPy than one that may be here, and the command that installs both.
_APART = {"jax": ("mxnet", 'fwbench env add jax "jax[cpu]"')}


def _remedy(point: metadata.EntryPoint) -> str:
    """Advice to install a missing framework: the extra of the same name, where there is one."""
    other, command = _APART.get(point.name, ("", ""))
    if other and util.find_spec(other):
        return f"install it apart from {other}, which needs another NumPy: {command}"
    extras = point.dist.metadata.get_all("Provides-Extra") or [] if point.dist else []
    if point.name in extras:
        installer = _FITTING_INSTALLERS.get(point.name, "pip install")
        return f"install it: {installer} '{_package(point)}[{point.name}]'"
    return f"install what {_package(point)} asks for"
