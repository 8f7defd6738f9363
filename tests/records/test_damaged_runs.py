"""Whatever a run has become, a gate and a baseline refuse it or judge what was measured."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import documents
from support.data_files import damaged
from support.documents import run, unchanged

_STORED = Path(__file__).parent / "stored" / "current"
_BASE, _CONTENDER = ((_STORED / f"{name}.json").read_bytes() for name in ("base", "contender"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in ("base", "contender"):
        shutil.copy(_STORED / f"{name}.json", folder)
    return folder


@given(content=damaged(_BASE), is_base=st.booleans())
def test_a_gate_refuses_or_judges(project: Path, content: bytes, is_base: bool) -> None:
    """It ends as documented, what it writes is whole or as before, and verdicts are of numbers."""
    bad, good = project / "bad.json", project / "contender.json"
    bad.write_bytes(content)
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


@given(content=damaged(_BASE), anyway=st.booleans())
def test_a_baseline_is_refused_or_good_for_a_gate(
    project: Path, content: bytes, anyway: bool
) -> None:
    """What was refused leaves the earlier one; what was taken can be shown and compared with."""
    bad = project / "bad.json"
    bad.write_bytes(content)
    kept = project / ".fwbench" / "baseline"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    (kept / "earlier.json").write_bytes(_CONTENDER)
    with contextlib.chdir(project), unchanged(bad):
        ended = run("baseline", "set", str(bad), *(["--anyway"] if anyway else []))
    documents.assert_ended(ended, (0, 2))
    name = "bad.json" if ended.status == 0 else "earlier.json"
    assert [path.name for path in kept.iterdir()] == [name]
    if ended.status == 0:
        with contextlib.chdir(project):
            documents.assert_ended(run("baseline", "show"), (0,))
            documents.assert_ended(run("gate", "contender.json"), (0, 1, 2, 10, 11))
