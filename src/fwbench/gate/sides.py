"""The two sides of an A/B comparison: environments, builds, or revisions of the working tree."""

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from fnmatch import fnmatch
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from fwbench.errors import ComparisonError, UsageError, some, unknown
from fwbench.frameworks import registry
from fwbench.gate import builds
from fwbench.gate.builds import BUILD_FILES, Builder, Resolved, Wanted
from fwbench.gate.verdicts import VersionChange
from fwbench.processes import command, scratch
from fwbench.processes.interruption import held
from fwbench.project import rooted
from fwbench.terms.names import framework_of
from fwbench.workers.environments import DEFAULT, VARIABLE, Environment, Environments

REVISION = "git:"

#: Digits of a commit that name it.
_SHORT = 9
_WORKING_TREE = "."

#: As the extra ``explain`` has it.
_SAMPLER = "pyinstrument>=5,<6"

#: Advice where older commits may be lacking.
_SHALLOW = (
    "; this clone is shallow and lacks older commits: git fetch --unshallow --tags adds them, and "
    "so does fetch-depth: 0 of actions/checkout"
)

#: Files that decide on what else is installed, and those that a build compiles.
_DEPENDENCIES = (
    *("pyproject.toml", "setup.py", "setup.cfg", "*.lock"),
    *("requirements*.txt", "constraints*.txt"),
)
_COMPILED = (
    *("*.c", "*.cc", "*.cpp", "*.cxx", "*.cu", "*.h", "*.hpp", "*.pyx", "*.pxd", "*.pxi", "*.rs"),
    *("*.f", "*.f90"),
)

#: Files whose changes count; results that a job writes into the tree do not.
_SOURCES = ("--", "*.py", "*.cfg", "*.ini", "*.toml", *_DEPENDENCIES, *_COMPILED)


class Side(ABC):
    """One side of a comparison: arguments, variables and folder of its launches."""

    name: str
    tested: Sequence[str] = ()

    #: Advice where a launch breaks down.
    remedy: str = ""

    @property
    def interpreter(self) -> str:
        """The Python whose pytest runs its launches."""
        return sys.executable

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the packages of its interpreter, by name."""
        return {"python": platform.python_version(), **builds.versions_in(sys.path)}

    def check(self) -> None:
        """Find out before a launch whether it can still be measured.

        Raises:
            ComparisonError: its environment has gone.
        """
        if not Path(self.interpreter).exists():
            raise ComparisonError(
                f"the environment of {self.name} has gone: {self.interpreter} was there when the "
                "comparison began; the same command builds it again, and with --resume it goes on "
                "with the finished pairs"
            )

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

    @property
    def checkout_of(self) -> tuple[Path, Path] | None:
        """A repository, and the checkout that its launches must import instead; None without."""
        return None

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

    def sampling(self) -> AbstractContextManager[None]:
        """A context in which its environment, once it is ready, has what samples functions, too."""
        return nullcontext()


class Installed(Side):
    """A side that is installed: frameworks of an environment."""

    tested = ("framework", "toggles")

    def __init__(self, name: str, references: Sequence[str]) -> None:
        self.name = name
        self.references = references

    @property
    def arguments(self) -> list[str]:
        """The pytest arguments that select it: ``--fw`` and its frameworks; without, all."""
        return ["--fw", ",".join(self.references)] if self.references else []

    def facts(self) -> dict[str, Any]:
        """Its name and its frameworks."""
        return {"name": self.name, "frameworks": list(self.references)}


class Tree(Side):
    """The working tree as it is."""

    name = _WORKING_TREE

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def arguments(self) -> list[str]:
        """The arguments of pytest for node ids like a revision's."""
        return rooted(self.root, self.root)

    @property
    def variables(self) -> Mapping[str, str]:
        """Its modules before those that are installed, as a revision's are."""
        return _first_in_path(self.root, self.root)

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
        for name in self.new_files():
            digest.update(name.encode())
            digest.update(_contents(self.root / name))
        return {**self.facts(), "changes": digest.hexdigest()}

    @property
    def identity(self) -> str:
        """Identity of its files: the commit, and its changes if there are any."""
        state = self.state()
        is_clean = state["changes"] == hashlib.sha256().hexdigest()
        return str(state["revision"]) + ("" if is_clean else f" {state['changes']}")

    @contextmanager
    def source(self) -> Iterator[Path]:
        """A checkout with its changes, so that no build writes into the tree."""
        changed = _names(git(self.root, "diff", "--name-only", "--no-renames", "-z", "HEAD"))
        with checked_out(self.root, "HEAD") as checkout:
            for name in (*changed, *self.new_files()):
                copy = checkout / name
                if (self.root / name).is_file():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(self.root / name, copy)
                elif not copy.is_dir():  # as submodules are, which are not checked out
                    copy.unlink(missing_ok=True)
            yield checkout

    def new_files(self) -> list[str]:
        """The new files that count, which no revision has."""
        return _names(git(self.root, "ls-files", "--others", "--exclude-standard", "-z", *_SOURCES))


