"""``fwbench report --paper``: what was published in 2020, and what a run says of it today."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from runs_of_2020 import (
    EAGER,
    FAILS,
    FIRST_EPOCH,
    HOLDS,
    HYBRIDIZE,
    STATEMENTS,
    TRAINS_FASTER,
    UNKNOWN,
    WAY_FASTER,
    XLA,
    Entry,
    few_operations,
    lenet,
    of_15,
    pair,
    section,
    tells_nothing,
)

from fwbench import cli
from fwbench.errors import UnreadableRun, UsageError
from fwbench.gate.verdicts import Comparison, Rules
from fwbench.report.model import read
from fwbench.report.section import TableCell
from fwbench_extras.studies import report_2020
from support.launched_runs import output, plain, write
from support.reports import case, column, foreign_run, parsed, run_of, runs_of

_USAGE_ERROR = 2
_SOME_UNREADABLE = 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run, ``run.json``, of two cores of a Fake CPU."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", *pair("gemm", 450, 3.0, 20.0), of_15("mxnet", "eager"), threads=2)
    return tmp_path


_OUTPUTS = ("-o", "report.html", "--markdown", "report.md", "--csv", "report.csv")


def _assert_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], other: str, message: str
) -> None:
    """In either order, with this message, and without any output."""
    for files in (("run.json", other), (other, "run.json")):
        assert cli.main(["report", *files, "--paper", *_OUTPUTS]) == _USAGE_ERROR
        assert capsys.readouterr() == ("", f"fwbench: error: {message}\n")
        assert {path.name for path in folder.iterdir()} == {"run.json", other}


def test_the_section_is_in_both_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before what was measured, with its verdicts, its figures and its notes."""
    assert cli.main(["report", "run.json", "--paper", *_OUTPUTS]) == 0
    assert capsys.readouterr().err == ""
    titles = [
        STATEMENTS,
        "2020, operations on the CPU: TensorFlow's time over MXNet's",
        "2020, operations on the CPU: TensorFlow's time over MXNet's, size by size",
        "2020, LeNet on the CPU",
        "overview cpu forward float32",
        "gemm cpu forward float32",
        "training lenet cpu float32 200",
    ]
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [element.all("h2")[0].text for element in page.of_class("detail")] == titles
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (.+)$", written, re.MULTILINE)[-len(titles) :] == titles
    (node,) = page.all("section", id="part-What-became-of-the-statements-of-2020")
    for statement in (WAY_FASTER, TRAINS_FASTER, HYBRIDIZE, XLA, FIRST_EPOCH, EAGER):
        assert f'"{statement}"' in node.text
        assert f'| "{statement}" | cpu | ' in written
    for text in (UNKNOWN, few_operations(1, 1), "2 times less on their geometric mean"):
        assert text in node.text
        assert text in written
    assert "| gemm 450 | 25.12x | 20.00x | 3.00x |" in written
    assert "| mxnet eager | 15 | 787 s | 98.71% | 15 s | 98.00% |" in written


def test_a_page_with_it_is_whole(folder: Path) -> None:
    """Ids are unique, links lead somewhere, tables have as many cells in a row as columns."""
    assert cli.main(["report", "run.json", "--paper", *_OUTPUTS]) == 0
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [name for name, number in Counter(page.ids).items() if number > 1] == []
    assert {node.attributes["href"].removeprefix("#") for node in page.all("a")} <= {*page.ids}
    for table in page.all("table"):
        width = len(table.all("th", scope="col"))
        assert {len(row.all("th", "td")) for row in table.all("tr")} == {width}


def test_nobody_is_told_of_2020_unasked(folder: Path) -> None:
    assert cli.main(["report", "run.json", *_OUTPUTS]) == 0
    for name in ("report.html", "report.md"):
        assert "2020" not in (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("session", "named"),
    [
        ({"threads": 4}, ("Fake CPU, 2 threads", "Fake CPU, 4 threads")),
        (
            {"threads": 2, "machine": {"cpu": "Other CPU"}},
            ("Fake CPU, 2 threads", "Other CPU, 2 threads"),
        ),
    ],
)
def test_several_machines_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], session: dict[str, Any], named: Sequence[str]
) -> None:
    """Machines or thread counts: they are named in one order, and nothing is written."""
    write(folder / "other.json", case(), **session)
    message = (
        "--paper compares one machine with 2020, and these runs are from "
        f"several: {'; '.join(named)}; give those of one"
    )
    _assert_refused(folder, capsys, "other.json", message)
    # A report without 2020 takes them.
    assert cli.main(["report", "run.json", "other.json", *_OUTPUTS]) == 0


