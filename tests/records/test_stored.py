"""Any bytes at all are a run that can be read, or are refused by name."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from fwbench.errors import StorageError, UnreadableRun, UsageError
from fwbench.plugin.options import threshold_of
from fwbench.records import files
from fwbench.records.facts import CaseFacts
from fwbench.records.session_facts import SessionFacts
from fwbench.records.stored import from_json, load, parse
from fwbench.records.table import Fact, Table, _damage, type_words
from fwbench.records.units import SECONDS
from fwbench.records.upstream import LaunchEntry, RunInfo, Statistics
from support.launched_runs import entry, output, plain
from support.tables import tabled

_USAGE_ERROR = 2

#: JSON that a parser takes, or nearly, and what is said of it.
_BAD_JSON = {
    "brackets without end": (b"[" * 100_000, "nested more than 100 levels deep"),
    "brackets": (b"[" * 101 + b"]" * 101, "nested more than 100 levels deep"),
    "braces": (b'{"a":' * 300 + b"1" + b"}" * 300, "nested more than 100 levels deep"),
    "a whole number": (b'{"a": 1' + b"0" * 5000 + b"}", "a whole number has 5001 digits"),
    "twice": (b'{"benchmarks": [], "benchmarks": []}', "an object has the key 'benchmarks' twice"),
    "utf-16": ('{"benchmarks": []}'.encode("utf-16"), "'utf-8' codec can't decode"),
    "cut character": (b'{"benchmarks": "\xc3', "'utf-8' codec can't decode"),
    "zeros": (bytes(4096), "is not JSON, or is cut off"),
}


@pytest.mark.parametrize(("content", "message"), _BAD_JSON.values(), ids=_BAD_JSON)
def test_bad_json_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableRun) as caught:
        parse(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_what_fwbench_writes_is_not_deep(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"[" * 100 + b"]" * 100)
    parse(path)


def test_what_pytest_benchmark_writes_is_read(tmp_path: Path) -> None:
    """A parameter of a test, or what it notes, may be no number; and an editor may mark UTF-8."""
    made = {**plain(), "params": {"x": float("nan")}, "extra_info": {"loss": float("inf")}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(output([made])), encoding="utf-8-sig")
    assert len(load(path).records) == 1


def _nested(table: type[Table]) -> Iterator[type[Table]]:
    yield table
    for declared in table.declared().values():
        for kind in (declared.type, *get_args(declared.type)):
            if isinstance(kind, type) and issubclass(kind, Table):
                yield from _nested(kind)


_TABLES = {
    table
    for root in (CaseFacts, SessionFacts, Statistics, LaunchEntry, RunInfo)
    for table in _nested(root)
}

#: Every number that is recorded anywhere.
_NUMBERS = {
    f"{table.__name__}.{name}": declared
    for table in sorted(_TABLES, key=lambda table: table.__name__)
    for name, declared in table.declared().items()
    if re.search("number", type_words(declared.type))
}


@pytest.mark.parametrize("declared", _NUMBERS.values(), ids=_NUMBERS)
def test_every_number_is_one_that_can_be(declared: Fact) -> None:
    """Finite, and of a size that its unit has; no time is negative."""
    within = (lambda bad: [1.0, bad]) if get_origin(declared.type) is list else lambda bad: bad
    if get_origin(declared.type) is dict:
        within = lambda bad: {"one": bad}  # noqa: E731
    never = [float("nan"), float("inf"), -float("inf"), 10**400, 1e308, [], True]
    if declared.unit is SECONDS:
        never += [-1.0, 5e-324, 1e-300, 1e16]
    for bad in never:
        assert any(_damage(within(bad), declared.type, declared.check, "it")), bad


@tabled
def test_what_is_around_the_records_is_checked(
    around: dict[str, Any], message: str, foreign: dict[str, Any] | None
) -> None:
    """``foreign`` is of a record that fwbench did not write."""
    record = {**plain(), **foreign} if foreign else entry()
    with pytest.raises(UnreadableRun) as caught:
        from_json("run.json", json.loads(json.dumps({**output([record]), **around})))
    assert message in str(caught.value)


def test_two_records_of_a_case_are_refused() -> None:
    """By every reader: a gate that took one of them would be green at random."""
    twice = [entry("gemm"), entry("dot"), entry("gemm", framework="numpy")]
    with pytest.raises(UnreadableRun, match=r"test_it\[gemm-.*\] has several records"):
        from_json("run.json", output(twice))


@pytest.mark.parametrize("threshold", [0, 1, 1e6, -0.5])
def test_a_threshold_that_no_marker_has_is_refused(threshold: float) -> None:
    with pytest.raises(UnreadableRun, match=r"threshold is .*, and must be a number above 0 and"):
        from_json("run.json", output([entry(threshold=threshold)]))
    with pytest.raises(UsageError, match="not a fraction between 0 and 1"):
        threshold_of(pytest.mark.fwbench("gemm", threshold=threshold).mark)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop.name)
    with pytest.raises(UnreadableRun, match="Too many levels of symbolic links"):
        load(loop)
    for write in (files.check_writable, lambda path: files.write_atomically(path, "text")):
        with pytest.raises(StorageError, match="Too many levels of symbolic links"):
            write(loop)
    assert files.target(loop) == loop


def test_a_file_larger_than_any_run_is_refused(tmp_path: Path) -> None:
    """Before it is read: it would take all of the memory."""
    path = tmp_path / "run.json"
    path.touch()
    os.truncate(path, files.LARGEST_BYTES + 1)
    for read in (parse, files.read):
        with pytest.raises((UnreadableRun, StorageError), match="larger than 512 MiB"):
            read(path)


def test_what_has_no_size_is_read_up_to_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device or a pipe may never end."""
    monkeypatch.setattr(files, "LARGEST_BYTES", 2**16)
    with pytest.raises(UnreadableRun, match="cannot read /dev/zero: it is larger"):
        parse(Path("/dev/zero"))
