"""The sides of a comparison are environments or revisions, and nothing of them is left behind."""

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fwbench.errors import ComparisonError, UsageError
from fwbench.frameworks import registry
from fwbench.gate import sides as sides_module
from fwbench.gate.sides import Installed, Revision, Tree, sides, uncompiled
from fwbench.workers.environments import Environment, Environments, complete
from support.suites import commit_all, count_worktrees, run_git
from support.tables import tabled

# The sides are environments


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    """A project with an old PyTorch, an environment of two frameworks, and an older NumPy."""
    result = Environments(tmp_path)
    for name, held in (
        ("torch@old", {"torch": "1.0", "numpy": "1.0"}),
        ("both", {"torch": "2.0", "tensorflow": "2.0", "numpy": "1.0"}),
        ("bare", {"numpy": "1.0"}),
    ):
        folder = result.folder_of(name)
        folder.mkdir(parents=True)
        complete(Environment(name, folder, (name,), "3.11", "link", held))
    return result


@tabled
def test_sides_of_environments(
    environments: Environments,
    base: str,
    contender: str,
    base_names: tuple[str, ...],
    contender_names: tuple[str, ...],
) -> None:
    both = sides(base, contender, environments)
    assert [side.name for side in both] == [base, contender]
    assert [side.arguments for side in both] == [
        ["--fw", ",".join(references)] for references in (base_names, contender_names)
    ]
    for side in both:
        assert isinstance(side, Installed)
        assert {*side.tested} == {"framework", "toggles"}
        assert side.folder == Path.cwd()
        assert side.variables == {}
        assert side.facts()["frameworks"] in ([*base_names], [*contender_names])


def test_default_twice_is_everything(environments: Environments) -> None:
    base, contender = sides("default", "default", environments)
    assert (
        base.arguments == contender.arguments == ["--fw", ",".join(sorted(registry.registered()))]
    )


@pytest.mark.parametrize("place", [0, 1])
def test_unknown_sides_are_refused(environments: Environments, place: int) -> None:
    names = ["torch", "torch"]
    names[place] = "torch@odl"
    with pytest.raises(UsageError) as refused:
        sides(names[0], names[1], environments)
    message = str(refused.value)
    assert "unknown side 'torch@odl'" in message
    assert "Did you mean 'torch@old'?" in message
    for known in ("both", "bare", "tensorflow", "default", "git:REV"):
        assert known in message


@pytest.mark.parametrize("pair", [("git:HEAD", "torch"), ("default", ".")])
def test_revisions_and_environments_are_not_compared(
    environments: Environments, pair: tuple[str, str]
) -> None:
    """Two things would differ at once."""
    with pytest.raises(UsageError, match="one is a revision and one an environment"):
        sides(*pair, environments)


def test_sides_need_a_common_framework(environments: Environments) -> None:
    with pytest.raises(UsageError, match="no framework in common") as refused:
        sides("torch@old", "bare", environments)
    assert "torch@old" in str(refused.value)
    assert str(refused.value).endswith("pytest --fw torch@old,numpy@bare --fw-race")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits, in whose folder ``inner`` we are."""
    root = (tmp_path / "repository").resolve()
    (root / "inner").mkdir(parents=True)
    run_git(root, "init", "--quiet")
    (root / "inner" / "__init__.py").touch()
    commit_all(root, a__py="first = 1\n")
    (root / "inner" / "b.py").write_text("", encoding="utf-8")
    commit_all(root, a__py="second = 2\n")
    monkeypatch.chdir(root / "inner")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return root


def test_a_revision_is_checked_out_beside_the_tree(
    repository: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is ready its files are there, and its modules come before the tree's."""
    monkeypatch.setenv("PYTHONPATH", f"{repository / 'src'}{os.pathsep}/elsewhere")
    monkeypatch.syspath_prepend(str(repository / "lib"))
    base, contender = sides("git:HEAD~1", "git:HEAD", environments)
    assert isinstance(base, Revision)
    with base.ready(), contender.ready():
        assert (base.checkout / "a.py").read_text(encoding="utf-8") == "first = 1\n"
        assert base.folder == base.checkout / "inner"
        assert (contender.folder / "b.py").is_file()
        path = base.variables["PYTHONPATH"].split(os.pathsep)
        checkout = [str(base.checkout / name) for name in (".", "src", "lib")]
        assert {*checkout} <= {*path}
        assert max(map(path.index, checkout)) < path.index(str(repository / "src"))
        assert path[-1] == "/elsewhere"
        assert count_worktrees(repository) == 3
    assert count_worktrees(repository) == 1
    assert [*(repository.parent / "temporary").iterdir()] == []


def test_a_repository_within_a_project_has_its_node_ids_and_settings_on_both_sides(
    repository: Path, environments: Environments
) -> None:
    """A checkout is not within it; what the repository itself has comes first."""
    base, contender = sides("git:HEAD", ".", environments)
    assert isinstance(base, Revision)
    settings = repository.parent / "pytest.ini"
    settings.write_text("[pytest]\n", encoding="utf-8")
    with base.ready():
        assert base.arguments == [f"--rootdir={base.checkout}", "-c", str(settings)]
        assert contender.arguments == [f"--rootdir={repository}", "-c", str(settings)]
        (repository / "pytest.ini").touch()
        assert base.arguments == contender.arguments == []


def test_a_checkout_goes_when_something_goes_wrong(
    repository: Path, environments: Environments
) -> None:
    base, _ = sides("git:HEAD~1", ".", environments)
    with pytest.raises(KeyboardInterrupt), base.ready():
        raise KeyboardInterrupt
    assert count_worktrees(repository) == 1
    assert [*(repository.parent / "temporary").iterdir()] == []


