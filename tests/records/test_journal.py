"""The journal: written case by case, and recovered as a run."""

import errno
import fcntl
import json
import resource
import socket
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench.errors import StorageError, UnreadableRun
from fwbench.plugin import host
from fwbench.records import journal
from fwbench.records.journal import Journal, Recovered
from support.fakes import entry
from support.launched_runs import entry as launched
from support.launched_runs import measured

HEAD = {"fwbench_journal": 1, "machine_info": {"node": "here"}, "version": "5.3.1"}


def _no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return journal.journal_folder(tmp_path)


def written(folder: Path, *lines: Any, name: str = "now.jsonl") -> Path:
    journal = Journal(folder, name)
    for line in lines:
        journal.append(line)
    journal.close()
    return journal.path


def recovered(path: Path) -> Recovered:
    return journal.recover(path, host.with_statistics)


def lost(result: Recovered, path: Path, line: int) -> str:
    """The only problem of a recovered journal, which is in this line."""
    (problem,) = result.lost
    assert problem.startswith(f"{path}: line {line}: ")
    return problem


def test_a_journal_is_recovered_as_a_run(folder: Path) -> None:
    first = measured()["entry"]
    path = written(folder, HEAD, first, entry("second"))
    assert path.parent == folder
    assert recovered(path).run == {
        "machine_info": {"node": "here"},
        "version": "5.3.1",
        "benchmarks": [json.loads(json.dumps(first)), entry("second")],
    }


def test_a_journal_can_be_read_while_it_is_written(folder: Path) -> None:
    begun = Journal(folder, "now.jsonl")
    begun.append(HEAD)
    for count in (1, 2, 3):
        begun.append(entry(f"record {count}"))
        assert len(recovered(begun.path).run["benchmarks"]) == count
    begun.close()


def test_a_test_that_ran_again_has_its_last_record(folder: Path) -> None:
    path = written(folder, HEAD, {**entry("a"), "stats": {"min": 2.0}}, entry("b"), entry("a"))
    assert recovered(path).run["benchmarks"] == [entry("a"), entry("b")]
    assert not recovered(path).lost


@pytest.mark.parametrize("last", ["last", "größe"])
def test_a_last_line_that_was_cut_off_is_left_out(folder: Path, last: str) -> None:
    """Names beyond ASCII are written so that a cut never makes the file unreadable."""
    path = written(folder, HEAD, entry("first"), entry(last))
    whole = path.read_bytes()
    *_, last_line, _ = whole.split(b"\n")
    for cut in range(1, len(last_line) + 1):
        path.write_bytes(whole[:-cut])
        assert recovered(path).run["benchmarks"] == [entry("first")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a journal of fwbench"),
        (b"\n", "is not a journal of fwbench"),
        (b'{"fwbench_journal": 1', "is not a journal of fwbench"),
        (b'{"fwbench_journal": 1}\n', "has no record: the session ended before a case did"),
        (b'{"fwbench_journal": 1}\n{"name": ', "has no record"),
        (b'{"benchmarks": []}\n', "is not a journal of fwbench"),
        (b"[1, 2]\n", "is not a journal of fwbench"),
        (b"3\n4\n", "is not a journal of fwbench"),
        (b"hello\n", "is not a journal of fwbench"),
        (b"[" * 100_000 + b"\n", "is not a journal of fwbench"),
        (b'{"fwbench_journal": 1}\n{"name": \n{"name": 2}\n', "line 2: is not a record"),
        (b'{"fwbench_journal": 1}\n{}\n\xff\xfe\n', "line 3: is not a record"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    with pytest.raises(UnreadableRun, match=message) as caught:
        recovered(path)
    assert str(path) in str(caught.value)


def test_a_missing_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRun, match=r"cannot read .*nowhere\.jsonl"):
        recovered(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(
    ("damaged", "expected_text"),
    [
        (b'{"fullname": ', "is not a record"),
        (b"\xff\xfe", "is not a record"),
        (b"[" * 100_000, "is not a record"),
        (b'["fullname"]', "is not a record"),
        (
            b'{"fullname": "x", "stats": {"min": 1}, "extra_info": {"fwbench": {"threads": 2}}}',
            "x: workload is missing",
        ),
        (b'{"fullname": "x", "extra_info": {}}', "x: stats is None, and must be an object"),
        (b'{"fullname": "x", "extra_info": [], "stats": {"min": 1.0}}', "x: extra_info is []"),
        (b'{"fullname": "x", "stats": {"min": 0}}', "x: stats.min is 0, and must be"),
        (b'{"fullname": ["x"], "stats": {"min": 1.0}}', "its record: fullname is ['x']"),
    ],
    ids=["cut", "binary", "deep", "a list", "a fact", "no stats", "a list", "a time", "a name"],
)
def test_a_damaged_line_costs_that_line(folder: Path, damaged: bytes, expected_text: str) -> None:
    path = written(folder, HEAD, entry("first"), entry("last"))
    head, first, last, _ = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([head, first, damaged, last, b""]))
    result = recovered(path)
    assert result.run["benchmarks"] == [entry("first"), entry("last")]
    assert expected_text in lost(result, path, 3)


@pytest.mark.parametrize(
    "head",
    [b"garbage", b'{"fwbench_journal": 1, "machine_info": 5}', b'{"fwbench_journal": 1, "fw'],
    ids=["binary", "a fact", "cut"],
)
def test_a_damaged_head_costs_what_it_says(folder: Path, head: bytes) -> None:
    path = written(folder, HEAD, entry("first"), entry("last"))
    _, *others = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([head, *others]))
    result = recovered(path)
    assert result.run == {"benchmarks": [entry("first"), entry("last")]}
    assert lost(result, path, 1)


