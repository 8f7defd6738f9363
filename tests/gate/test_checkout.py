"""Nothing of a checkout stays: neither its folder nor what git notes of it, however it was left."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from fwbench.errors import ComparisonError
from fwbench.gate import sides as gate_sides
from fwbench.gate.sides import checked_out, remove_abandoned
from fwbench.processes import command, scratch
from support.suites import commit_all, count_worktrees, run_git


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    run_git(root, "init", "--quiet")
    commit_all(root, a__py="")
    return root


def _assert_clean(root: Path, temporary: Path) -> None:
    assert count_worktrees(root) == 1
    assert not (root / ".git" / "worktrees").exists()
    assert [*temporary.iterdir()] == []


def _killed(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkout of a process that was killed while it used it."""
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        for module, name in ((scratch, "remove"), (gate_sides, "_forget")):
            patch.setattr(module, name, lambda *_: None)
        with checked_out(root, "HEAD") as made:
            raise KeyboardInterrupt
    return made


def test_a_checkout_goes_when_it_is_left(repository: Path, temporary: Path) -> None:
    checkout = temporary.parent / "own"
    run_git(repository, "worktree", "add", "--detach", str(checkout), "HEAD")
    with checked_out(repository, "HEAD") as made:
        assert (made / "a.py").exists()
        assert count_worktrees(repository) == 3
    assert count_worktrees(repository) == 2
    assert [*temporary.iterdir()] == []
    run_git(repository, "worktree", "remove", str(checkout))
    _assert_clean(repository, temporary)


def test_a_checkout_of_a_checkout(repository: Path, temporary: Path) -> None:
    """Where the tree is a worktree itself, git's notes are those of the repository."""
    checkout = temporary.parent / "own"
    run_git(repository, "worktree", "add", "--detach", str(checkout), "HEAD")
    with checked_out(checkout, "HEAD"):
        assert count_worktrees(repository) == 3
    assert count_worktrees(repository) == 2


def test_what_a_killed_command_has_left(
    repository: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next command removes it, in whichever repository it is itself."""
    _killed(repository, monkeypatch)
    assert count_worktrees(repository) == 2
    remove_abandoned()
    _assert_clean(repository, temporary)


def test_what_a_command_has_left_that_was_killed_with_git(
    repository: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git locks a worktree that it is making, and knows none whose folder it has not noted yet."""
    made = _killed(repository, monkeypatch)
    notes = repository / ".git" / "worktrees" / made.name
    (notes / "locked").write_text("initializing", encoding="utf-8")
    (notes / "gitdir").unlink()
    remove_abandoned()
    _assert_clean(repository, temporary)


def test_notes_of_a_folder_that_is_lost(
    repository: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary files go when a machine is restarted, and git's notes stay: the next job's turn."""
    made = _killed(repository, monkeypatch)
    subprocess.run(["rm", "-r", str(made.parent)], check=True)
    with checked_out(repository, "HEAD"):
        assert len([*(repository / ".git" / "worktrees").iterdir()]) == 1
    _assert_clean(repository, temporary)


def test_notes_of_a_job_at_work_stay(
    repository: Path, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its temporary files may lie in a folder that is not to be seen from here."""
    with checked_out(repository, "HEAD") as first:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
        remove_abandoned()
        with checked_out(repository, "HEAD"):
            assert count_worktrees(repository) == 3
        assert (first / "a.py").exists()
        assert count_worktrees(repository) == 2
    _assert_clean(repository, temporary)


def test_what_cannot_be_checked_out(repository: Path, temporary: Path) -> None:
    with pytest.raises(ComparisonError, match="nowhere"), checked_out(repository, "nowhere"):
        pass
    _assert_clean(repository, temporary)


def test_an_interrupted_checkout(
    repository: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(arguments: list[str], *, folder: Path) -> command.Captured:
        command.ask(arguments, folder=folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "capture", interrupt)
    with pytest.raises(KeyboardInterrupt), checked_out(repository, "HEAD"):
        pass
    _assert_clean(repository, temporary)


def test_a_folder_that_no_repository_is_noted_in(temporary: Path) -> None:
    _, owner = scratch._make()
    assert owner is not None
    owner.release()
    remove_abandoned()
    assert [*temporary.iterdir()] == []
