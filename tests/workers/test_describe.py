"""Frameworks' manifests, asked for in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwbench.manifest import Manifest
from fwbench.workers.inventory import describe

_LATE = """
import atexit, pathlib, sys, time

def end():
    time.sleep(0.3)
    pathlib.Path({!r}).touch()

if any("fwbench.plugin.worker" in argument for argument in sys.orig_argv):
    atexit.register(end)
"""


@pytest.mark.usefixtures("started")  # what an interpreter runs at its start is tried
def test_a_process_that_has_described_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it does at its end is done: coverage writes its file then."""
    ended = tmp_path / "ended"
    (tmp_path / "sitecustomize.py").write_text(_LATE.format(str(ended)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = describe(["numpy"], 1)
    assert isinstance(found["numpy"], Manifest)
    assert ended.exists()
