"""The releases of a package: which an index has, and for which of them it has wheels."""

import logging
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any, Self

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from fwbench.errors import ComparisonError, UsageError, unknown
from fwbench.gate.builds import conflict, first_words, uv_program
from fwbench.processes import command, scratch

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
    """All releases of a package; of a refusal, by which nothing is found, the finder only logs."""
    log, heard = logging.getLogger("unearth"), BufferingHandler(sys.maxsize)
    log.addHandler(heard)
    try:
        found = [*finder.find_all_packages(name, allow_yanked=False)]
    except Exception as error:
        raise ComparisonError(f"{url} does not answer for {name}: {error}") from error
    finally:
        log.removeHandler(heard)
    if heard.buffer and not found:
        raise UsageError(
            f"{url} names no releases of {name}: {heard.buffer[-1].getMessage()}; check the name, "
            "or ask another index: --index"
        )
    return found


def _counts(text: str, requirement: Requirement, *, pre: bool) -> bool:
    try:
        version = Version(text)
    except InvalidVersion:
        return False
    return requirement.specifier.contains(version, prereleases=pre)


@dataclass(frozen=True)
class Newer:
    """A release that is newer than what is installed."""

    package: str
    installed: str
    version: str
    #: Why it cannot be installed with the other packages; empty if it can.
    held_back: str


def newer(installed: Mapping[str, str]) -> list[Newer]:
    """The newest releases of packages that are installed side by side, by uv's configured indexes.

    The newest for this Python, and for the newest one that fwbench supports. One is held back if
    the others, from their installed versions on, cannot be installed with it. Only wheels count.

    Args:
        installed: versions by package.

    Raises:
        UsageError: there is no uv.
        ComparisonError: no index answers.
    """
    here, newest = "{}.{}".format(*sys.version_info), _newest_python()
    found: dict[tuple[str, str], str] = {}
    for python, why in ((here, ""), (newest, f"there is none for Python {here}")):
        compiled = _compiled([*installed], "--no-deps", "--python-version", python)
        if compiled.status:
            raise ComparisonError(
                "newer releases are not known, since uv gets no answer: "
                + first_words(compiled.errors)
            )
        for line in compiled.output.split():
            name, _, version = line.partition("==")
            found.setdefault((name, version), why)
    return [
        Newer(name, installed[name], version, why or _held_back(name, version, installed))
        for (name, version), why in sorted(found.items())
        if Version(version) > Version(installed[name])
    ]


def _newest_python() -> str:
    """The newest Python that fwbench supports, by its own classifiers."""
    prefix = "Programming Language :: Python :: "
    named = metadata.metadata("fwbench").get_all("Classifier") or ()
    versions = [text.removeprefix(prefix) for text in named if re.match(rf"{prefix}3\.\d+$", text)]
    return max(versions, key=Version, default="{}.{}".format(*sys.version_info))


def _held_back(package: str, version: str, installed: Mapping[str, str]) -> str:
    others = [f"{name}>={Version(at).public}" for name, at in installed.items() if name != package]
    compiled = _compiled([f"{package}=={version}", *others])
    if not compiled.status:
        return ""
    if "No solution found" not in compiled.errors:
        return first_words(compiled.errors)
    reason, _, _ = conflict(compiled.errors).partition(", we can conclude")
    return reason.removeprefix("Because ").replace(f" and you require {package}=={version}", "")


def _compiled(requirements: Sequence[str], *options: str) -> command.Captured:
    """Resolve requirements by uv; nothing is installed."""
    compiling = [uv_program("to look for newer releases takes"), "pip", "compile", *options]
    compiling += ["--no-header", "--no-annotate", "--only-binary", ":all:"]
    with scratch.folder() as temporary:
        given = temporary / "requirements.in"
        given.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        return command.ask([*compiling, "--python", sys.executable, str(given)])
