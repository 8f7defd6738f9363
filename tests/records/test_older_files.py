"""Files that earlier versions wrote are read with the same result.

The three runs under ``stored`` are real; ``gate.md``, ``report.md`` and ``report.csv`` are what the
version that wrote them said of them.
"""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import pytest

from fwbench import cli
from fwbench.records.stored import facts_of
from fwbench.records.units import time

_STORED = Path(__file__).parent / "stored"


def _rows(markdown: Path) -> list[str]:
    """The rows of all tables, whatever their columns are called."""
    lines = markdown.read_text(encoding="utf-8").splitlines()
    following = [*lines[1:], ""]
    return [
        line
        for line, below in zip(lines, following, strict=True)
        if line.startswith("| ") and not line.startswith("| ---") and not below.startswith("| ---")
    ]


def test_the_gate_reads_the_same(tmp_path: Path) -> None:
    """Times and ratios of every case; what is made of them is another test's.

    These runs had five launches on a busy machine: nothing could be judged by today's rules.
    """
    pair = [str(_STORED / f"launches-{side}.json") for side in ("base", "contender")]
    assert cli.main(["gate", *pair, "--json", str(tmp_path / "gate.json")]) == 10
    written = json.loads((tmp_path / "gate.json").read_text(encoding="utf-8"))
    read = {
        (
            judgement["name"],
            time(statistics.median(judgement["base"])),
            time(statistics.median(judgement["contender"])),
            f"{judgement['ratio'] - 1:+.1%}",
        )
        for judgement in written["judgements"]
        if judgement["metric"] == "minimum"
    }
    assert read == {tuple(row.split(" | ")[1:5]) for row in _rows(_STORED / "gate.md")} != set()


def test_the_report_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every figure of every table and of the CSV; nothing is unknown.

    Tables have other columns today, and leave out empty ones.
    """
    runs = [str(_STORED / name) for name in ("launches-base.json", "rounds.json")]
    written = ["--markdown", str(tmp_path / "report.md"), "--csv", str(tmp_path / "report.csv")]
    assert cli.main(["report", *runs, *written]) == 0
    assert capsys.readouterr().err == ""
    today = [_texts(row) for row in _rows(tmp_path / "report.md")]
    earlier = [_texts(row) for row in _rows(_STORED / "report.md")]
    assert [row for row in earlier if not any(_holds(other, row) for other in today)] == []
    assert earlier
    figures, expected = _figures(tmp_path / "report.csv"), _figures(_STORED / "report.csv")
    columns = expected[0].keys()  # there are more today
    assert [{name: row[name] for name in columns} for row in figures] == expected


def _texts(row: str) -> list[str]:
    """The cells of a row that are not empty."""
    return [text for cell in row.strip("|").split(" | ") if (text := cell.strip(" |"))]


def _holds(row: list[str], part: list[str]) -> bool:
    """Whether a row has these texts, in this order, among others."""
    rest = iter(row)
    return row[0] == part[0] and all(text in rest for text in part)


def _figures(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [*csv.DictReader(lines)]


def test_first_calls_of_earlier_versions_were_of_any_process() -> None:
    """They have today's name, in the launches too; what has both names is of today."""
    launches = [{"launch": 0, "value_s": 1.0, "first_call_s": 2.0}]
    case = {**dict.fromkeys(_NAMES, "x"), "size": 1, "first_call_s": 3.0, "launches": launches}
    facts = facts_of({"extra_info": {"fwbench": case}})
    assert (facts.first_call_s, facts.first_call_in_process_s) == (None, 3.0)
    (launch,) = facts.launches or ()
    assert (launch.first_call_s, launch.first_call_in_process_s) == (None, 2.0)
    today = facts_of({"extra_info": {"fwbench": {**case, "first_call_in_process_s": 4.0}}})
    assert (today.first_call_s, today.first_call_in_process_s) == (3.0, 4.0)


_NAMES = ("workload", "framework", "device", "execution", "direction", "dtype")
