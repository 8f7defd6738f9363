"""Environments of sides are resolved, built as a whole or not at all, and used again."""

import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.errors import ComparisonError, InstallationError, UsageError
from fwbench.gate import builds, sides
from fwbench.gate.builds import Builder, Wanted, requirements_of
from fwbench.gate.sides import Built, Installed, Revision, Tree
from fwbench.gate.verdicts import VersionChange
from fwbench.processes import command
from fwbench.workers import install
from fwbench.workers.environments import Environments
from support import wheels
from support.suites import commit_all, count_worktrees, run_git


class Place:
    """The current folder: a repository with the project ``tiny``, and an index of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: list[str] = []

    def builder(self, *extra: str, python: str | None = None) -> Builder:
        return Builder(self.path, python, extra, self.said.append)

    def sides(self, base: str, contender: str, *, build: bool = True) -> tuple[Any, Any]:
        return sides.sides(base, contender, Environments(self.path), build=build)

    def resolved(self, base: str, contender: str, *pins: str, extra: tuple[str, ...] = ()) -> Any:
        both = self.sides(base, contender)
        sides.resolve(both, self.builder(*extra), pins)
        return both

    def left(self) -> list[str]:
        """The environments and logs that are there."""
        return sorted(path.name for path in (self.path / ".fwbench/builds").glob("[!.]*"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    root = tmp_path / "project"
    root.mkdir()
    run_git(root, "init", "--quiet")
    commit_all(root, **wheels.project(), __gitignore=".fwbench\n")
    wheels.serve(tmp_path / "index", monkeypatch)
    monkeypatch.chdir(root)
    return Place(root)


# Names


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("numpy==2.2.*", ["numpy==2.2.*"]),
        ("numpy >= 2, < 2.3", ["numpy >= 2, < 2.3"]),
        ("jax==0.7 jaxlib==0.7", ["jax==0.7", "jaxlib==0.7"]),
        ("x @ https://example.org/x.whl", ["x @ https://example.org/x.whl"]),
        ("numpy", None),
        ("numpy@2.2", None),
        ("numpy==2.2.* scipy", None),
        ("", None),
        ("git:HEAD", None),
    ],
)
def test_names_that_are_requirements(name: str, requirements: list[str] | None) -> None:
    """Specifiers and URLs tell them: what was a side before keeps its meaning."""
    assert requirements_of(name) == requirements


def test_paths_that_are_requirements(place: Place) -> None:
    wheel = wheels.write_wheel(place.path, "quick", "3.0", {})
    assert requirements_of(str(wheel)) == [wheel.as_uri()]
    assert requirements_of(wheel.name) == [wheel.as_uri()]
    assert requirements_of("../project") == [place.path.as_uri()]
    assert requirements_of("../index") is None
    with pytest.raises(UsageError, match=r"\./no\.whl: there is no such file"):
        requirements_of("./no.whl")


@pytest.mark.parametrize(
    ("base", "contender", "build", "message"),
    [
        ("quick==1.0", ".", False, ". would share the environment that runs this; add --build"),
        ("quick==1.0", "numpy", False, "numpy is installed already, and builds are compared with"),
        ("quick==1.0", "quikc", False, "unknown side 'quikc'"),
        ("numpy", "numpy", True, "numpy is installed already"),
        ("default", "default", True, "--build: default is installed already"),
        ("git:nowhere", ".", True, "git:nowhere: git knows no such revision"),
    ],
)
def test_sides_that_cannot_be_built(
    place: Place, base: str, contender: str, build: bool, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        place.sides(base, contender, build=build)
    assert message in str(refused.value)


def test_default_goes_with_a_build(place: Place) -> None:
    """Where a framework is built, the other side measures that one alone, too."""
    base, contender = place.sides("default", "numpy==2.3.*", build=False)
    assert isinstance(base, Installed)
    assert base.arguments == contender.arguments == ["--fw", "numpy"]
    assert sides.place_tests((base, contender), None) == "both sides run the tests of this folder"
    assert place.sides("default", "quick==1.0", build=False)[0].arguments == []
    with pytest.raises(UsageError, match=r"--pin needed: default is as it is"):
        sides.resolve(place.sides("needed==1.0", "default"), place.builder(), ["needed"])


# What is resolved


def test_an_environment_is_built_once(place: Place) -> None:
    """By what was resolved: other words for the same versions build nothing."""
    base, contender = place.resolved("needed==1.0", "needed>=2,<2.1")
    with base.ready(), contender.ready():
        assert sides.changed_versions(base, contender) == [VersionChange("needed", "1.0", "2.0")]
        assert base.interpreter != contender.interpreter
        ask = "import needed, fwbench, pytest; print(needed.version)"
        done = command.ask([contender.interpreter, "-c", ask])
        assert done.output == "2.0\n", done.errors
        assert base.variables["PATH"].startswith(str(base.environment.folder / "bin"))
    assert [line.partition(" (")[0].split(" in ")[0] for line in place.said] == [
        "environment of needed==1.0: being built",
        "environment of needed==1.0: built",
        "environment of needed>=2,<2.1: being built",
        "environment of needed>=2,<2.1: built",
    ]
    place.said.clear()
    again = place.resolved("needed<2", "needed==2.0.*")
    with again[0].ready(), again[1].ready():
        assert again[0].environment.folder == base.environment.folder
    assert place.said == [
        "environment of needed<2: kept from before",
        "environment of needed==2.0.*: kept from before",
    ]
    assert place.left() == sorted({base.resolved.digest, contender.resolved.digest})
    assert base.facts()["environment"] == base.resolved.digest


def test_what_is_added_to_both(place: Place) -> None:
    base, contender = place.resolved("quick==1.0", "quick==2.0", extra=("needed==2.0",))
    assert {side.resolved.versions["needed"] for side in (base, contender)} == {"2.0"}


def test_what_samples_is_in_an_environment_of_its_own(place: Place) -> None:
    """It has the same versions; what is timed does without it."""
    side, _ = place.resolved("quick==1.0", "quick==2.0", extra=("needed==2.0",))
    with side.ready():
        own, resolved, versions = side.environment, side.resolved, side.versions
        with side.sampling():
            assert side.environment.folder != own.folder
            assert side.versions == {**versions, "pyinstrument": "5"}
        assert (side.environment, side.resolved) == (own, resolved)
        assert "pyinstrument" not in versions


def test_a_package_that_is_kept_to_one_version(place: Place) -> None:
    """It is the base's: the contender would take a newer one."""
    commit_all(place.path, **wheels.project(needs=["needed>=2"]))
    run_git(place.path, "tag", "newer")
    commit_all(place.path, **wheels.project(needs=["needed<2.1"]))
    both = place.resolved("git:HEAD", "git:newer")
    assert [side.resolved.versions.get("needed") for side in both] == ["2.0", "2.1"]
    both = place.resolved("git:HEAD", "git:newer", "Needed")
    assert [side.resolved.versions.get("needed") for side in both] == ["2.0", "2.0"]
    with pytest.raises(UsageError, match="--pin other: the environment of git:HEAD has no version"):
        place.resolved("git:HEAD", "git:newer", "other")


