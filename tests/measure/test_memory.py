"""The memory of a case is what it holds beyond its process, verification apart."""

from __future__ import annotations

import numpy as np
import pytest

from fwbench.measure import resources
from fwbench.measure.resources import PeakMemory

_MEBIBYTE = 2**20

# Bounds leave 25 MiB for what earlier tests of this process have left, and give back meanwhile.


def _allocate(mebibytes: int) -> None:
    """Touch so much memory, and give it back."""
    assert np.ones(mebibytes * _MEBIBYTE, dtype=np.uint8).any()


def _grown_bytes(measured: PeakMemory) -> int:
    assert measured.peak_bytes is not None
    assert measured.before_bytes is not None
    return measured.peak_bytes - measured.before_bytes


def test_the_peak_is_that_of_the_measured_parts() -> None:
    """What is held in between, however much, does not count."""
    measured = PeakMemory()
    _allocate(80)
    measured.pause()
    _allocate(400)
    measured.resume()
    _allocate(120)
    measured.pause()
    assert 95 * _MEBIBYTE < _grown_bytes(measured) < 240 * _MEBIBYTE


def test_what_is_kept_for_others_does_not_count() -> None:
    """It is held while the next part is measured."""
    measured = PeakMemory()
    measured.pause()
    kept = np.ones(100 * _MEBIBYTE, dtype=np.uint8)
    measured.resume(kept.nbytes)
    _allocate(80)
    measured.pause()
    assert kept.any()
    assert 60 * _MEBIBYTE < _grown_bytes(measured) < 140 * _MEBIBYTE


def test_the_largest_part_stands() -> None:
    """Not the latest."""
    measured = PeakMemory()
    _allocate(100)
    measured.pause()
    measured.resume()
    _allocate(10)
    measured.pause()
    assert _grown_bytes(measured) > 75 * _MEBIBYTE


def test_what_was_largest_can_be_forgotten() -> None:
    """What is held then is told, and the peak is that of what follows."""
    measured = PeakMemory()
    _allocate(400)
    held = np.ones(100 * _MEBIBYTE, dtype=np.uint8)
    held_bytes = measured.restart()
    _allocate(60)
    measured.pause()
    assert held.any()
    assert 125 * _MEBIBYTE < _grown_bytes(measured) < 240 * _MEBIBYTE
    assert measured.before_bytes is not None
    assert held_bytes is not None
    assert 75 * _MEBIBYTE < held_bytes - measured.before_bytes < 150 * _MEBIBYTE


def test_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is claimed."""
    monkeypatch.setattr(resources, "reset_peak_memory", lambda: False)
    measured = PeakMemory()
    measured.pause()
    measured.resume()
    assert measured.restart() is None
    assert (measured.before_bytes, measured.peak_bytes) == (None, None)