def test_revisions_are_recorded(repository: Path, environments: Environments) -> None:
    base, contender = sides("git:HEAD~1", ".", environments)
    assert isinstance(contender, Tree)
    first, second = (run_git(repository, "rev-parse", name) for name in ("HEAD~1", "HEAD"))
    assert base.facts() == {"name": "git:HEAD~1", "revision": first, "dirty": False}
    assert contender.facts() == {"name": ".", "revision": second, "dirty": False}
    (repository / "new.py").touch()
    assert contender.facts()["dirty"] is True
    assert sides_module.is_dirty(repository)
    assert base.facts()["dirty"] is False
    assert base.arguments == []
    assert contender.folder == Path.cwd()


def test_the_tree_is_measured_and_not_what_is_installed(
    repository: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed copy of the project comes behind the tree, as it comes behind a revision."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    _, contender = sides("git:HEAD", ".", environments)
    first = contender.variables["PYTHONPATH"].split(os.pathsep)[:2]
    assert first == [str(repository), str(repository / "src")]


def test_new_links_and_submodules(repository: Path, environments: Environments) -> None:
    """An editor's lock is a link to nowhere; a submodule with another commit is a folder."""
    _, contender = sides("git:HEAD", ".", environments)
    assert isinstance(contender, Tree)
    (repository / ".#a.py").symlink_to("me@host.1:2")
    before = contender.state()
    (repository / ".#a.py").unlink()
    (repository / ".#a.py").symlink_to("me@host.3:4")
    assert contender.state() != before
    part = repository / "part"
    part.mkdir()
    run_git(part, "init", "--quiet")
    commit_all(part, p__py="")
    commit_all(repository, a__py="third = 3\n")
    commit_all(part, p__py="later = 1\n")
    with contender.source() as checkout:
        assert [*(checkout / "part").iterdir()] == []


def test_a_folder_that_a_revision_does_not_have(
    repository: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "new").mkdir()
    monkeypatch.chdir(repository / "new")
    base, _ = sides("git:HEAD", ".", environments)
    with pytest.raises(UsageError, match="git:HEAD has no folder new"), base.ready():
        pass
    assert count_worktrees(repository) == 1


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize("name", ["git:nowhere", "git:HEAD~9", "git:", "git:HEAD:a.py"])
def test_a_revision_that_does_not_exist(environments: Environments, name: str) -> None:
    with pytest.raises(UsageError, match="git knows no such revision") as refused:
        sides(name, ".", environments)
    assert str(refused.value).startswith(f"{name}: ")


def test_a_folder_in_no_repository(
    tmp_path: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="in no git repository") as refused:
        sides("git:HEAD", ".", environments)
    assert tmp_path.name in str(refused.value)


@pytest.mark.usefixtures("repository")
def test_without_git(environments: Environments, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises((UsageError, ComparisonError), match="cannot run git"):
        sides("git:HEAD", ".", environments)


def test_folders_of_editable_installs_are_mirrored(
    repository: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that setuptools finds by a mapping, and one whose path is a link."""
    finder = ModuleType("__editable___two_finder")
    mapped = {
        "two": str(repository / "packages" / "two"),
        "ns.three": str(repository / "more" / "ns" / "three"),
        "renamed": str(repository / "hidden" / "four"),
    }
    finder.__dict__["MAPPING"] = mapped
    made = type(
        "_EditableFinder", (), {"__module__": finder.__name__, "find_spec": lambda *_: None}
    )
    monkeypatch.setitem(sys.modules, finder.__name__, finder)
    monkeypatch.setattr("sys.meta_path", [*sys.meta_path, made])
    link = repository.parent / "link"
    link.symlink_to(repository)
    monkeypatch.syspath_prepend(str(link / "lib"))
    base, _ = sides("git:HEAD", ".", environments)
    assert isinstance(base, Revision)
    with base.ready():
        path = base.variables["PYTHONPATH"].split(os.pathsep)
        assert {str(base.checkout / name) for name in ("packages", "more", "lib")} <= {*path}
        assert str(base.checkout / "hidden") not in path


def test_compiled_modules_that_a_checkout_lacks(
    repository: Path, environments: Environments
) -> None:
    """One side alone would run them; that neither has them is noted."""
    commit_all(repository, __gitignore="*.so\n")
    (repository / "build").mkdir()
    for name in ("build/fast.so", "inner/other.cpython-27.so"):
        (repository / name).touch()
    of_tree = sides("git:HEAD", ".", environments)
    assert uncompiled(of_tree) == ""
    (repository / "inner" / "fast.so").touch()
    with pytest.raises(UsageError, match=r"inner/fast\.so in .* checkout of git:HEAD .*--build"):
        uncompiled(of_tree)
    note = uncompiled(sides("git:HEAD~1", "git:HEAD", environments))
    assert note.startswith("git does not track inner/fast.so in the working tree, so no side has")
    assert uncompiled(sides(".", ".", environments)) == ""


@pytest.mark.usefixtures("repository")
def test_a_revision_without_its_prefix(environments: Environments) -> None:
    with pytest.raises(UsageError, match="to compare the revision, name git:HEAD~1"):
        sides("HEAD~1", "HEAD", environments)


def test_a_revision_that_a_shallow_clone_lacks(
    repository: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = repository.parent / "clone"
    run_git(repository.parent, "clone", "--quiet", "--depth=1", repository.as_uri(), str(clone))
    monkeypatch.chdir(clone)
    with pytest.raises(UsageError, match=r"clone is shallow .*fetch-depth: 0"):
        sides("git:HEAD~1", ".", environments)
