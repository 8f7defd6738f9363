"""Environments that a comparison builds for its sides: ``fwbench ab "numpy==2.2.*" ...``.

uv resolves what a side names together with this fwbench; an environment is kept in a folder named
after what was resolved, under ``.fwbench/builds`` of the project, and used again by whatever
resolves to the same. It is complete or not there at all.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from fwbench import project
from fwbench.errors import InstallationError, StorageError, UsageError
from fwbench.processes import command, scratch
from fwbench.records.units import count, duration
from fwbench.workers import install
from fwbench.workers.environments import FACTS, Environment, complete, interpreter_in, is_known

#: Files by which pip and uv know a folder that can be installed.
BUILD_FILES = ("pyproject.toml", "setup.py")

#: Files of a project that say which versions it is used with; the first kind that there is counts.
_PINS = (("uv.lock",), ("requirements.txt", "constraints.txt"))

#: Packages that measure, of which every side has those that this fwbench takes.
_HARNESS = ("fwbench", "pytest", "pytest-benchmark")

#: Stands for the folder of a checkout, which is another one each time.
_CHECKOUT = "file:checkout"

_FILE = "file:///"

_ARCHIVES = (".whl", ".tar.gz", ".zip")

_SHOWN_WORDS, _SHOWN_LINES = 600, 15


#: How often an environment is looked at that another process is building.
_POLL_S = 0.2


@dataclass(frozen=True)
class Wanted:
    """Contents of an environment."""

    side: str
    #: As pip takes them; files and folders are URLs.
    requirements: Sequence[str] = ()
    #: Where a repository is checked out; None where requirements are all.
    checkout: Path | None = None
    #: The folder in it that is installed, relative to it.
    project: Path = Path()
    #: Of the checkout: its commit and its changes.
    identity: str = ""

    @property
    def source(self) -> Path | None:
        """The folder of the checkout that is installed."""
        return self.checkout / self.project if self.checkout else None


@dataclass(frozen=True)
class Resolved:
    """Contents of an environment, to the version."""

    #: Of all that decides on them, the interpreter included: the name of its folder.
    digest: str
    #: A requirement each, with :data:`_CHECKOUT` for the folder of the checkout.
    lines: Sequence[str]
    #: The packages that are compared.
    names: frozenset[str]
    #: Packages that are built from folders other than a fresh checkout.
    folders: Sequence[str]

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package that does not come from files."""
        pins = (re.match(r"([\w.-]+)(?:\[.*\])?==(\S+)", line) for line in self.lines)
        return {canonical(pin[1]): pin[2] for pin in pins if pin}


def requirements_of(name: str) -> list[str] | None:
    """The requirements that a side's name consists of; None if it is a name of another kind.

    A requirement has a specifier or a URL, or is the path of a wheel or of a project's folder.
    """
    whole = _requirement(name)
    if whole is not None:
        return [whole]
    parts = [_requirement(part) for part in name.split()]
    return [part for part in parts if part] if parts and all(parts) else None


def _requirement(text: str) -> str | None:
    path = Path(text).expanduser()
    is_file = path.name.endswith(_ARCHIVES) and (path.is_file() or os.sep in text)
    is_project = path.is_dir() and any((path / name).is_file() for name in BUILD_FILES)
    if text and "://" not in text and (is_file or is_project):
        if not path.exists():
            raise UsageError(f"{text}: there is no such file")
        return path.resolve().as_uri()
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    is_url = requirement.url is not None and "://" in requirement.url
    return text if is_url or requirement.specifier else None


def canonical(name: str) -> str:
    """The name of a package as environments are compared by it."""
    return str(canonicalize_name(name))


def names_of(requirements: Sequence[str]) -> frozenset[str]:
    """The packages of requirements that are no files."""
    named = (Requirement(text).name for text in requirements if not text.startswith(_FILE))
    return frozenset(map(canonical, named))


#: The interpreters that fwbench runs on, as uv takes them.
_PYTHONS = ">=3.11"


