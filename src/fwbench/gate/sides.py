"""The two sides of an A/B comparison: environments, or revisions of the working tree."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from fwbench.errors import ComparisonError, UsageError, unknown
from fwbench.frameworks import registry
from fwbench.processes import command, scratch
from fwbench.processes.interruption import held
from fwbench.terms.names import framework_of
from fwbench.workers.environments import DEFAULT, VARIABLE, Environments

_REVISION = "git:"
_WORKING_TREE = "."

#: Files whose changes count; results that a job writes into the tree do not.
_SOURCES = ("--", "*.py", "*.cfg", "*.ini", "*.toml")


class Side(ABC):
    """One side of a comparison: arguments, variables and folder of its launches."""

    name: str
    tested: Sequence[str] = ()

    @property
    def arguments(self) -> list[str]:
        """The arguments of pytest that select this side."""
        return []

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of its sessions, beyond this process's."""
        return {}

    @property
    def folder(self) -> Path:
        """The directory in which pytest is started."""
        return Path.cwd()

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Description of the side, for the record."""

    def state(self) -> dict[str, Any]:
        """Description that must be the same for launches to belong to the same job."""
        return self.facts()

    @contextmanager
    def ready(self) -> Iterator[None]:
        """A context in which it can be measured."""
        yield


class Installed(Side):
    """A side that is installed: frameworks of an environment."""

    tested = ("framework", "toggles")

    def __init__(self, name: str, references: Sequence[str]) -> None:
        self.name = name
        self.references = references

    @property
    def arguments(self) -> list[str]:
        """The pytest arguments that select it: ``--fw`` and its frameworks."""
        return ["--fw", ",".join(self.references)]

    def facts(self) -> dict[str, Any]:
        """Its name and its frameworks."""
        return {"name": self.name, "frameworks": list(self.references)}


class Tree(Side):
    """The working tree as it is."""

    name = _WORKING_TREE

    def __init__(self, root: Path) -> None:
        self.root = root

    def facts(self) -> dict[str, Any]:
        """The revision, and whether there are uncommitted changes."""
        return {
            "name": self.name,
            "revision": git(self.root, "rev-parse", "HEAD"),
            "dirty": is_dirty(self.root),
        }

    def state(self) -> dict[str, Any]:
        """The revision, and a digest of changes and of new files that a suite may be made of."""
        digest = hashlib.sha256(git(self.root, "diff", "--binary", "HEAD").encode())
        listed = git(self.root, "ls-files", "--others", "--exclude-standard", "-z", *_SOURCES)
        for name in sorted(filter(None, listed.split("\0"))):
            digest.update(name.encode())
            digest.update((self.root / name).read_bytes())
        return {**self.facts(), "changes": digest.hexdigest()}


class Revision(Side):
    """A revision, checked out next to the working tree."""

    def __init__(self, root: Path, name: str, revision: str) -> None:
        self.root = root
        self.name = name
        try:
            self.commit = git(root, "rev-parse", "--verify", f"{revision}^{{commit}}")
        except ComparisonError as error:
            raise UsageError(f"{name}: git knows no such revision ({error})") from error
        self._checkout: Path | None = None

    @property
    def checkout(self) -> Path:
        """Where it is checked out, while it is ready."""
        assert self._checkout is not None  # noqa: S101 (see `ready`)
        return self._checkout

    @property
    def folder(self) -> Path:
        """The folder of the checkout that stands for this one."""
        return self.checkout / Path.cwd().relative_to(self.root)

    @property
    def variables(self) -> Mapping[str, str]:
        """The checkout's modules before those of the working tree, which may be installed."""
        inside = [Path(entry) for entry in sys.path if Path(entry).is_relative_to(self.root)]
        environment = Path(sys.prefix)
        mirrored = [
            self.checkout / entry.relative_to(self.root)
            for entry in (self.root, self.root / "src", *inside)
            if not entry.is_relative_to(environment)
        ]
        given = os.environ.get("PYTHONPATH", "")
        path = dict.fromkeys([*map(str, mirrored), *filter(None, given.split(os.pathsep))])
        return {"PYTHONPATH": os.pathsep.join(path)}

    def facts(self) -> dict[str, Any]:
        """The revision; changes in the working tree are not in it."""
        return {"name": self.name, "revision": self.commit, "dirty": False}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Checked out in a folder that goes again."""
        with checked_out(self.root, self.commit) as self._checkout:
            yield
        self._checkout = None


def sides(base: str, contender: str, environments: Environments) -> tuple[Side, Side]:
    """The two sides by their names.

    Args:
        base: ``git:REV``, ``.`` for the working tree, an environment, a framework, or ``default``.
    """
    of_tree = [name == _WORKING_TREE or name.startswith(_REVISION) for name in (base, contender)]
    if all(of_tree):
        root = _repository()
        return _of_repository(root, base), _of_repository(root, contender)
    if any(of_tree):
        raise UsageError(
            f"{base} and {contender}: one is a revision and one an environment; compare two "
            "revisions, or two environments"
        )
    installed = [_references(name, environments) for name in (base, contender)]
    base_side, contender_side = (
        Installed(name, references or [framework_of(reference) for reference in other])
        for name, references, other in zip(
            (base, contender), installed, installed[::-1], strict=True
        )
    )
    if base == contender == DEFAULT:
        base_side, contender_side = (
            Installed(DEFAULT, sorted(registry.registered())) for _ in range(2)
        )
    for reference in (*base_side.references, *contender_side.references):
        environments.interpreter_of(reference)
    common = {framework_of(name) for name in base_side.references} & {
        framework_of(name) for name in contender_side.references
    }
    if not common:
        raise UsageError(
            f"{base} has {', '.join(base_side.references)} and {contender} has "
            f"{', '.join(contender_side.references)}: they have no framework in common"
        )
    return base_side, contender_side


def is_dirty(root: Path) -> bool:
    """True if a working tree has changes that are in no revision."""
    return bool(git(root, "status", "--porcelain"))


def _of_repository(root: Path, name: str) -> Side:
    if name == _WORKING_TREE:
        return Tree(root)
    return Revision(root, name, name.removeprefix(_REVISION))


def _references(name: str, environments: Environments) -> list[str]:
    """The frameworks of an environment; none of ``default``, which takes the other side's."""
    if name == DEFAULT:
        return []
    by_name = environments.all()
    if name in by_name:
        return by_name[name].references
    if name in registry.registered() or environments.environment_of(name) is not None:
        return [name]
    known = dict.fromkeys([*by_name, *registry.registered(), DEFAULT, f"{_REVISION}REV"])
    raise unknown("side", name, [*known, _WORKING_TREE])


