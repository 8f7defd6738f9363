"""Damaged runs and journals: each command refuses them, or uses as much as is whole."""

import contextlib
import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fwbench.records.stored import load
from support import documents
from support.data_files import damaged, lines_damaged
from support.documents import run, unchanged

_STORED = Path(__file__).parent / "stored" / "current"
_BASE, _CONTENDER = ((_STORED / f"{name}.json").read_bytes() for name in ("base", "contender"))

#: Draws by which the generator of damage decides; a failure is made as simple as one can be.
_SOURCE = st.randoms(use_true_random=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in ("base", "contender"):
        shutil.copy(_STORED / f"{name}.json", folder)
    return folder


@given(source=_SOURCE, is_base=st.booleans())
def test_a_gate_refuses_or_judges(project: Path, source: Random, is_base: bool) -> None:
    """It ends as documented, what it writes is whole or as before, and verdicts are of numbers."""
    bad, good = project / "bad.json", project / "contender.json"
    bad.write_bytes(damaged(source, _BASE))
    written = [project / "verdicts.md", project / "figures.json"]
    for path in written:
        path.write_text("earlier", encoding="utf-8")
    pair = (bad, good) if is_base else (good, bad)
    with unchanged(bad, good):
        ended = run(
            "gate", *map(str, pair), "--markdown", str(written[0]), "--json", str(written[1])
        )
    documents.assert_ended(ended, (0, 1, 2, 10, 11))
    documents.assert_whole(ended, written)


@given(source=_SOURCE, anyway=st.booleans())
def test_a_baseline_is_refused_or_good_for_a_gate(
    project: Path, source: Random, anyway: bool
) -> None:
    """A refused one leaves the earlier baseline; an accepted one can be shown and compared with."""
    bad = project / "bad.json"
    bad.write_bytes(damaged(source, _BASE))
    baseline = project / ".fwbench" / "baseline"
    shutil.rmtree(baseline, ignore_errors=True)
    baseline.mkdir(parents=True)
    (baseline / "earlier.json").write_bytes(_CONTENDER)
    with contextlib.chdir(project), unchanged(bad):
        ended = run("baseline", "set", str(bad), *(["--anyway"] if anyway else []))
    documents.assert_ended(ended, (0, 2))
    name = "bad.json" if ended.status == 0 else "earlier.json"
    assert [path.name for path in baseline.iterdir()] == [name]
    if ended.status == 0:
        with contextlib.chdir(project):
            documents.assert_ended(run("baseline", "show"), (0,))
            documents.assert_ended(run("gate", "contender.json"), (0, 1, 2, 10, 11))


_RUNS = {path.name: path.read_bytes() for path in _STORED.glob("*.json")}
_JOURNAL = (_STORED / "journal.jsonl").read_bytes()


@pytest.mark.parametrize("name", sorted(_RUNS))
def test_what_is_damaged_was_whole(name: str, tmp_path: Path) -> None:
    """Else every command would refuse it whatever the damage."""
    assert run("report", str(_STORED / name), "--csv", str(tmp_path / "it.csv")).status == 0


_FORMATS = {"--markdown": "report.md", "--csv": "report.csv", "-o": "report.html"}


@given(
    source=_SOURCE,
    name=st.sampled_from(sorted(_RUNS)),
    # Pages have charts, which take most of the time.
    formats=st.sampled_from((["--markdown", "--csv"],) * 4 + ([*_FORMATS],)),
)
def test_a_report_shows_or_leaves_out(
    project: Path, source: Random, name: str, formats: list[str]
) -> None:
    """It ends as documented, and what it writes is whole or as before."""
    bad = project / "bad.json"
    bad.write_bytes(damaged(source, _RUNS[name]))
    written = {option: project / _FORMATS[option] for option in formats}
    for path in written.values():
        path.write_text("earlier", encoding="utf-8")
    with unchanged(bad):
        ended = run("report", str(bad), *(str(part) for pair in written.items() for part in pair))
    documents.assert_ended(ended, (0, 1, 2))
    documents.assert_whole(ended, [*written.values()])


@given(source=_SOURCE)
def test_a_damaged_line_costs_that_line(project: Path, source: Random) -> None:
    journal, output = project / "bad.jsonl", project / "recovered.json"
    content = lines_damaged(source, _JOURNAL)
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