def _launch(number: int, **changes: Any) -> dict[str, Any]:
    """The entry of one launch of a case."""
    made: dict[str, Any] = {
        **launched("gemm", launches=None, launch=number),
        "options": {"min_rounds": 5},
        "stats": {"data": [1.0 + number, 2.0], "iterations": 3},
    }
    return {**made, **changes}


_MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "no group": ({k: v for k, v in _launch(1).items() if k != "group"}, "group is missing"),
    "no options": (_launch(1, options=None), "options is None"),
    "no rounds": (_launch(1, stats={"min": 1.0, "iterations": 3}), "stats.data is missing"),
    "empty": (_launch(1, stats={"data": [], "iterations": 3}), "stats.data is empty"),
    "no iterations": (_launch(1, stats={"data": [1.0]}), "stats.iterations is missing"),
    "no statistic": (
        {**_launch(1), **launched("gemm", launches=None, launch=1, statistic=None)},
        "launch is 1, and statistic is missing",
    ),
    "twice": (_launch(0), "has such a record in a line before"),
    "no launch": (
        {**_launch(0), **launched("gemm", launches=None)},
        "has such a record in a line before",
    ),
}


@pytest.mark.parametrize(("damaged", "expected_text"), _MALFORMED.values(), ids=_MALFORMED)
def test_a_malformed_launch_costs_that_launch(
    folder: Path, damaged: dict[str, Any], expected_text: str
) -> None:
    path = written(folder, HEAD, _launch(0), damaged, _launch(2))
    result = recovered(path)
    (case,) = result.run["benchmarks"]
    assert [launch["launch"] for launch in case["extra_info"]["fwbench"]["launches"]] == [0, 2]
    assert expected_text in lost(result, path, 3)


def finished(folder: Path, name: str) -> Path:
    """The journal of a session that has ended."""
    path = written(folder, HEAD, entry("first"), name=name)
    journal.finish(path)
    return path


def test_the_newest_finished_journals_are_kept(folder: Path) -> None:
    names = [f"2030010{day}T000000-1.jsonl" for day in range(9)]
    names += [f"2030011{day}T000000-1.jsonl" for day in range(6)]
    for name in names:
        finished(folder, name)
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    Journal(folder, "20300120T000000-1.jsonl")
    there = sorted(path.name for path in folder.iterdir())
    assert there == [*names[-9:], "20300120T000000-1.jsonl", "notes.txt"]


def test_a_device_among_the_journals_is_not_read_to_its_end(folder: Path) -> None:
    """It has none: a session would take all memory before its first case."""
    written(folder, HEAD)
    (folder / "endless.jsonl").symlink_to("/dev/zero")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**28, limits[1]))
    try:
        Journal(folder, "next.jsonl")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_an_unfinished_journal_stays(folder: Path) -> None:
    crashed = written(folder, HEAD, entry("first"), name="20200101T000000-1.jsonl")
    alive = Journal(folder, "20200102T000000-1.jsonl")
    alive.append(HEAD)
    for number in range(15):
        finished(folder, f"203001{number:02}T000000-1.jsonl")
    Journal(folder, "20300120T000000-1.jsonl")
    assert crashed.exists()
    assert alive.path.exists()
    assert len([*folder.iterdir()]) == 2 + 10


def test_what_ends_a_journal_says_whether_another_session_can_go_on(folder: Path) -> None:
    path = written(folder, HEAD, entry("first"))
    assert (journal.is_finished(path), journal.is_resumable(path)) == (False, True)
    journal.finish(path, resumable=True)
    assert (journal.is_finished(path), journal.is_resumable(path)) == (True, True)
    journal.finish(path)
    assert (journal.is_finished(path), journal.is_resumable(path)) == (True, False)


def test_a_journal_is_locked_while_it_is_written(folder: Path) -> None:
    begun = Journal(folder, "20200102T000000-1.jsonl")
    begun.append(HEAD)
    assert journal.is_running(begun.path)
    begun.close()
    assert not journal.is_running(begun.path)