class Builder:
    """Resolves and builds the environments of a project.

    Args:
        python: the interpreter of all of them, as uv takes it; None for the one that runs this.
        extra: requirements that are added to each (``--with``).
        index: of packages, before those that uv is configured for.

    Raises:
        UsageError: there is no uv, or no such interpreter.
    """

    def __init__(
        self,
        root: Path,
        python: str | None,
        extra: Sequence[str],
        say: Callable[[str], Any],
        index: str | None = None,
    ) -> None:
        self.folder = project.own_folder(root, "builds")
        self._say = say
        self._uv = uv_program()
        self._python = self._interpreter(python)
        self._index = ["--index", index] if index else []
        self._extra = [_requirement(text) or text for text in extra]

    def _interpreter(self, python: str | None) -> str:
        if python is None:
            return sys.executable
        find = [self._uv, "python", "find", "--no-project", "--no-python-downloads", python]
        done = command.ask(find)
        if done.status:
            raise UsageError(
                f"--python {python}: uv finds no such interpreter ({first_words(done.errors)}); "
                f"give the path of one, or install it: uv python install {python}"
            )
        return done.output.strip()

    def resolve(self, wanted: Wanted, pinned: Mapping[str, str]) -> Resolved:
        """Resolve the contents of an environment.

        Args:
            pinned: versions by package, which it must keep to.

        Raises:
            UsageError: no versions satisfy all requirements.
            InstallationError: they cannot be found out.
        """
        self._log_of(wanted.side).unlink(missing_ok=True)  # of an earlier attempt
        source = [wanted.source.as_uri()] if wanted.source else []
        requirements = [*wanted.requirements, *source, *self._extra, *_harness()]
        limits = [*self._pins(wanted), *(f"{name}=={pinned[name]}" for name in pinned)]
        with scratch.folder() as temporary:
            given, limit = temporary / "requirements.in", temporary / "constraints.txt"
            given.write_text("\n".join(requirements) + "\n", encoding="utf-8")
            limit.write_text("\n".join(limits) + "\n", encoding="utf-8")
            compiling = [self._uv, "pip", "compile", "--no-header", "--no-annotate"]
            done = command.capture(
                [*compiling, *self._index, "--python", self._python, "-c", str(limit), str(given)],
                variables=install.outside(temporary),
            )
        if done.status:
            raise self._unresolved(wanted.side, done.errors)
        return self._resolved(wanted, done.output.splitlines())

    def _pins(self, wanted: Wanted) -> list[str]:
        """Versions that a checkout is used with, by its own files."""
        source = wanted.source
        for names in _PINS if source else ():
            files = [file for name in names if source and (file := source / name).is_file()]
            if files:
                texts = map(self._locked if names == _PINS[0] else _text_of, files)
                return [line for text in texts for line in _pins_in(text)]
        return []

    def _locked(self, lock: Path) -> str:
        """The versions of a ``uv.lock``, but for those of development."""
        export = [self._uv, "export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes"]
        done = command.ask([*export, "--no-header", "--no-annotate", "--project", str(lock.parent)])
        if done.status:
            raise InstallationError(f"uv cannot read {lock.name}: {first_words(done.errors)}")
        return done.output

    def _unresolved(self, side: str, errors: str) -> InstallationError | UsageError:
        if "No solution found" in errors:
            return UsageError(
                f"{side}: no versions satisfy all that its environment is to hold: "
                f"{conflict(errors)}"
            )
        log = self._log(side, errors)
        lines = "\n".join(f"  {line}" for line in errors.splitlines()[-_SHOWN_LINES:])
        return InstallationError(
            f"{side}: its environment cannot be resolved; uv's last output ({log} has all of it):"
            f"\n{lines}"
        )

    def _resolved(self, wanted: Wanted, lines: Sequence[str]) -> Resolved:
        own = wanted.checkout.as_uri() if wanted.checkout else _CHECKOUT
        lines = [line for line in lines if line and line[0] not in "#-"]
        urls = dict(entry for line in lines for entry in _local(line))
        compared = {*wanted.requirements, wanted.source.as_uri() if wanted.source else ""}
        kept = [line.replace(own, _CHECKOUT) for line in lines]
        outside = {name: _path_of(url) for name, url in urls.items()}
        outside = {name: path for name, path in outside.items() if path != wanted.source}
        identity = {
            "lines": [*kept, *_harness()],
            "files": [digest(path) for path in outside.values()],
            "checkout": wanted.identity,
            "python": self.python,
        }
        return Resolved(
            hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16],
            kept,
            names_of(wanted.requirements) | {name for name, url in urls.items() if url in compared},
            [name for name, path in outside.items() if path.is_dir()],
        )

    @cached_property
    def python(self) -> str:
        """Version and place of the interpreter that environments are built on."""
        ask = "import sys; print(sys.version, sys.base_prefix)"
        done = command.ask([self._python, "-I", "-c", ask])
        if done.status:
            raise UsageError(
                f"--python {self._python} does not run: {first_words(done.errors)}; give another"
            )
        return done.output.strip()

    @property
    def python_version(self) -> tuple[int, int]:
        """Major and minor version of the interpreter."""
        major, minor, *_ = self.python.split(".")
        return int(major), int(minor)

    def kept(self, side: str, resolved: Resolved) -> Environment | None:
        """The environment that was resolved, if it was built here, or another process builds it."""
        environment = self._environment(resolved)
        folder = environment.folder
        self._wait(f"environment of {side}", folder)
        is_there = (folder / FACTS).exists() and Path(environment.interpreter).exists()
        if not is_there or not is_known(folder, environment.interpreter):
            return None
        self._say(f"environment of {side}: kept from before")
        return environment

    def _wait(self, what: str, folder: Path) -> None:
        """Wait while another process is building an environment."""
        is_told = False
        while folder.name in install.unfinished_names(folder.parent):
            if (owner := scratch.take(folder)) is not None:  # a killed process has left it
                owner.release()
                return
            if not is_told:
                self._say(f"{what}: another process is building it")
                is_told = True
            time.sleep(_POLL_S)

    def build(self, wanted: Wanted, resolved: Resolved) -> Environment:
        """Build the environment that was resolved.

        Raises:
            InstallationError: something cannot be installed; nothing is left of it but the log.
            UsageError: another process is building it.
        """
        environment = self._environment(resolved)
        folder = environment.folder
        if (folder / FACTS).exists():  # of another machine, or without its interpreter
            install.discard(folder)
        what = f"environment of {wanted.side}"
        begun_s = time.monotonic()
        with install.claimed(folder), scratch.folder() as temporary:
            self._say(f"{what}: being built ({count(len(resolved.lines), 'package')})")
            self._fill(folder, wanted, resolved, temporary)
            _prefer_installed(environment, resolved.names)
            complete(environment)
        took = duration(time.monotonic() - begun_s)
        self._say(f"{what}: built in {took}, in {folder}")
        return environment

    def _environment(self, resolved: Resolved) -> Environment:
        folder = self.folder / resolved.digest
        version = self.python.partition(" ")[0]
        return Environment(folder.name, folder, tuple(resolved.lines), version, "uv", {})

    def _fill(self, folder: Path, wanted: Wanted, resolved: Resolved, temporary: Path) -> None:
        checkout = wanted.checkout.as_uri() if wanted.checkout else ""
        file, output = temporary / "requirements.txt", list[str]()
        lines = [*(line.replace(_CHECKOUT, checkout) for line in resolved.lines), *_harness()]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        # uv takes a project for unchanged as long as its pyproject.toml is.
        fresh = [word for name in resolved.folders for word in ("--refresh-package", name)]
        target = interpreter_in(folder)
        create = ["venv", "--allow-existing", "--python", self._python, str(folder)]
        fill = ["pip", "install", "--python", target, "-r", str(file), *fresh, *self._index]
        try:
            for arguments in (create, fill):
                install.run_installer([self._uv, *arguments], output.append, temporary)
        except InstallationError as error:
            log = self._log(wanted.side, "\n".join(output))
            raise InstallationError(
                f"{wanted.side}: its environment cannot be built ({log} has all of the output): "
                f"{error}"
            ) from error

    def _log_of(self, side: str) -> Path:
        name = re.sub(r"[^\w.=-]+", "-", side).strip("-.")[-40:] or "tree"
        return self.folder / f"{name}.log"

    def _log(self, side: str, text: str) -> Path:
        """The file that has the whole output of a build that failed."""
        log = self._log_of(side)
        try:
            project.make_own_folder(self.folder)
            log.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot write {log}: {error.strerror}") from error
        return log