def test_several_runs_of_one_machine_are_one(folder: Path) -> None:
    """TensorFlow may have been measured in one session, and MXNet in another."""
    tensorflow, mxnet = pair("gemm", 100, 3.0)
    for name, entries in (("tensorflow", [tensorflow]), ("mxnet", [mxnet])):
        write(folder / f"{name}.json", *entries, threads=2)
    assert cli.main(["report", "tensorflow.json", "mxnet.json", "--paper", *_OUTPUTS]) == 0
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert re.search(r"^\| gemm 100 \| .* \| 3\.00x \|$", written, re.MULTILINE)


@pytest.mark.parametrize("entries", [pair("gemm", 450, 9.0), [of_15("mxnet", "eager", 9.0)]])
def test_a_case_in_two_runs_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], entries: Sequence[Entry]
) -> None:
    """Either might count: it is named, and nothing is written."""
    write(folder / "again.json", case("dot"), *entries, threads=2)
    message = (
        f"--paper takes the runs as one, and {entries[0]['param']} is in two "
        "of them: give the one that counts"
    )
    _assert_refused(folder, capsys, "again.json", message)
    assert cli.main(["report", "run.json", "run.json", "--paper", *_OUTPUTS]) == _USAGE_ERROR
    assert "is in two of them" in capsys.readouterr().err
    # It may be there twice if it is left out, or in a report without 2020.
    arguments = ["report", "run.json", "again.json"]
    assert cli.main([*arguments, "-k", "dot", "--paper", *_OUTPUTS]) == _SOME_UNREADABLE
    assert cli.main([*arguments, *_OUTPUTS]) == 0


def test_plain_records_may_be_in_two_runs(folder: Path) -> None:
    for name, framework in (("tensorflow", "tensorflow"), ("torch", "torch")):
        write(folder / f"{name}.json", plain(), case("dot", framework), threads=2)
    assert cli.main(["report", "tensorflow.json", "torch.json", "--paper", *_OUTPUTS]) == 0


@pytest.mark.parametrize("brand", ["Fake CPU", "Other CPU"])
def test_plain_runs_are_no_machine(folder: Path, brand: str) -> None:
    """pytest-benchmark's own records are beside nothing of 2020, and know no threads."""
    foreign_run(folder / "plain.json", brand)
    assert cli.main(["report", "run.json", "plain.json", "--paper", *_OUTPUTS]) == 0
    assert "| gemm 450 | 25.12x" in (folder / "report.md").read_text(encoding="utf-8")


def test_threads_that_are_none_are_no_crash(folder: Path) -> None:
    write(folder / "other.json", case(), threads=[2])
    assert cli.main(["report", "other.json", "--paper", *_OUTPUTS]) in {0, 1, 2}


@pytest.mark.parametrize("changed", [0, 1], ids=["tensorflow", "mxnet"])
def test_no_completion_time_is_unreadable(
    folder: Path, capsys: pytest.CaptureFixture[str], changed: int
) -> None:
    """Changed by hand, or by another program: the file is named, the others are beside 2020."""
    entries = pair("dot", 91_000, 3.0)
    del entries[changed]["extra_info"]["fwbench"]["completion_s"]
    path = write(folder / "changed.json", *entries, threads=2)
    with pytest.raises(UnreadableRun, match=r"changed\.json is not .* completion_s is missing"):
        read(path)
    arguments = ["report", "run.json", "changed.json", "--paper", *_OUTPUTS]
    assert cli.main(arguments) == _SOME_UNREADABLE
    assert "changed.json is not a valid fwbench run" in capsys.readouterr().err
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert "changed.json is not a valid fwbench run" in written
    assert "| gemm 450 | 25.12x" in written
    assert "dot 91,000" not in written


def test_a_run_that_is_left_out_is_no_machine(folder: Path) -> None:
    """With ``-k``, that of another machine may have no case left."""
    write(folder / "other.json", case("dot"), threads=8, machine={"cpu": "Other CPU"})
    arguments = ["run.json", "other.json", "-k", "gemm", "--paper", *_OUTPUTS]
    assert cli.main(["report", *arguments]) == _SOME_UNREADABLE
    assert "| gemm 450 | 25.12x" in (folder / "report.md").read_text(encoding="utf-8")


def _verdicts(path: Path) -> None:
    rules = dataclasses.asdict(Rules(margin=0.01))
    made = Comparison("a.json", "b.json", [], rules)
    path.write_text(json.dumps(made.to_json()), encoding="utf-8")


#: Runs without a record of fwbench.
_WITHOUT: dict[str, Callable[[Path], Any]] = {
    "pytest-benchmark's": foreign_run,
    "fwbench's, of plain tests": lambda path: write(path, plain()),
    "verdicts": _verdicts,
    "empty": lambda path: path.write_text(json.dumps(output([])), encoding="utf-8"),
}