@pytest.fixture(params=[None, errno.ENOLCK, errno.ENOTSUP], ids=["locks", "ENOLCK", "ENOTSUP"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True where the file system has locks; both ways are tried."""

    def flock(*_: object) -> None:
        raise OSError(request.param, "No locks available")

    if request.param is not None:
        monkeypatch.setattr(fcntl, "flock", flock)
    return request.param is None


def test_a_journal_has_one_session_at_a_time(folder: Path, locks: bool) -> None:
    """Its own, and then one that goes on with it; without locks a file names the process."""
    begun = Journal(folder, "20200102T000000-1.jsonl")
    begun.append(HEAD)
    assert journal.is_running(begun.path)
    assert journal.hold(begun.path) is None
    owner = folder / "20200102T000000-1.jsonl.owner-0001"
    hint = "" if locks else f" (delete {owner} if that is not so)"
    assert journal.owner_hint(begun.path) == hint
    begun.close()
    for _ in range(2):
        assert not journal.is_running(begun.path)
        give_back = journal.hold(begun.path)
        assert give_back is not None
        assert journal.is_running(begun.path)
        assert journal.hold(begun.path) is None, "a second one must not go on with it"
        give_back()
    assert [*folder.glob("*.jsonl*")] == [begun.path]


@pytest.mark.parametrize(
    ("owner", "is_alive"),
    [
        (f"{2**22 + 1} {socket.gethostname()}", False),  # more than Linux has
        (f"{2**22 + 1} another-machine", True),
        ("", True),  # it is being written
    ],
)
def test_without_locks_an_owner_that_has_ended_has_no_journal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: str, is_alive: bool
) -> None:
    """Nobody knows of processes of other machines. Files that a crash has left are not deleted."""
    monkeypatch.setattr(fcntl, "flock", _no_locks)
    path = written(folder, HEAD, name="20200102T000000-1.jsonl")
    left = path.with_name(f"{path.name}.owner-0007")
    left.write_text(owner, encoding="utf-8")
    assert journal.is_running(path) is is_alive
    give_back = journal.hold(path)
    assert (give_back is None) is is_alive
    if give_back is not None:
        assert path.with_name(f"{path.name}.owner-0008").exists()
        give_back()
    assert [*folder.glob("*.owner-*")] == [left]


def test_without_locks_the_faster_of_two_sessions_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen that nobody has the journal."""
    monkeypatch.setattr(fcntl, "flock", _no_locks)
    path = written(folder, HEAD, name="20200102T000000-1.jsonl")
    assert journal.hold(path) is not None
    monkeypatch.setattr(journal, "_owners", lambda _: [])
    assert journal.hold(path) is None


def test_a_test_that_did_not_pass_is_to_run_again(folder: Path) -> None:
    """Its record is recovered, and not gone on with, unless it ran once more."""
    begun = Journal(folder, "now.jsonl")
    for line in (HEAD, entry("failed"), entry("rerun")):
        begun.append(line)
    for name in ("failed", "rerun"):
        begun.mark_not_passed(entry(name)["fullname"])
    begun.append(entry("rerun"))
    begun.close()
    result = recovered(begun.path)
    assert result.run["benchmarks"] == [entry("failed"), entry("rerun")]
    assert result.entries == [entry("rerun")]
    assert not result.lost


def test_a_finished_journal_can_be_recovered(folder: Path) -> None:
    path = finished(folder, "now.jsonl")
    journal.finish(path)
    result = recovered(path)
    assert (result.run["benchmarks"], [*result.lost]) == ([entry("first")], [])


def test_an_empty_journal_is_removed(folder: Path) -> None:
    begun = Journal(folder, "now.jsonl")
    assert begun.path.exists()
    begun.close()
    begun.close()
    assert not begun.path.exists()
    assert written(folder, HEAD).exists()


def test_journals_stay_out_of_version_control(folder: Path, tmp_path: Path) -> None:
    written(folder, HEAD)
    assert (tmp_path / ".fwbench" / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_journal_of_another_session_is_not_touched(folder: Path) -> None:
    path = written(folder, HEAD)
    with pytest.raises(StorageError, match=r"cannot write a journal under .*: File exists"):
        Journal(folder, path.name)
    assert json.loads(path.read_text(encoding="utf-8")) == HEAD


def test_a_journal_that_cannot_be_begun(tmp_path: Path) -> None:
    (tmp_path / ".fwbench").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write a journal under .*\.fwbench"):
        Journal(journal.journal_folder(tmp_path), "now.jsonl")


def test_a_journal_on_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Journal(folder, "now.jsonl")
    begun.append(HEAD)
    begun.append(entry("first"))
    file = begun._file
    # Writing to this device fails as on a full disk.
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(begun, "_file", full)
        with pytest.raises(StorageError, match=r"cannot write to .*: No space left on device"):
            begun.append(entry("second"))
        begun.close()
        file.close()
        assert recovered(begun.path).run["benchmarks"] == [entry("first")]