def test_a_revision_is_used_with_the_versions_that_it_pins(place: Place) -> None:
    """Its own requirements.txt says them; those of what measures are left to fwbench."""
    pins = "needed==2.0  # a pin\npytest==1.0\n-e .\nquick[extra]==2.0\n"
    commit_all(place.path, **wheels.project(needs=["needed"]), requirements__txt=pins)
    base, contender = place.resolved("git:HEAD~1", "git:HEAD")
    assert contender.resolved.versions.get("needed") == "2.0"
    assert contender.resolved.versions.get("pytest") == "9"
    assert "quick" not in "".join(contender.resolved.lines)
    assert base.resolved.versions.get("needed") is None


def test_files_count_by_their_content(place: Place) -> None:
    """A wheel or folder with other contents is another environment, under one version."""
    wheel = wheels.write_wheel(place.path.parent, "quick", "3.0", {"quick.py": wheels.work(1)})
    digests = []
    for change in (lambda: None, lambda: None, lambda: _changed(wheel, place)):
        change()
        builder = place.builder()
        for path in (wheel, place.path):
            resolved = builder.resolve(Wanted("side", (path.as_uri(),)), {})
            digests.append(resolved.digest)
    assert digests[:2] == digests[2:4]
    assert not {*digests[:2]} & {*digests[4:]}
    assert resolved.names == {"tiny"}


def _changed(wheel: Path, place: Place) -> None:
    wheels.write_wheel(wheel.parent, "quick", "3.0", {"quick.py": wheels.work(2)})
    (place.path / "tiny.py").write_text(wheels.work(3), encoding="utf-8")


def test_requirements_without_a_package_in_common(place: Place) -> None:
    with pytest.raises(UsageError) as refused:
        place.resolved("needed==1.0", "quick==1.0")
    assert str(refused.value).startswith(
        "needed==1.0 is needed, quick==1.0 is quick: they have no package in common; "
    )


def test_requirements_that_contradict_each_other(place: Place) -> None:
    """The resolver's words, and which side it is."""
    with pytest.raises(UsageError) as refused:
        place.resolved("needed==1.0", "needed==1.0", extra=("needed==2.0",))
    message = str(refused.value)
    assert message.startswith("needed==1.0: no versions satisfy all that its environment is to ")
    assert "needed==2.0" in message.partition("Because")[2]
    assert "\n" not in message
    assert place.left() == []