@pytest.mark.parametrize("make", _WITHOUT.values(), ids=_WITHOUT)
def test_a_run_without_fwbench_is_no_crash(
    folder: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Any]
) -> None:
    """A report is written in which no statement has a verdict, and nothing can be told."""
    make(folder / "plain.json")
    (only,) = report_2020.sections([read(folder / "plain.json")])
    tells_nothing(only)
    assert cli.main(["report", "plain.json", "--paper", *_OUTPUTS]) == 0
    assert "Traceback" not in capsys.readouterr().err
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    written = (folder / "report.md").read_text(encoding="utf-8")
    for verdict in (HOLDS, FAILS, UNKNOWN):
        assert f"| {verdict} |" not in written
        assert verdict not in [cell.text for cell in page.all("td")]
    (node,) = page.all("section", id="part-What-became-of-the-statements-of-2020")
    for text in (node.text, written):
        assert only.notes[0] in text


def test_all_of_a_case_filtered_away_is_no_crash(folder: Path) -> None:
    """With ``-k`` nothing may be left of a run: it is said, and the report is written."""
    arguments = ["run.json", "-k", "no such case", "--paper", *_OUTPUTS]
    assert cli.main(["report", *arguments]) == _SOME_UNREADABLE
    for name in ("report.html", "report.md"):
        assert "nothing can be concluded." in (folder / name).read_text(encoding="utf-8")


def test_history_alone_is_no_crash(folder: Path) -> None:
    pytest.importorskip("ruptures")
    assert cli.main(["report", "--history", str(folder), "--paper", "-o", "report.html"]) == 0
    assert "nothing can be concluded." in (folder / "report.html").read_text(encoding="utf-8")
    tells_nothing(*report_2020.sections([]))


def test_cells_sort_by_numbers() -> None:
    """Seconds, accuracies and ratios have the values that their texts are made of."""
    run = run_of(of_15("mxnet", "eager", 2.0), *pair("gemm", 450, 3.0))
    shown_section = section([run], "2020, LeNet on the CPU")
    (row,) = [filled for filled in shown_section.rows if filled.cells[4].text]
    assert row.cells[1:] == [
        *(TableCell("15", 15), TableCell("787 s", 786.99), TableCell("98.71%", 0.9871)),
        *(TableCell("30 s", 30.0), TableCell("98.00%", 0.98)),
    ]
    table = section([run], "2020, operations on the CPU: TensorFlow's time over MXNet's")
    done = column(table, "today, until the work was done (range)")["gemm"]
    assert done.text == "3.00x (3.00x to 3.00x)"
    assert done.value == pytest.approx(3.0)


def _changed(name: str, value: Any, *, index: int = 1) -> list[Entry]:
    """TensorFlow's and MXNet's case of an operation, of which one was changed."""
    entries = pair("dot", 91_000, 3.0)
    entries[index]["extra_info"]["fwbench"][name] = value
    return entries


_CHANGED: dict[str, Sequence[Entry]] = {
    "a completion time of 0": _changed("completion_s", 0.0),
    "a completion time of 0 in TensorFlow": _changed("completion_s", 0.0, index=0),
    "a completion time below 0": _changed("completion_s", -1.0),
    "a dispatch time below 0": _changed("dispatch_s", -1.0),
    "steps that are a list": [lenet("tensorflow", "graph", steps_per_epoch=[240])],
    "data that are text": [lenet(data="mnist")],
}


@pytest.mark.parametrize("entries", _CHANGED.values(), ids=_CHANGED)
def test_a_changed_run_is_unreadable(folder: Path, entries: Sequence[Entry]) -> None:
    """By hand, or by another program: the file is named, and the others are set beside 2020."""
    path = write(folder / "changed.json", *entries, threads=2)
    with pytest.raises(UnreadableRun, match=r"changed\.json is not a valid fwbench run"):
        read(path)
    assert cli.main(["report", "run.json", "changed.json", "--paper", *_OUTPUTS]) == 1


def test_several_gpus_are_refused() -> None:
    """Two machines of one CPU may have different GPUs, and both call theirs gpu:0."""
    tensorflow, _ = pair("gemm", 100, device="gpu:0", device_name="Fake GPU")
    _, mxnet = pair("gemm", 100, device="gpu:0", device_name="Other GPU")
    with pytest.raises(UsageError, match=r"Fake GPU.*Other GPU"):
        report_2020.sections(runs_of(tensorflow=[tensorflow], mxnet=[mxnet]))


def test_one_case_of_two_tests_is_refused() -> None:
    """Else the run that is given last would decide in silence."""
    tensorflow, mxnet = pair("gemm", 100, 3.0)
    other, _ = pair("gemm", 100, 9.0)
    other["fullname"] = other["fullname"].replace("test_it.py::test_it", "test_it.py::test_other")
    for first, second in itertools.permutations(([tensorflow, mxnet], [other])):
        with pytest.raises(UsageError, match="in two of them"):
            report_2020.sections(runs_of(first=first, second=second))