class Revision(Side):
    """A revision, checked out next to the working tree."""

    def __init__(self, root: Path, name: str, revision: str) -> None:
        self.root = root
        self.name = name
        try:
            self.commit = git(root, "rev-parse", "--verify", f"{revision}^{{commit}}")
        except ComparisonError as error:
            hint = _SHALLOW if _is_shallow(root) else ""
            raise UsageError(f"{name}: git knows no such revision ({error}){hint}") from error
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
    def arguments(self) -> list[str]:
        """The arguments of pytest for node ids like the working tree's."""
        return rooted(self.root, self._checkout or self.root)

    @property
    def variables(self) -> Mapping[str, str]:
        """The checkout's modules before those of the working tree, which may be installed."""
        return _first_in_path(self.root, self.checkout)

    @property
    def checkout_of(self) -> tuple[Path, Path]:
        """The repository, and its checkout."""
        return self.root, self.checkout

    def facts(self) -> dict[str, Any]:
        """The revision; changes in the working tree are not in it."""
        return {"name": self.name, "revision": self.commit, "dirty": False}

    @property
    def identity(self) -> str:
        """Identity of its files: the commit."""
        return self.commit

    @contextmanager
    def source(self) -> Iterator[Path]:
        """A checkout of its own."""
        with checked_out(self.root, self.commit) as checkout:
            yield checkout

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Checked out in a folder that goes again."""
        with checked_out(self.root, self.commit) as self._checkout:
            if not self.folder.is_dir():
                raise UsageError(
                    f"{self.name} has no folder {Path.cwd().relative_to(self.root)}, in which its "
                    "launches would be started: start the comparison in a folder that both sides "
                    "have, and name tests behind --"
                )
            yield
        self._checkout = None


def _first_in_path(root: Path, tree: Path) -> dict[str, str]:
    """The variable by which modules of a tree are found first, where this process has the root's.

    Args:
        tree: the root itself, or a checkout of it.
    """
    repository, environment = root.resolve(), Path(sys.prefix).resolve()
    entries = [Path(entry).resolve() for entry in sys.path if Path(entry).is_absolute()]
    inside = [
        entry.relative_to(repository)
        for entry in (*entries, *_editable_folders())
        if entry.is_relative_to(repository)
        and not (environment.is_relative_to(repository) and entry.is_relative_to(environment))
    ]
    mirrored = [tree, tree / "src", *(tree / entry for entry in inside)]
    given = os.environ.get("PYTHONPATH", "")
    path = dict.fromkeys([*map(str, mirrored), *filter(None, given.split(os.pathsep))])
    return {"PYTHONPATH": os.pathsep.join(path)}


def _editable_folders() -> Iterator[Path]:
    """The folders of packages that setuptools has installed in editable mode, by a finder."""
    for finder in sys.meta_path:
        module = sys.modules.get(getattr(finder, "__module__", ""))
        mapping = getattr(module, "MAPPING", None)
        for name, path in mapping.items() if isinstance(mapping, dict) else ():
            parts, place = tuple(name.split(".")), Path(path).resolve()
            if place.parts[-len(parts) :] == parts:  # or else no folder finds it by its name
                yield place.parents[len(parts) - 1]


class Built(Side):
    """A side with an environment of its own, which is built from requirements or a revision."""

    tested = ("framework", "toggles")
    remedy = "what its tests need besides the package is added to both sides by --with"

    def __init__(
        self, name: str, requirements: Sequence[str] = (), tree: Tree | Revision | None = None
    ) -> None:
        self.name = name
        self._requirements = requirements
        self.references = _frameworks_of(requirements)
        #: The revision that is installed; None where requirements are all.
        self.tree = tree
        #: The revision whose tests are run; None for those of the current folder.
        self.tests: Tree | Revision | None = None
        self._builder: Builder | None = None
        self._resolved: Resolved | None = None
        self._environment: Environment | None = None

    def resolve(self, builder: Builder, pinned: Mapping[str, str]) -> None:
        """Resolve what its environment holds; see :meth:`Builder.resolve`."""
        with self._wanted() as wanted:
            self._resolved = builder.resolve(wanted, pinned)
        self._builder = builder

    @contextmanager
    def _wanted(self) -> Iterator[Wanted]:
        if self.tree is None:
            yield Wanted(self.name, self._requirements)
            return
        inner = _project_in(self.tree.root)
        with self.tree.source() as checkout:
            if not any((checkout / inner / name).is_file() for name in BUILD_FILES):
                raise UsageError(
                    f"{self.name} cannot be built: {inner} has neither of {', '.join(BUILD_FILES)} "
                    "in it; compare revisions without --build, in this environment"
                )
            yield Wanted(self.name, self._requirements, checkout, inner, self.tree.identity)

    @property
    def arguments(self) -> list[str]:
        """``--fw`` and the frameworks that are compared; without, all of its environment."""
        rooted = self.tests.arguments if self.tests else []
        return [*(["--fw", ",".join(self.references)] if self.references else []), *rooted]

    @property
    def resolved(self) -> Resolved:
        """The contents of its environment, once :meth:`resolve` has found them."""
        assert self._resolved is not None  # noqa: S101 (see `resolve`)
        return self._resolved

    @property
    def environment(self) -> Environment:
        """Its environment, while it is ready."""
        assert self._environment is not None  # noqa: S101 (see `ready`)
        return self._environment

    @property
    def interpreter(self) -> str:
        """The Python of its environment."""
        return self.environment.interpreter

    @property
    def versions(self) -> dict[str, str]:
        """The versions in its environment, by package."""
        installed = builds.versions_in(self.environment.path)
        return {"python": self.environment.python, **installed}

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that activate its environment."""
        programs = str(Path(self.interpreter).parent)
        path = os.pathsep.join(filter(None, [programs, os.environ.get("PATH")]))
        return {"VIRTUAL_ENV": str(self.environment.folder), "PATH": path}

    @property
    def checkout_of(self) -> tuple[Path, Path] | None:
        """The same of its tests; None for those of the current folder, which are the tree's."""
        return self.tests.checkout_of if self.tests else None

    @property
    def folder(self) -> Path:
        """The folder of the tests."""
        return self.tests.folder if self.tests else Path.cwd()

    def facts(self) -> dict[str, Any]:
        """Its environment, by the digest of its contents, and its revision."""
        facts = self.tree.facts() if self.tree else {"name": self.name}
        return {**facts, "environment": self.resolved.digest, "tests": _name_of(self.tests)}

    def state(self) -> dict[str, Any]:
        """The same, with the changes of a working tree."""
        return {**(self.tree.state() if self.tree else {}), **self.facts()}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Built, unless it is kept from before; with the tests, if they are its own."""
        self._build()
        with self.tree.ready() if self.tree and self.tree is self.tests else nullcontext():
            yield

    def _build(self) -> None:
        assert self._builder is not None  # noqa: S101 (see `resolve`)
        self._environment = self._builder.kept(self.name, self.resolved)
        if self._environment is None:
            with self._wanted() as wanted:
                self._environment = self._builder.build(wanted, self.resolved)

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """In an environment of the same versions that has what samples, too.

        What is timed does without it, so that figures are the same whether they are explained.
        """
        assert self._builder is not None  # noqa: S101 (see `resolve`)
        own = self._requirements, self._resolved, self._environment
        try:
            self._requirements = [*self._requirements, _SAMPLER]
            self.resolve(self._builder, self.resolved.versions)
            self._build()
            yield
        finally:
            self._requirements, self._resolved, self._environment = own


def _frameworks_of(requirements: Sequence[str]) -> list[str]:
    return sorted(builds.names_of(requirements) & {*registry.registered()})


def _name_of(tests: Tree | Revision | None) -> str:
    return "this folder" if tests is None else tests.name


def sides(
    base: str, contender: str, environments: Environments, *, build: bool = False
) -> tuple[Side, Side]:
    """The two sides by their names.

    Args:
        base: ``git:REV``, ``.`` for the working tree, an environment, a framework, ``default``, or
            what can be installed: a requirement, a wheel, or the folder of a project.
        build: revisions, too, have environments of their own.
    """
    required = [_required(name, environments) for name in (base, contender)]
    if build or any(required):
        return _with_builds((base, contender), required, environments, build=build)
    of_tree = [_is_of_tree(name) for name in (base, contender)]
    if all(of_tree):
        root = _repository()
        return _of_repository(root, base), _of_repository(root, contender)
    if any(of_tree):
        _references(contender if of_tree[0] else base, environments)
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
            f"{', '.join(contender_side.references)}: they have no framework in common. Different "
            "frameworks are contestants of one session: pytest --fw "
            f"{','.join([*base_side.references, *contender_side.references])} --fw-race"
        )
    return base_side, contender_side


def revisions(text: str, *, build: bool) -> list[Side]:
    """The revisions of ``git:REV..git:REV`` by first parents, the oldest first; built or not.

    Raises:
        UsageError: these are not two, or the second one has no commit that the first one lacks.
    """
    first, found, last = text.removeprefix(REVISION).partition("..")
    if not (found and first and last.removeprefix(REVISION)):
        raise UsageError(f"{text} is one revision, and a row takes two: git:v1.0..git:HEAD")
    root = _repository()
    ends = [Revision(root, name, name) for name in (first, last.removeprefix(REVISION))]
    commits = git(
        root, "rev-list", "--first-parent", "--reverse", f"{ends[0].commit}..{ends[1].commit}"
    )
    if not commits:
        raise _no_row(text, *ends)
    row = [ends[0].commit, *commits.split()]
    trees = [Revision(root, commit[:_SHORT], commit) for commit in row]
    return [Built(tree.name, tree=tree) for tree in trees] if build else [*trees]


def _no_row(text: str, first: Revision, last: Revision) -> UsageError:
    """The error for two revisions of which the second one brings no commit."""
    if first.commit == last.commit:
        return UsageError(
            f"{text} is one revision, and a row takes two: name an ancestor first, "
            "git:v1.0..git:HEAD"
        )
    turned = f"{REVISION}{last.name}..{REVISION}{first.name}"
    return UsageError(
        f"{text} is in the wrong order: {last.name} is an ancestor of {first.name}; use {turned}"
    )


def _is_of_tree(name: str) -> bool:
    return name == _WORKING_TREE or name.startswith(REVISION)


def _required(name: str, environments: Environments) -> list[str] | None:
    """The requirements that a name consists of, unless it has another meaning."""
    is_known = name in (*environments.names(), *registry.registered(), DEFAULT)
    return None if is_known or _is_of_tree(name) else builds.requirements_of(name)


def _with_builds(
    names: tuple[str, str],
    required: Sequence[list[str] | None],
    environments: Environments,
    *,
    build: bool,
) -> tuple[Side, Side]:
    """Two sides of which one or both are built; the other may be what runs this."""
    made: list[Side] = []
    for name, requirements in zip(names, required, strict=True):
        if requirements:
            made.append(Built(name, requirements))
        elif _is_of_tree(name) and build:
            made.append(Built(name, tree=_of_repository(_repository(), name)))
        elif _is_of_tree(name):
            raise UsageError(
                f"{names[0]} and {names[1]}: one is built, and {name} would share the environment "
                "that runs this; add --build, and both are built"
            )
        elif name == DEFAULT:
            other = [text for texts in required for text in texts or ()]
            made.append(Installed(DEFAULT, _frameworks_of(other)))
        else:
            _references(name, environments)
            raise UsageError(
                f"{names[0]} and {names[1]}: {name} is installed already, and builds are compared "
                "with each other, or with default; name its requirement (PACKAGE==VERSION)"
            )
    if not any(isinstance(side, Built) for side in made):
        raise UsageError(
            "--build: default is installed already; name a revision or a requirement to build"
        )
    return made[0], made[1]


def place_tests(both: tuple[Side, Side], given: str | None) -> str:
    """Decide whose tests both sides run, and say so; empty where each runs its own.

    Args:
        given: ``base`` or ``contender``; None for the contender's, if it has any.
    """
    base, contender = both
    trees = {
        "contender": contender.tree if isinstance(contender, Built) else None,
        "base": base.tree if isinstance(base, Built) else None,
    }
    if given and not trees[given]:
        name = {"base": base.name, "contender": contender.name}[given]
        raise UsageError(
            f"--tests {given}: {name} brings no tests for both sides, as revisions that are built "
            "do (--build); leave it out"
        )
    built = [side for side in both if isinstance(side, Built)]
    tests = trees[given] if given else trees["contender"] or trees["base"]
    for side in built:
        side.tests = tests if len(built) == len(both) else None
    return f"both sides run the tests of {_name_of(built[0].tests)}" if built else ""


def resolve(both: tuple[Side, Side], builder: Builder, pins: Sequence[str]) -> None:
    """Resolve the environments of the sides that are built.

    Args:
        pins: packages of which both sides have the version that the base's environment has.

    Raises:
        UsageError: they cannot be resolved, or have nothing in common that could be compared.
    """
    base, contender = both
    if isinstance(base, Built):
        base.resolve(builder, {})
    if isinstance(contender, Built):
        contender.resolve(builder, _pinned(base, pins))
    elif pins:
        raise UsageError(
            f"--pin {pins[0]}: {contender.name} is as it is; make it the base, whose version the "
            "other side takes"
        )
    if not (isinstance(base, Built) and isinstance(contender, Built)):
        return
    names = base.resolved.names, contender.resolved.names
    if not (names[0] & names[1]) and not (base.tree and contender.tree):
        raise UsageError(
            f"{base.name} is {' and '.join(sorted(names[0]))}, {contender.name} is "
            f"{' and '.join(sorted(names[1]))}: they have no package in common; compare two "
            "versions of one, and add what both need by --with"
        )


def _pinned(base: Side, pins: Sequence[str]) -> dict[str, str]:
    pinned: dict[str, str] = {}
    for name in map(builds.canonical, pins):
        known = base.resolved.versions if isinstance(base, Built) else base.versions
        version = known.get(name)
        if version is None:
            raise UsageError(
                f"--pin {name}: the environment of {base.name} has no version of it that the other "
                "side could take; give the name of a package that the base needs, or add one by "
                "--with"
            )
        pinned[name] = version
    return pinned


def changed_versions(base: Side, contender: Side) -> list[VersionChange]:
    """The packages whose versions differ between two sides, if one of them was built."""
    built = [side for side in (base, contender) if isinstance(side, Built)]
    if not built:
        return []
    before, after = base.versions, contender.versions
    # What runs this holds more than it needs for the tests.
    names = {*before, *after} if len(built) > 1 else before.keys() & after.keys()
    return [
        VersionChange(name, before.get(name), after.get(name))
        for name in sorted(names)
        if before.get(name) != after.get(name)
    ]


def unseen(base: Side, contender: Side) -> str:
    """Say that two revisions share an environment, if that hides what they differ in."""
    trees = [side for side in (base, contender) if isinstance(side, Tree | Revision)]
    commits = [side.commit for side in trees if isinstance(side, Revision)]
    if not commits:
        return ""
    changed = _names(git(trees[0].root, "diff", "--name-only", "-z", *commits))
    new = [name for side in trees if isinstance(side, Tree) for name in side.new_files()]
    kinds = (
        (_DEPENDENCIES, "changed dependencies are not installed"),
        (_COMPILED, "changed sources are not compiled"),
    )
    for patterns, what in kinds:
        for name in (*changed, *new):
            if any(fnmatch(Path(name).name, pattern) for pattern in patterns):
                return (
                    f"both sides share this environment, in which {what}: {name} differs; --build "
                    "gives each side an environment of its own"
                )
    return ""


def uncompiled(sides: Sequence[Side]) -> str:
    """Say that checkouts lack compiled modules that the working tree has; empty if it has none.

    Raises:
        UsageError: the working tree is one of the sides, so that it alone would have them.
    """
    trees = [side for side in sides if isinstance(side, Tree | Revision)]
    revisions = [side.name for side in trees if isinstance(side, Revision)]
    names = _compiled_in(trees[0].root) if revisions else []
    if not names:
        return ""
    what = f"git does not track {some(names)} in the working tree, so"
    them, files = ("it", "the file") if len(names) == 1 else ("them", "the files")
    if len(revisions) < len(trees):
        raise UsageError(
            f"{what} a checkout of {some(revisions)} lacks {them}, and one side alone would run "
            f"compiled code: --build builds both sides; remove {files} if nothing imports {them}"
        )
    return f"{what} no side has {them}: --build builds each side, with its compiled code"


def _compiled_in(root: Path) -> list[str]:
    """The compiled modules next to tracked files that git does not track."""
    compiled = _names(git(root, "ls-files", "--others", "-z", "--", "*.so", "*.pyd"))
    importable = [name for name in compiled if _is_importable(Path(name).name)]
    if not importable:
        return []
    tracked = {Path(name).parent for name in _names(git(root, "ls-files", "-z"))}
    return [name for name in importable if Path(name).parent in tracked]


def _is_importable(name: str) -> bool:
    """True if this Python would import a file, which may be one of another version."""
    return f".{name.partition('.')[2]}" in EXTENSION_SUFFIXES


def _project_in(root: Path) -> Path:
    """The folder of the project that is built, relative to its repository."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / name).is_file() for name in BUILD_FILES):
            return folder.relative_to(root)
        if folder == root:
            break
    raise UsageError(
        f"--build: neither {here} nor a folder around it in {root} has {' or '.join(BUILD_FILES)}: "
        "there is nothing to build; compare revisions without --build, in this environment"
    )


