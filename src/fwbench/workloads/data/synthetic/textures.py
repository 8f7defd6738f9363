"""Textures in place of CIFAR-10: (n, 32, 32, 3) of uint8, and which of ten kinds they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.data.synthetic.portable import Floats, labels, uniform, wave

_SIZE = 32

#: From 0 to 1, at columns and rows (n, 32, 32) counted in periods.
_Texture = Callable[[Floats, Floats, np.random.Generator], Floats]


_KINDS: tuple[_Texture, ...] = (
    lambda x, y, rng: wave(x),
    lambda x, y, rng: wave(y),
    lambda x, y, rng: wave((x + y) * 0.7),
    lambda x, y, rng: wave((x - y) * 0.7),
    lambda x, y, rng: wave(np.sqrt(x * x + y * y)),
    lambda x, y, rng: np.clip(wave(x) * wave(y) * 4 - 1.4, 0, 1),  # dots
    lambda x, y, rng: np.abs(_steps(x) - _steps(y)),  # checks
    lambda x, y, rng: np.clip(np.maximum(wave(x), wave(y)) * 6 - 4.5, 0, 1),  # a lattice
    lambda x, y, rng: _clouds(len(x), rng),
    lambda x, y, rng: _grain(len(x), rng),
)

#: How much red, green and blue each kind tends to have more than others: a weak hint, which is all
#: that a classifier without convolutions can see.
_TINTS = (
    (1, 0, -1),
    (-1, 1, 0),
    (0, -1, 1),
    (1, -1, 0),
    (0, 1, -1),
    (-1, 0, 1),
    (1, 1, -1),
    (-1, 1, 1),
    (1, -1, 1),
    (-1, -1, -1),
)
_TINT = 70.0
_NOISE = 30.0


def textures(
    examples: int, rng: np.random.Generator
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Textures of any scale, phase and pair of colours, a little turned, with noise.

    Args:
        examples: how many.
        rng: where the differences between them come from.

    Returns:
        Images and labels.
    """
    y = labels(examples, len(_KINDS), rng)
    x = np.empty((examples, _SIZE, _SIZE, 3), np.uint8)
    for label in range(len(_KINDS)):
        chosen = y == label
        x[chosen] = _drawn(label, int(chosen.sum()), rng)
    return x, y


def _drawn(label: int, examples: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Images of one kind."""
    pattern = _KINDS[label](*_coordinates(examples, rng), rng)[..., None]
    first, second = uniform(rng, 20.0, 235.0, 2, examples, 1, 1, 3)
    tint = np.array(_TINTS[label], np.float32) * uniform(rng, 0.0, _TINT, examples, 1, 1, 1)
    image = first + tint + (second - first) * pattern
    image += uniform(rng, -_NOISE, _NOISE, *image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


def _coordinates(examples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Columns and rows in periods of 5 to 12 pixels, a little turned, from any point on."""
    pixels = np.arange(_SIZE, dtype=np.float32) - (_SIZE - 1) / 2
    periods = 1 / uniform(rng, 5.0, 12.0, examples, 1, 1)
    tangent = uniform(rng, -0.15, 0.15, examples, 1, 1)
    x = (pixels - tangent * pixels[:, None]) * periods
    y = (pixels[:, None] + tangent * pixels) * periods
    phase_x, phase_y = uniform(rng, 0.0, 1.0, 2, examples, 1, 1)
    return x + phase_x, y + phase_y


def _steps(x: Floats) -> Floats:
    return np.clip(wave(x) * 6 - 2.5, 0, 1)


def _clouds(examples: int, rng: np.random.Generator) -> Floats:
    """Random values on a coarse grid, and between them."""
    values = uniform(rng, 0.0, 1.0, examples, 6, 6)
    place = np.arange(_SIZE, dtype=np.float32) * (5 / _SIZE)
    low = place.astype(np.int64)
    share = place - low.astype(np.float32)
    rows = values[:, low] * (1 - share)[:, None] + values[:, low + 1] * share[:, None]
    return np.add(rows[..., low] * (1 - share), rows[..., low + 1] * share)


def _grain(examples: int, rng: np.random.Generator) -> Floats:
    """Squares of two pixels, light or dark."""
    squares = rng.integers(0, 2, (examples, _SIZE // 2, _SIZE // 2)).astype(np.float32)
    return squares.repeat(2, axis=1).repeat(2, axis=2)
