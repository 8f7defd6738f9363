"""ONNX Runtime computes every operation right that is written for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.verification import assert_verified, installed, parts_of


@installed("onnxruntime")
@pytest.mark.parametrize("part", parts_of("onnxruntime"))
def test_every_cell_is_verified(part: str, suite_cache: Path) -> None:
    """Forward, in graphs of ONNX's operators."""
    assert_verified("onnxruntime", part, suite_cache)
