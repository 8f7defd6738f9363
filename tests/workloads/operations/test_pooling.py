"""Pooling: references against loops, inputs without ties, costs."""

from typing import Any

import numpy as np
import pytest

from fwbench.workloads import Operation
from support.operations import named, sized

#: Kernel by operation.
_MAXIMA = {"max_pool2d": (2, 2), "max_pool2d_3x3_s2": (3, 3), "max_pool1d": (2,)}
_WINDOWS = {**_MAXIMA, "avg_pool2d": (2, 2)}


def _tiny(operation: Operation) -> Any:
    return sized(operation, "n2l6c3" if operation.name == "max_pool1d" else "n2h6w8c3")


def _window(x: Any, at: tuple[int, ...], kernel: tuple[int, ...]) -> list[float]:
    n, *place, c = at
    return [
        float(x[(n, *(2 * i + j for i, j in zip(place, tap, strict=True)), c)])
        for tap in np.ndindex(kernel)
    ]


@pytest.mark.parametrize("name", _WINDOWS)
def test_references_pool_windows_at_a_distance_of_two(name: str) -> None:
    """Every element is the largest, or the average, of its window."""
    operation, kernel = named(name), _WINDOWS[name]
    (x,) = operation.operands(_tiny(operation))
    result = operation.reference(x)
    for at in np.ndindex(result.shape):
        window = _window(x, at, kernel)
        expected = max(window) if name in _MAXIMA else sum(window) / len(window)
        assert result[at] == pytest.approx(expected, rel=1e-12)


def test_the_global_average_is_of_each_channel_of_each_image() -> None:
    """One number for each, with the axes of space kept."""
    operation = named("global_avg_pool")
    (x,) = operation.operands(_tiny(operation))
    result = operation.reference(x)
    assert result.shape == (2, 1, 1, 3)
    for n, c in np.ndindex(2, 3):
        expected = sum(map(float, x[n, :, :, c].flat)) / 48
        assert result[n, 0, 0, c] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", _MAXIMA)
def test_no_window_has_two_elements_that_are_nearly_equal(name: str) -> None:
    """Either could have the gradient, in bfloat16 with its 8 digits too."""
    operation, kernel = named(name), _MAXIMA[name]
    (x,) = operation.operands(operation.by_preset.quick[0])
    for at in np.ndindex(operation.reference(x).shape):
        window = sorted(_window(x, at, kernel))
        assert min(np.diff(window)) > 0.04
        assert max(np.abs(window)) < 2


def test_any_place_of_a_window_may_have_its_maximum() -> None:
    """A pooling that always took the same place would be wrong."""
    operation = named("max_pool2d_3x3_s2")
    (x,) = operation.operands(operation.by_preset.quick[0])
    windows = [_window(x, at, (3, 3)) for at in np.ndindex(operation.reference(x).shape)]
    assert {int(np.argmax(window)) for window in windows} == {*range(9)}