def test_a_long_explanation_is_cut() -> None:
    errors = "error: No solution found:\n  cause: Because " + "of many reasons, " * 99 + "\n"
    words = builds.conflict(errors)
    assert words.startswith("Because of many")
    assert words.endswith(" ...")
    assert len(words) < 700


def test_without_uv(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(builds, "sysconfig", SimpleNamespace(get_path=lambda _: "/nowhere"))
    with pytest.raises(UsageError, match=r"builds need uv.*pip install uv"):
        place.builder()


@pytest.mark.parametrize("python", ["3.99", "/no/such/python"])
def test_an_interpreter_that_is_not_there(place: Place, python: str) -> None:
    with pytest.raises(UsageError, match=f"--python {python}: uv finds no such interpreter"):
        place.builder(python=python)


def test_an_interpreter_is_given(place: Place) -> None:
    assert place.builder(python=sys.executable).python == place.builder().python


# What is built


def test_uncommitted_changes_are_built(place: Place) -> None:
    """From a copy: the tree stays as it is. A clean one is the same as its revision."""
    base, contender = place.resolved("git:HEAD", ".")
    assert base.resolved.digest == contender.resolved.digest
    (place.path / "tiny.py").write_text("changed = True\n", encoding="utf-8")
    (place.path / "needs").unlink()
    (place.path / "inner").mkdir()
    (place.path / "inner" / "new.pyx").touch()
    tree = Tree(place.path)
    with tree.source() as copy:
        assert (copy / "tiny.py").read_text(encoding="utf-8") == "changed = True\n"
        assert (copy / "inner" / "new.pyx").exists()
        assert not (copy / "needs").exists()
    run_git(place.path, "checkout", "--quiet", "needs")
    base, contender = place.resolved("git:HEAD", ".")
    assert base.resolved.digest != contender.resolved.digest
    with contender.ready():
        done = command.ask([contender.interpreter, "-c", "import tiny; print(tiny.changed)"])
    assert done.output == "True\n", done.errors
    status = run_git(place.path, "status", "--porcelain")
    assert status.splitlines() == ["M tiny.py", "?? inner/"]
    assert count_worktrees(place.path) == 1


def test_what_is_compared_comes_from_the_environment(place: Place) -> None:
    """The tests lie in a project whose modules must not hide the ones that are compared."""
    commit_all(place.path, tiny__py="where = 'contender'\n")
    base, _ = place.resolved("git:HEAD~1", "git:HEAD")
    with base.ready():
        ask = f"import sys; sys.path.insert(0, {str(place.path)!r}); import tiny; print(tiny.work)"
        done = command.ask([base.interpreter, "-c", ask])
    assert "function work" in done.output, done.errors


@pytest.mark.parametrize(
    ("action", "shown"), [("sys.exit('no compiler here')", "no compiler here"), ("1 / 0", "ZeroDi")]
)
def test_a_build_that_fails(place: Place, action: str, shown: str) -> None:
    """Nothing is left but the log; which goes when it is built once more."""
    commit_all(place.path, **wheels.project(action=action))
    with pytest.raises(InstallationError) as failed:
        place.resolved("git:HEAD~1", "git:HEAD")
    message = str(failed.value)
    assert message.startswith("git:HEAD: its environment cannot be resolved; uv's last output (")
    assert shown in message
    log = place.path / ".fwbench/builds/git-HEAD.log"
    assert str(log) in message
    assert shown in log.read_text(encoding="utf-8")
    assert place.left() == [log.name]
    commit_all(place.path, **wheels.project())
    place.resolved("git:HEAD", "git:HEAD")
    assert place.left() == []
    assert count_worktrees(place.path) == 1


def _interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def _failing(*_: Any) -> None:
    raise InstallationError("uv ended with exit status 1; its last output:\n  no space left")


@pytest.mark.parametrize("end", [_interrupted, _failing])
def test_a_build_that_comes_to_no_end(
    place: Place, monkeypatch: pytest.MonkeyPatch, end: Callable[..., None]
) -> None:
    base, _ = place.resolved("needed==1.0", "needed==2.0")
    real = install.run_installer

    def run(arguments: list[str], *more: Any) -> None:
        (real if "venv" in arguments else end)(arguments, *more)

    with monkeypatch.context() as patch:
        patch.setattr(install, "run_installer", run)
        with pytest.raises((KeyboardInterrupt, InstallationError)) as ended, base.ready():
            pass
    assert place.left() == (["needed==1.0.log"] if end is _failing else [])
    if end is _failing:
        assert "needed==1.0: its environment cannot be built (" in str(ended.value)
    with base.ready():
        assert Path(base.interpreter).exists()


def test_an_environment_that_another_process_builds(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is waited for, and used."""
    first, second = (place.resolved("needed==1.0", "needed==2.0")[0] for _ in range(2))
    waiting = threading.Event()
    real = install.run_installer

    def run(*arguments: Any) -> None:
        assert waiting.wait(timeout=30)
        real(*arguments)

    def wait(_: float) -> None:
        waiting.set()
        real_sleep(0.05)

    real_sleep = time.sleep
    monkeypatch.setattr(install, "run_installer", run)
    with ThreadPoolExecutor(1) as other:
        building = other.submit(lambda: first.ready().__enter__())
        while not install.unfinished_names(place.path / ".fwbench/builds"):
            real_sleep(0.01)
        monkeypatch.setattr(builds.time, "sleep", wait)
        with second.ready():
            assert second.environment.folder == first.environment.folder
        building.result()
    assert "environment of needed==1.0: another process is building it" in place.said
    assert place.left() == [first.resolved.digest]


def test_what_a_killed_build_has_left(place: Place) -> None:
    left = place.path / ".fwbench/builds/0123"
    left.mkdir(parents=True)
    (left / install._MAKER).write_text("1", encoding="ascii")
    builds.remove_unfinished(place.path)
    assert place.left() == []


def test_an_environment_that_vanishes(place: Place) -> None:
    """A sentence while it is measured; built again by the next one."""
    base, _ = place.resolved("needed==1.0", "needed==2.0")
    with base.ready():
        base.check()
        interpreter = Path(base.interpreter)
        interpreter.unlink()
        with pytest.raises(ComparisonError, match=r"environment of needed==1.0 has gone"):
            base.check()
    with base.ready():
        assert interpreter.exists()


@pytest.mark.parametrize("given", [None, "base", "contender"])
def test_tests_come_from_one_side(place: Place, given: str | None) -> None:
    both = place.resolved("git:HEAD", ".")
    name = "git:HEAD" if given == "base" else "."
    assert sides.place_tests(both, given) == f"both sides run the tests of {name}"
    with both[0].ready(), both[1].ready():
        assert both[0].folder == both[1].folder
        assert (both[0].folder == place.path) == (given != "base")
    assert both[0].facts()["tests"] == name


def test_a_side_without_tests(place: Place) -> None:
    both = place.sides("quick==1.0", ".")
    assert sides.place_tests(both, None) == "both sides run the tests of ."
    with pytest.raises(UsageError, match=r"--tests base: quick==1.0 brings no tests"):
        sides.place_tests(both, "base")
    assert sides.place_tests(place.sides("git:HEAD", ".", build=False), None) == ""


def test_a_folder_without_a_project(place: Place) -> None:
    (place.path / "pyproject.toml").unlink()
    with pytest.raises(UsageError, match="there is nothing to build"):
        place.resolved("git:HEAD", ".")
    run_git(place.path, "rm", "--quiet", "--cached", "pyproject.toml")
    run_git(place.path, "commit", "--quiet", "--message", "no project")
    (place.path / "setup.py").touch()
    with pytest.raises(UsageError, match=r"git:HEAD cannot be built: \. has neither of"):
        place.resolved("git:HEAD", "git:HEAD")


# What a shared environment hides


@pytest.mark.parametrize(
    ("files", "note"),
    [
        ({"pyproject__toml": "[project]\n"}, "changed dependencies are not installed: pyproject"),
        ({"uv__lock": ""}, "changed dependencies are not installed: uv.lock differs; --build"),
        ({"requirements-dev__txt": "x"}, "dependencies are not installed: requirements-dev.txt"),
        ({"fast__pyx": ""}, "changed sources are not compiled: fast.pyx differs; --build gives"),
        ({"tiny__py": "x = 1\n", "README__md": "x"}, ""),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_revisions_that_differ_in_more_than_modules(
    place: Place, files: dict[str, str], note: str, is_committed: bool
) -> None:
    if is_committed:
        commit_all(place.path, **files)
        both = place.sides("git:HEAD~1", "git:HEAD", build=False)
    else:
        for name, text in files.items():
            (place.path / name.replace("__", ".")).write_text(text, encoding="utf-8")
        both = place.sides("git:HEAD", ".", build=False)
    said = sides.unseen(*both)
    assert note in said
    assert bool(said) == bool(note)
    assert sides.unseen(*both[::-1]) == said


def test_builds_hide_nothing(place: Place) -> None:
    both = place.sides("git:HEAD", ".")
    assert [type(side) for side in both] == [Built, Built]
    assert isinstance(both[0].tree, Revision)
    assert sides.unseen(*both) == ""
    assert json.dumps(both[1].tree.state())