def installed_pythons() -> dict[tuple[int, int], str]:
    """An interpreter of each version that is installed and fwbench can run on."""
    listing = [uv_program(), "python", "list", "--only-installed", "--output-format", "json"]
    done = command.ask([*listing, _PYTHONS])
    found: dict[tuple[int, int], str] = {}
    for entry in json.loads(done.output) if not done.status else ():
        parts = entry["version_parts"]
        found.setdefault((parts["major"], parts["minor"]), entry["path"])
    return found


def remove_unfinished(root: Path) -> None:
    """Remove what killed processes have left of builds."""
    folder = project.own_folder(root, "builds")
    install.remove_abandoned(folder)
    for name in install.unfinished_names(folder):
        if (owner := scratch.take(folder / name)) is not None:
            with owner:
                install.discard(folder / name)


def uv_program(purpose: str = "builds need") -> str:
    """The path of uv: the first on the PATH, or that of this Python's environment.

    Args:
        purpose: subject and verb of the message if there is none.

    Raises:
        UsageError: there is none.
    """
    found = shutil.which("uv") or shutil.which("uv", path=sysconfig.get_path("scripts"))
    if found is None:
        raise UsageError(
            f"{purpose} uv, which is neither on the PATH nor installed with this Python; get it: "
            "pip install uv"
        )
    return found


