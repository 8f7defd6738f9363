"""Records survive their way to the parent, the journal and the file, and crashes on the way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pytest_benchmark.utils import safe_dumps

from fwbench.cases.case import Case
from fwbench.errors import StorageError
from fwbench.jsontext import dumps
from fwbench.plugin import host
from fwbench.records import files, journal
from fwbench.records.journal import Journal
from support.fakes import Fake, case_of, cell, entry, operation

HEAD = {"fwbench_journal": 1, "machine_info": {"node": "here"}, "version": "5.3.1"}


def sent(case: Case) -> Any:
    """The record of a measured case, as it arrives in the parent."""
    return json.loads(safe_dumps(host.of(case.benchmark)))


def measured(**settings: Any) -> dict[str, Any]:
    """The record of a case of the fake framework, as it arrives in the parent."""
    case = case_of(cell(operation()), Fake(), **settings)
    case.measure()
    return sent(case)


# On the wire


@pytest.mark.parametrize("cprofile", [False, True])
def test_a_restored_record_is_what_was_measured(cprofile: bool) -> None:
    """What pytest-benchmark makes of a restored record is what it would have made on the spot."""
    case = case_of(cell(operation()), Fake(), cprofile=cprofile)
    case.measure()
    here = case.benchmark.stats
    restored = host.restore(sent(case))
    assert restored.as_dict() == here.as_dict()
    assert restored.as_dict(flat=True, stats=False) == here.as_dict(flat=True, stats=False)
    assert restored["median"] == here["median"]
    assert restored.has_error is False
    assert bool(restored) is True


def test_a_profile_is_restored() -> None:
    """With --benchmark-cprofile the restored record has the functions that were called."""
    restored = host.restore(measured(cprofile=True))
    assert any("fakes.py" in entry["function_name"] for entry in restored.as_dict()["cprofile"])
    assert "cprofile" not in host.restore(measured()).as_dict()


def test_a_record_has_what_surrounds_its_times() -> None:
    """The record names the node and the cell, and has every round."""
    entry = measured()["entry"]
    assert entry["name"] == "test_fake[double-fake-cpu-eager-forward-float32-4]"
    assert entry["group"] == "double cpu forward float32 4"
    assert entry["param"] == "double-fake-cpu-eager-forward-float32-4"
    assert entry["params"]["framework"] == "fake"
    assert entry["stats"]["data"] == [2.0**-10 + 2.0**-4] * 16
    assert entry["extra_info"]["fwbench"]["workload"] == "double"


def test_what_was_not_measured_has_no_record() -> None:
    """Neither a disabled nor a failed benchmark leaves a record."""
    disabled = case_of(cell(operation()), Fake(), disabled=True)
    disabled.measure()
    assert host.of(disabled.benchmark) is None
    failed = case_of(cell(operation()), Fake())
    failed.measure()
    failed.benchmark.has_error = True
    assert host.of(failed.benchmark) is None


def test_a_run_is_written_as_pytest_benchmark_does() -> None:
    """Text is indented and plain ASCII; what JSON cannot say is named rather than fatal."""
    assert dumps({"é": 1}, indent=4) == '{\n    "\\u00e9": 1\n}'
    assert "UNSERIALIZABLE" in dumps({"x": object()}, indent=4)


# The journal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where journals of a project lie."""
    return journal.journal_folder(tmp_path)


def written(folder: Path, *lines: Any, name: str = "now.jsonl") -> Path:
    """A journal with these lines."""
    journal = Journal(folder, name)
    for line in lines:
        journal.append(line)
    journal.close()
    return journal.path


def test_a_journal_is_recovered_as_a_run(folder: Path) -> None:
    """The head and the entries come back as pytest-benchmark's JSON, in their order."""
    first = measured()["entry"]
    path = written(folder, HEAD, first, entry("second"))
    assert path.parent == folder
    assert journal.recover(path, host.with_statistics) == {
        "machine_info": {"node": "here"},
        "version": "5.3.1",
        "benchmarks": [json.loads(json.dumps(first)), entry("second")],
    }


def test_a_journal_can_be_read_while_it_is_written(folder: Path) -> None:
    """A record is in the file as soon as it is appended: a crash loses none."""
    begun = Journal(folder, "now.jsonl")
    begun.append(HEAD)
    for count in (1, 2, 3):
        begun.append(entry(f"record {count}"))
        assert len(journal.recover(begun.path, host.with_statistics)["benchmarks"]) == count
    begun.close()


#: The bytes of the last line of the journal of the next test.
_LAST = json.dumps(entry("last")).encode() + b"\n"


@pytest.mark.parametrize("kept", range(1, len(_LAST)))
def test_a_last_line_that_was_cut_off_is_left_out(folder: Path, kept: int) -> None:
    """Whatever a crash left of the last line, the records before it are recovered."""
    path = written(folder, HEAD, entry("first"), entry("last"))
    whole = path.read_bytes()
    assert whole.endswith(b"\n" + _LAST)
    path.write_bytes(whole[: len(whole) - len(_LAST) + kept])
    assert journal.recover(path, host.with_statistics)["benchmarks"] == [entry("first")]


