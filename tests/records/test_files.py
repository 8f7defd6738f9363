"""Files are written as a whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from fwbench.errors import StorageError
from fwbench.records import files
from support.tables import tabled


@pytest.mark.parametrize("earlier", [None, "earlier"])
def test_a_file_is_written_as_a_whole(tmp_path: Path, earlier: str | None) -> None:
    path = tmp_path / "run.json"
    if earlier is not None:
        path.write_text(earlier, encoding="utf-8")
    files.write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "new"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize(
    "break_it",
    [
        lambda patch, fail: patch.setattr(os, "fsync", fail),
        lambda patch, fail: patch.setattr(Path, "replace", fail),
    ],
    ids=["writing", "replacing"],
)
def test_an_earlier_file_stays_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, break_it: Callable[[Any, Any], None]
) -> None:
    path = tmp_path / "run.json"
    path.write_text("earlier", encoding="utf-8")
    break_it(monkeypatch, Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match=r"cannot write .*run\.json: No space left on device"):
        files.write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "earlier"
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere" / "run.json", tmp_path / "run.json"
    target.parent.mkdir()
    link.symlink_to(target)
    files.write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_what_is_no_regular_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """A pipe, like /dev/null or /dev/stdout, is written to as it is, never replaced by a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.check_writable(path)
        files.write_atomically(path, "new")
        assert path.is_fifo()
        assert os.read(reader, 9) == b"new"
    finally:
        os.close(reader)


def test_an_open_file_can_be_written_to_by_its_number() -> None:
    """/dev/stdout is such a name, and a pipe behind it has no path to be resolved to."""
    reader, writer = os.pipe()
    try:
        path = Path(f"/dev/fd/{writer}")
        files.check_writable(path)
        files.write_atomically(path, "new")
        assert os.read(reader, 9) == b"new"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("exists", [True, False])
def test_trying_whether_a_file_can_be_written_leaves_nothing(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "run.json"
    if exists:
        path.write_text("earlier", encoding="utf-8")
    files.check_writable(path)
    assert [p.read_text(encoding="utf-8") for p in tmp_path.iterdir()] == ["earlier"] * exists


def test_a_dash_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs mean standard output by it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match=r"cannot write -: .*/dev/stdout for standard output"):
        files.check_writable(Path("-"))


@tabled
def test_what_cannot_be_written_is_known_before(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    for attempt in (files.check_writable, lambda path: files.write_atomically(path, "new")):
        with pytest.raises(StorageError, match=f"cannot write .*{place}: (?i:{reason})"):
            attempt(tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
