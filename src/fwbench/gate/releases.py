"""The releases of a package: which an index has, and for which of them it has wheels."""

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from fwbench.errors import ComparisonError, UsageError, unknown
from fwbench.processes import command

#: Where pip looks if nothing else is configured.
_DEFAULT_INDEX = "https://pypi.org/simple/"

#: The variables that name an index, those of uv before pip's.
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")


@dataclass(frozen=True)
class Releases:
    """The releases of a package that a row is made of.

    Attributes:
        versions: those with a wheel, the oldest first.
        gaps: why others are not among them, by version.
    """

    versions: Sequence[str]
    gaps: Mapping[str, str]

    def row(self, *, every: str, good: str | None, bad: str | None, named: Sequence[str]) -> Self:
        """The versions between two, of each minor release the last, or named ones, with their gaps.

        Args:
            every: ``patch`` for all, or ``minor`` for the last of each minor release.
            good: the first of the row; None for the oldest.
            bad: the last of the row; None for the newest.
            named: these alone, if there are any.

        Raises:
            UsageError: one of them is not there.
        """
        for version in filter(None, (good, bad, *named)):
            if version in self.gaps:
                raise UsageError(
                    f"{version}: {self.gaps[version]}; name another interpreter: --python"
                )
            if version not in self.versions:
                raise unknown("version", version, self.versions)

        def counts(version: str) -> bool:
            at = Version(version)
            return (not good or Version(good) <= at) and (not bad or at <= Version(bad))

        row = [v for v in self.versions if counts(v) and (not named or v in named)]
        if every == "minor":
            last = {Version(version).release[:2]: version for version in row}
            row = [v for v in row if v in last.values() or v in (good, bad)]
        gaps = {v: why for v, why in self.gaps.items() if counts(v) and not named}
        return replace(self, versions=row, gaps=gaps)


def releases(
    requirement: Requirement, python: tuple[int, int], index: str | None, *, pre: bool
) -> Releases:
    """The releases that satisfy a requirement, as the index has them.

    Args:
        python: major and minor version of the interpreter that needs wheels.
        index: its URL; None for the one that uv or pip is configured for.
        pre: whether pre-releases count.

    Raises:
        UsageError: there is no such package, or what reads an index is not installed.
        ComparisonError: the index does not answer.
    """
    if find_spec("unearth") is None:
        raise UsageError(
            "fwbench since asks an index for versions by way of unearth, which is not installed: "
            "pip install 'fwbench[since]'"
        )
    from unearth import PackageFinder, TargetPython

    url = index or _configured()
    every_release, wheels = (
        {
            package.version
            for package in _asked(finder, requirement.name, url)
            if package.version and _counts(package.version, requirement, pre=pre)
        }
        for finder in (
            PackageFinder(index_urls=[url], ignore_compatibility=True),
            PackageFinder(
                index_urls=[url], target_python=TargetPython(py_ver=python), only_binary=[":all:"]
            ),
        )
    )
    if not every_release:
        raise UsageError(
            f"{url} has no release of {requirement}; ask for another range"
            + ("" if pre else ", or for pre-releases, too: --pre")
        )
    reason = "no wheel for Python {}.{} on this machine".format(*python)
    return Releases(
        sorted(wheels, key=Version),
        dict.fromkeys(sorted(every_release - wheels, key=Version), reason),
    )


def index_url(root: Path, index: str) -> str:
    """The URL of an index, given by it or by the name that the project's uv settings have for it.

    Args:
        root: of the project, with ``uv.toml``, or ``[[tool.uv.index]]`` in ``pyproject.toml``.

    Raises:
        UsageError: there is no such name.
    """
    if "://" in index:
        return index
    named: dict[str, str] = {}
    for name, keys in (("pyproject.toml", ("tool", "uv")), ("uv.toml", ())):
        settings: Any = {}
        with suppress(OSError, tomllib.TOMLDecodeError):
            settings = tomllib.loads((root / name).read_text(encoding="utf-8"))
        for key in keys:
            settings = settings.get(key, {})
        named |= {each["name"]: each["url"] for each in settings.get("index", ()) if "name" in each}
    if index not in named:
        raise unknown("index", index, named)
    return named[index]


def _configured() -> str:
    """The index that uv or pip is configured for."""
    for variable in _INDEX_VARIABLES:
        if url := os.environ.get(variable):
            return url
    done = command.ask([sys.executable, "-m", "pip", "config", "get", "global.index-url"])
    return done.output.strip() if not done.status and done.output.strip() else _DEFAULT_INDEX


def _asked(finder: Any, name: str, url: str) -> list[Any]:
    try:
        return [*finder.find_all_packages(name, allow_yanked=False)]
    except Exception as error:
        raise ComparisonError(f"{url} does not answer for {name}: {error}") from error


def _counts(text: str, requirement: Requirement, *, pre: bool) -> bool:
    try:
        version = Version(text)
    except InvalidVersion:
        return False
    return requirement.specifier.contains(version, prereleases=pre)
