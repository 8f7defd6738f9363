"""Every planted defect can still be planted, and has tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plant import DEFECTS, Defect, files_of, selected

_ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_every_defect_can_be_planted(defect: Defect) -> None:
    """In one place, which it changes; whether tests notice, the nightly workflow finds out."""
    (file,) = files_of(defect, _ROOT)
    source = file.read_text(encoding="utf-8")
    changed, places = re.subn(defect.old, defect.new, source)
    assert places == 1
    assert changed != source
    compile(changed, file, "exec")
    assert len(selected(defect, _ROOT)) == len(defect.tests), "a file of tests has moved"
