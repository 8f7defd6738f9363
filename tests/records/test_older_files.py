"""Files that earlier versions wrote are read with the same result.

The three runs under ``stored`` are real; ``gate.md``, ``report.md`` and ``report.csv`` are what the
version that wrote them said of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fwbench import cli

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


def test_the_gate_says_the_same(tmp_path: Path) -> None:
    """Verdicts, times, ratios and intervals of every case, and the exit status."""
    pair = [str(_STORED / f"launches-{side}.json") for side in ("base", "contender")]
    assert cli.main(["gate", *pair, "--markdown", str(tmp_path / "gate.md")]) == 0
    assert _rows(tmp_path / "gate.md") == _rows(_STORED / "gate.md") != []


def test_the_report_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row of every table, and every line of the CSV; nothing is unknown."""
    runs = [str(_STORED / name) for name in ("launches-base.json", "rounds.json")]
    written = ["--markdown", str(tmp_path / "report.md"), "--csv", str(tmp_path / "report.csv")]
    assert cli.main(["report", *runs, *written]) == 0
    assert capsys.readouterr().err == ""
    assert _rows(tmp_path / "report.md") == _rows(_STORED / "report.md") != []
    figures, expected = (
        (folder / "report.csv").read_text(encoding="utf-8") for folder in (tmp_path, _STORED)
    )
    assert figures == expected