def test_a_character_that_was_cut_in_two_is_left_out(folder: Path) -> None:
    """Names beyond ASCII are written so that a cut never makes the file unreadable."""
    path = written(folder, HEAD, entry("first"), entry("größe"))
    whole = path.read_bytes()
    for kept in range(len(whole) - 20, len(whole)):
        path.write_bytes(whole[:kept])
        assert journal.recover(path, host.with_statistics)["benchmarks"] == [entry("first")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a journal of fwbench"),
        (b"\n", "is not a journal: line 1"),
        (b'{"fwbench_journal": 1', "is not a journal of fwbench"),
        (b'{"fwbench_journal": 1}\n', "has no record: the session ended before a case did"),
        (b'{"fwbench_journal": 1}\n{"name": ', "has no record"),
        (b'{"benchmarks": []}\n', "is not a journal of fwbench"),
        (b"[1, 2]\n", "is not a journal of fwbench"),
        (b"3\n4\n", "is not a journal of fwbench"),
        (b"hello\n", "is not a journal: line 1"),
        (b'{"fwbench_journal": 1}\n{"name": \n{"name": 2}\n', "is not a journal: line 2"),
        (b'{"fwbench_journal": 1}\n{}\n\xff\xfe\n', "cannot read"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """Empty, foreign and damaged files are refused by name, and say which line is wrong."""
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=message) as caught:
        journal.recover(path, host.with_statistics)
    assert str(path) in str(caught.value)


def test_a_missing_journal_is_refused(tmp_path: Path) -> None:
    """What cannot be opened is said to be unreadable, with its name."""
    with pytest.raises(StorageError, match=r"cannot read .*nowhere\.jsonl"):
        journal.recover(tmp_path / "nowhere.jsonl", host.with_statistics)


def test_the_newest_journals_are_kept(folder: Path) -> None:
    """Ten journals are kept, the new one among them; other files are nobody's business."""
    names = [f"2030010{day}T000000-1.jsonl" for day in range(9)]
    names += [f"2030011{day}T000000-1.jsonl" for day in range(6)]
    for name in names:
        written(folder, HEAD, name=name)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    Journal(folder, "20300120T000000-1.jsonl")
    assert sorted(path.name for path in folder.iterdir()) == [
        *names[-9:],
        "20300120T000000-1.jsonl",
        "notes.txt",
    ]


def test_an_empty_journal_is_removed(folder: Path) -> None:
    """A session that measured nothing leaves no journal, and closing twice does no harm."""
    begun = Journal(folder, "now.jsonl")
    assert begun.path.exists()
    begun.close()
    begun.close()
    assert not begun.path.exists()
    assert written(folder, HEAD).exists()


def test_journals_stay_out_of_version_control(folder: Path, tmp_path: Path) -> None:
    """The folder ignores all of itself, so that no project has to say so."""
    written(folder, HEAD)
    assert (tmp_path / ".fwbench" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_journal_of_another_session_is_not_touched(folder: Path) -> None:
    """A name that is taken is refused: two sessions never write to one journal."""
    path = written(folder, HEAD)
    with pytest.raises(StorageError, match=r"cannot write a journal under .*: File exists"):
        Journal(folder, path.name)
    assert json.loads(path.read_text(encoding="utf-8")) == HEAD


def test_a_journal_that_cannot_be_begun(tmp_path: Path) -> None:
    """Where a file stands in the way of the folder, the message says where and why."""
    (tmp_path / ".fwbench").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write a journal under .*\.fwbench"):
        Journal(journal.journal_folder(tmp_path), "now.jsonl")


def test_a_journal_on_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that cannot be written is an error; those before it stay, and closing is quiet."""
    begun = Journal(folder, "now.jsonl")
    begun.append(HEAD)
    begun.append(entry("first"))
    file = begun._file
    # Whatever is written to this device fails as on a full disk.
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(begun, "_file", full)
        with pytest.raises(StorageError, match=r"cannot write to .*: No space left on device"):
            begun.append(entry("second"))
        begun.close()
        file.close()
        assert journal.recover(begun.path, host.with_statistics)["benchmarks"] == [entry("first")]


# Files


@pytest.mark.parametrize("earlier", [None, "earlier"])
def test_a_file_is_written_as_a_whole(tmp_path: Path, earlier: str | None) -> None:
    """The new text takes the place of an earlier one, and nothing else is left in the folder."""
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
    """A write that fails at any point leaves the earlier file as it was, and no other."""
    path = tmp_path / "run.json"
    path.write_text("earlier", encoding="utf-8")
    break_it(monkeypatch, Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match=r"cannot write .*run\.json: No space left on device"):
        files.write_atomically(path, "new")
    assert path.read_text(encoding="utf-8") == "earlier"
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_is_followed(tmp_path: Path) -> None:
    """Writing to a link writes to the file that it names, and the link stays one."""
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
    """The trial changes nothing, whether or not the file is there."""
    path = tmp_path / "run.json"
    if exists:
        path.write_text("earlier", encoding="utf-8")
    files.check_writable(path)
    assert [p.read_text(encoding="utf-8") for p in tmp_path.iterdir()] == ["earlier"] * exists


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nowhere/run.json", "No such file or directory"),
        ("file/run.json", "Not a directory"),
        ("folder", "is a directory"),
    ],
)
def test_what_cannot_be_written_is_known_before(tmp_path: Path, place: str, reason: str) -> None:
    """A missing folder, a file in its place and a folder itself are refused with the reason."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    for attempt in (files.check_writable, lambda path: files.write_atomically(path, "new")):
        with pytest.raises(StorageError, match=f"cannot write .*{place}: (?i:{reason})"):
            attempt(tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
