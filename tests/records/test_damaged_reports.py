"""Whatever a run or a journal has become, a report leaves out no more than it must."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fwbench.records.stored import load
from support import documents
from support.data_files import damaged, lines_damaged
from support.documents import run, unchanged

_STORED = Path(__file__).parent / "stored"
_RUNS = {path.name: path.read_bytes() for path in (_STORED / "current").glob("*.json")}
_JOURNAL = (_STORED / "current" / "journal.jsonl").read_bytes()

_FORMATS = {"--markdown": "report.md", "--csv": "report.csv", "-o": "report.html"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@given(
    content=st.sampled_from(sorted(_RUNS)).flatmap(lambda name: damaged(_RUNS[name])),
    # Pages have charts, which take most of the time.
    formats=st.sampled_from((["--markdown", "--csv"],) * 4 + ([*_FORMATS],)),
)
def test_a_report_shows_or_leaves_out(folder: Path, content: bytes, formats: list[str]) -> None:
    """It ends as documented, and what it writes is whole or as before."""
    bad = folder / "bad.json"
    bad.write_bytes(content)
    written = {name: folder / _FORMATS[name] for name in formats}
    for path in written.values():
        path.write_text("earlier", encoding="utf-8")
    with unchanged(bad):
        ended = run(
            "report", str(bad), *(str(part) for option in written.items() for part in option)
        )
    documents.assert_ended(ended, (0, 1, 2))
    documents.assert_whole(ended, [*written.values()])


@given(content=lines_damaged(_JOURNAL))
def test_a_damaged_line_costs_that_line(folder: Path, content: bytes) -> None:
    journal, output = folder / "bad.jsonl", folder / "recovered.json"
    journal.write_bytes(content)
    output.write_text("earlier", encoding="utf-8")
    ended = run("recover", str(journal), "-o", str(output))
    documents.assert_ended(ended, (0, 2, 3))
    if ended.status:
        assert output.read_text(encoding="utf-8") == "earlier"
        assert journal.read_bytes() == content
        return
    assert journal.read_bytes().startswith(content), "one line more says that it was recovered"
    assert load(output).records