def _names(listed: str) -> list[str]:
    """The names that git lists with ``-z``, in order."""
    return sorted(filter(None, listed.split("\0")))


def _contents(path: Path) -> bytes:
    """The contents of a new file; a link's target, which need not exist; none once it is gone."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""


def is_dirty(root: Path) -> bool:
    """True if a working tree has changes that are in no revision."""
    return bool(git(root, "status", "--porcelain"))


def _of_repository(root: Path, name: str) -> Tree | Revision:
    if name == _WORKING_TREE:
        return Tree(root)
    return Revision(root, name, name.removeprefix(REVISION))


def _references(name: str, environments: Environments) -> list[str]:
    """The frameworks of an environment; none of ``default``, which takes the other side's."""
    if name == DEFAULT:
        return []
    by_name = environments.all()
    if name in by_name:
        return by_name[name].references
    if name in registry.registered() or environments.environment_of(name) is not None:
        return [name]
    known = dict.fromkeys([*by_name, *registry.registered(), DEFAULT, f"{REVISION}REV"])
    if _is_revision(name):
        raise UsageError(f"unknown side {name!r}; to compare the revision, name {REVISION}{name}")
    raise unknown("side", name, [*known, _WORKING_TREE, "PACKAGE==VERSION"])


def _is_revision(name: str) -> bool:
    """True if git knows a revision by this name, in the current folder."""
    try:
        return bool(git(Path.cwd(), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"))
    except ComparisonError:
        return False


def _is_shallow(root: Path) -> bool:
    try:
        return git(root, "rev-parse", "--is-shallow-repository") == "true"
    except ComparisonError:
        return False


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
