"""Temporary folders go with their process, or with the next command; no other folder does."""

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fwbench.processes import scratch


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _left_by_a_killed_process() -> Path:
    """A folder with a file, whose owner has gone."""
    made, owner = scratch._make()
    (made / "file").touch()
    assert owner is not None
    owner.release()
    return made


def test_a_folder_goes_when_it_is_left(temporary: Path) -> None:
    """With files that cannot be written to, and after any exception."""
    with suppress(KeyboardInterrupt), scratch.folder() as folder:
        inner = folder / "inner"
        inner.mkdir()
        (inner / "file").touch()
        inner.chmod(0o500)
        assert folder.parent == temporary
        raise KeyboardInterrupt
    assert [*temporary.iterdir()] == []


def test_what_a_killed_process_has_left_goes(temporary: Path) -> None:
    """Once it was looked at, and not that of a process that lives."""
    left = _left_by_a_killed_process()
    with scratch.folder() as used:
        assert [(path, (path / "file").exists()) for path in scratch.abandoned()] == [(left, True)]
        assert [*temporary.iterdir()] == [used]


def test_what_had_no_time_to_be_marked_goes(temporary: Path) -> None:
    """It is empty."""
    (temporary / f"{scratch.PREFIX}new").mkdir()
    assert len([*scratch.abandoned()]) == 1
    assert [*temporary.iterdir()] == []


@pytest.mark.parametrize("kind", ["unmarked", "link", "file", "other name"])
def test_what_others_have_made_stays(temporary: Path, tmp_path: Path, kind: str) -> None:
    """A folder of that name with something in it, or a link to one: no command removes them."""
    foreign = temporary / (kind if kind == "other name" else f"{scratch.PREFIX}theirs")
    if kind == "link":
        foreign.symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / ".fwbench-job").touch()
    elif kind == "file":
        foreign.touch()
    else:
        foreign.mkdir()
        (foreign / ("thesis.txt" if kind == "unmarked" else ".fwbench-job")).touch()
    assert [*scratch.abandoned()] == []
    assert foreign.exists()


def test_a_new_folder_that_is_taken_for_an_abandoned_one(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None])
    take = scratch.take
    monkeypatch.setattr(scratch, "take", lambda made: next(answers, take(made)))
    with scratch.folder() as folder:
        assert [*temporary.iterdir()] == [folder]


def test_where_nothing_can_be_locked(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On some network file systems: folders are used, and never taken for abandoned."""

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(fcntl, "flock", refuse)
    with scratch.folder() as folder:
        assert [*scratch.abandoned()] == []
        assert folder.is_dir()
    assert [*temporary.iterdir()] == []


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    """Until it is released, or the process has died, by SIGKILL too; children inherit nothing."""
    code = (
        "import subprocess, sys, time; from pathlib import Path\n"
        "from fwbench.processes import scratch\n"
        f"owner = scratch.take(Path({str(tmp_path)!r}))\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        assert scratch.take(tmp_path) is None
        owner.kill()
        owner.wait()
        mine = scratch.take(tmp_path)
        os.kill(child, 9)
    assert mine is not None
    with mine:
        assert scratch.take(tmp_path) is None
    repeated = scratch.take(tmp_path)
    assert repeated is not None
    repeated.release()


def test_what_cannot_be_owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing folder, a file, a link, or a folder that was replaced in the meantime."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("nowhere", "file", "link"):
        assert scratch.take(tmp_path / name) is None
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    flock = fcntl.flock

    def replace(descriptor: int, operation: int) -> None:
        folder.rename(other)
        folder.mkdir()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", replace)
    assert scratch.take(folder) is None