def _harness() -> list[str]:
    """Requirements of what measures: this fwbench, pytest and pytest-benchmark."""
    *editable, source = install.this_fwbench()
    own = f"-e {Path(source).as_uri()}" if editable else source
    return [own, *_HARNESS[1:]]


def _text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _pins_in(text: str) -> Iterator[str]:
    """The lines of a file of requirements that limit versions, without those of what measures."""
    for line in text.splitlines():
        try:
            requirement = Requirement(line.partition(" #")[0].strip())
        except InvalidRequirement:  # an option, a path, or nothing
            continue
        if requirement.specifier and canonical(requirement.name) not in _HARNESS:
            requirement.extras.clear()
            yield str(requirement)


def conflict(errors: str) -> str:
    """Explanation of a conflict by the resolver, in one line."""
    _, _, why = errors.partition("No solution found")
    why = re.split(r"\n\s*hint: ", why.partition("\n")[2])[0]
    words = " ".join(re.sub(r"^\s*(cause:|╰─▶)", "", why).split())
    return words if len(words) <= _SHOWN_WORDS else f"{words[:_SHOWN_WORDS]} ..."


def first_words(errors: str) -> str:
    """The beginning of an error message of uv, in one line."""
    return " ".join(errors.removeprefix("error: ").split())[:_SHOWN_WORDS]


def _local(line: str) -> Iterator[tuple[str, str]]:
    """The name and the URL of a resolved requirement that is a file or folder of this machine."""
    name, _, url = line.partition(" @ ")
    if url.startswith(_FILE):
        yield canonical(name.partition("[")[0]), url


def _path_of(url: str) -> Path:
    return Path(unquote(urlparse(url).path))


#: Folders of a project that are made of its sources, and others that are not installed.
_NOT_SOURCES = re.compile(r"\..*|__pycache__|build|dist|node_modules|.*\.egg-info")


def digest(path: Path, suffixes: tuple[str, ...] = ("",)) -> str:
    """A digest of a file, or of the files of a project.

    Args:
        suffixes: of the files of a project that count.
    """
    hashed = hashlib.sha256()
    sources = (file for file in _sources(path) if file.name.endswith(suffixes))
    for file in [path] if path.is_file() else sorted(sources):
        hashed.update(os.fsencode(file.relative_to(path.parent)))
        hashed.update(file.read_bytes())
    return hashed.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not _NOT_SOURCES.fullmatch(name) and not (Path(place) / name / "pyvenv.cfg").exists()
        ]
        yield from (path for name in files if (path := Path(place) / name).is_file())


# What an environment holds


def versions_in(path: Sequence[str]) -> dict[str, str]:
    """The versions of the packages in folders, by name."""
    found = metadata.distributions(path=[*path])
    return {canonical(item.name): item.version for item in found}


#: Top-level modules that tests are likely to be in themselves.
_OF_TESTS = {"tests", "test", "benchmarks", "bench"}

_GUARD = "_fwbench_compared"

#: Both sides run the same tests, whose project may lie around them: its modules must not hide those
#: that are compared.
_GUARD_TEXT = '''\
"""Imports what is compared from this environment, whatever else the path has."""

import os
import sys
from importlib.machinery import PathFinder

_NAMES = frozenset({names!r})
_FOLDER = os.path.dirname(__file__)


class Compared:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [_FOLDER]) if name in _NAMES else None


sys.meta_path.insert(0, Compared)
'''


def _prefer_installed(environment: Environment, names: frozenset[str]) -> None:
    """Have an environment import the packages that are compared from itself alone."""
    modules: set[str] = set()
    for item in metadata.distributions(path=environment.path):
        if canonical(item.name) in names:
            modules.update(_modules_of(item))
    for folder in environment.path[:1]:
        text = _GUARD_TEXT.format(names=sorted(modules - _OF_TESTS))
        (Path(folder) / f"{_GUARD}.py").write_text(text, encoding="utf-8")
        (Path(folder) / f"{_GUARD}.pth").write_text(f"import {_GUARD}\n", encoding="utf-8")


def _modules_of(distribution: Any) -> Iterator[str]:
    for file in distribution.files or ():
        first, *more = file.parts
        name = first if more else first.partition(".")[0]
        is_module = more or file.suffix in (".py", ".so", ".pyd")
        if is_module and name.isidentifier() and name != "__pycache__":
            yield name