def _repository() -> Path:
    try:
        return Path(git(Path.cwd(), "rev-parse", "--show-toplevel"))
    except ComparisonError as error:
        raise UsageError(f"{Path.cwd()} is in no git repository ({error})") from error


def variables_of(side: Side, environments: Environments) -> dict[str, str]:
    """The environment variables of a side's launches."""
    # In a checkout the project's environments would not be found.
    return {**os.environ, VARIABLE: str(environments.folder), **side.variables}


#: Beside a checkout: the path of the repository that it is of.
_REPOSITORY = "repository"

#: Where a repository keeps what it knows of its checkouts, a folder each.
_WORKTREES = "worktrees"


def git(folder: Path, *arguments: str) -> str:
    """The output of a git command."""
    try:
        return _answer(command.ask(["git", *arguments], folder=folder), arguments[0])
    except OSError as error:
        raise ComparisonError(f"cannot run git: {error.strerror}") from error


def _answer(done: command.Captured, what: str) -> str:
    if done.status:
        raise ComparisonError(done.errors.strip() or f"git {what} failed")
    return done.output.strip()


@contextmanager
def checked_out(root: Path, commit: str) -> Iterator[Path]:
    """A commit, checked out in a folder that goes again, as does all that git notes of it."""
    repository = (root / git(root, "rev-parse", "--git-common-dir")).resolve()
    _forget_lost(repository)
    with scratch.folder() as folder, ExitStack() as stack:
        (folder / _REPOSITORY).write_text(str(repository), encoding="utf-8")
        # git calls its notes like the folder: by this name they are always found.
        checkout = folder / folder.name
        stack.callback(_forget, repository, folder.name)
        add = ["git", "worktree", "add", "--detach", str(checkout), commit]
        _answer(command.capture(add, folder=root), "worktree add")
        notes = scratch.take(repository / _WORKTREES / folder.name)
        if notes is not None:
            stack.enter_context(notes)
        yield checkout


def remove_abandoned() -> None:
    """Remove the temporary folders of killed commands, with what git notes of checkouts in them."""
    for folder in scratch.abandoned():
        with suppress(OSError):
            _forget(Path((folder / _REPOSITORY).read_text(encoding="utf-8")), folder.name)


def _forget_lost(repository: Path) -> None:
    """Remove git's notes of checkouts whose folders have gone, as when a machine is restarted."""
    for notes in (repository / _WORKTREES).glob(f"{scratch.PREFIX}*"):
        is_there = (Path(tempfile.gettempdir()) / notes.name).exists()
        if not is_there and (lock := scratch.take(notes)) is not None:
            with lock:
                _forget(repository, notes.name)


def _forget(repository: Path, name: str) -> None:
    """Remove what git notes of a checkout.

    ``git worktree remove`` does the same, but not after ``git worktree add`` was killed.
    """
    with held():
        scratch.remove(repository / _WORKTREES / name)
        with suppress(OSError):  # there are others
            (repository / _WORKTREES).rmdir()
