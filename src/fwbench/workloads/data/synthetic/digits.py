"""Drawn digits in place of MNIST: (n, 28, 28, 1) of uint8, and their labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.data.synthetic.portable import Floats, labels, uniform, wave

_IMAGE = 28

Point = tuple[float, float]

#: The strokes of each digit: smooth curves through points (x, y), from 0 to 100, y downwards.
_STROKES: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = (
    (((50, 5), (25, 22), (20, 50), (25, 78), (50, 95), (75, 78), (80, 50), (75, 22), (50, 5)),),
    (((32, 22), (52, 5)), ((52, 5), (52, 95))),
    (
        ((24, 26), (34, 9), (55, 5), (74, 18), (72, 38), (48, 66), (22, 95)),
        ((22, 95), (80, 95)),
    ),
    (
        ((24, 14), (46, 4), (70, 12), (72, 32), (45, 47)),
        ((45, 47), (72, 56), (76, 78), (52, 96), (22, 86)),
    ),
    (((62, 5), (20, 64)), ((20, 64), (84, 64)), ((66, 36), (64, 96))),
    (((74, 6), (32, 6)), ((32, 6), (28, 44)), ((28, 44), (54, 38), (77, 56), (68, 86), (24, 90))),
    (((68, 5), (38, 24), (23, 60), (34, 90), (58, 94), (76, 76), (68, 54), (44, 52), (25, 70)),),
    (((20, 6), (80, 6)), ((80, 6), (58, 46), (44, 95))),
    (
        ((50, 47), (28, 34), (30, 12), (50, 4), (70, 12), (72, 34), (50, 47)),
        ((50, 47), (24, 64), (27, 88), (50, 96), (73, 88), (76, 64), (50, 47)),
    ),
    (((74, 30), (56, 48), (32, 42), (28, 18), (50, 5), (70, 12), (74, 30), (70, 62), (58, 95)),),
)

#: A digit's height in pixels, and around how many of them its distances are known.
_HEIGHT = 20.0
_MARGIN = 10.0
#: Points of the grid of distances for a pixel.
_FINE = 3
_GRID = int((_HEIGHT + 2 * _MARGIN) * _FINE)


#: Between which bounds an example's distortion is drawn: shifts in pixels, the tangent of half the
#: angle that it is turned by, slant, widths and heights, and the size and phase of two bends.
_DISTORTIONS = (
    *((-2.5, 2.5), (-2.5, 2.5), (-0.15, 0.15), (-0.3, 0.3), (0.9, 1.35), (0.9, 1.2)),
    *((-1.5, 1.5), (0.0, 1.0), (-1.5, 1.5), (0.0, 1.0)),
)

#: How many images are drawn at a time: as many as caches hold.
_TOGETHER = 64


def digits(examples: int, rng: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Digits shifted, turned, slanted, bent, drawn with pens of any width on spotted paper.

    Args:
        examples: how many.
        rng: where the differences between them come from.

    Returns:
        Images and labels.
    """

    def each(low: float, high: float) -> Floats:
        return uniform(rng, low, high, examples, 1, 1)

    y = labels(examples, 10, rng)
    distortions = np.stack([each(*bounds) for bounds in _DISTORTIONS])
    pen, black = each(0.7, 1.9), each(0.7, 1.0)
    spots = uniform(rng, -1.0, 1.0, examples, _IMAGE, _IMAGE)
    spotted = each(0.0, 0.5)
    distances = _distances().reshape(-1)
    images = np.empty((examples, _IMAGE, _IMAGE, 1), np.uint8)
    for start in range(0, examples, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        column, row = _warped(*distortions[:, some])
        distance = distances[_place(column, row) + y[some, None, None] * _GRID**2]
        ink = np.clip(pen[some] + 0.5 - distance, 0, 1) * black[some]
        ink += spots[some] * spots[some] * spots[some] * spotted[some]
        images[some, ..., 0] = np.clip(ink, 0, 1) * 255
    return images, y


def _warped(
    shift_x: Floats,
    shift_y: Floats,
    half: Floats,
    slant: Floats,
    width: Floats,
    height: Floats,
    *bends: Floats,
) -> tuple[Floats, Floats]:
    """Where on the undistorted digit each pixel lies: columns and rows, 0 is the centre."""
    bend_x, phase_x, bend_y, phase_y = bends
    pixels = np.arange(_IMAGE, dtype=np.float32) - (_IMAGE - 1) / 2
    x, y = pixels + shift_x, pixels[:, None] + shift_y
    cosine = (1 - half * half) / (1 + half * half)
    sine = 2 * half / (1 + half * half)
    slanted = x + slant * y
    column = (slanted * cosine - y * sine) * width
    row = (slanted * sine + y * cosine) * height
    column = column + bend_x * wave(row * (1 / 20) + phase_x)
    row = row + bend_y * wave(column * (1 / 20) + phase_y)
    return column, row


def _place(column: Floats, row: Floats) -> NDArray[np.int64]:
    """The index of the nearest point of the grid of distances."""
    at = [
        np.clip((axis + (_HEIGHT / 2 + _MARGIN)) * _FINE, 0, _GRID - 1).astype(np.int64)
        for axis in (row, column)
    ]
    return at[0] * _GRID + at[1]


def _distances() -> Floats:
    """The distance in pixels of each point of the grid from each digit: (10, rows, columns)."""
    axis = (np.arange(_GRID, dtype=np.float32) + 0.5) / _FINE - _MARGIN
    fields = []
    for strokes in _STROKES:
        field = np.full((_GRID, _GRID), np.inf, np.float32)
        for start, end in _segments(strokes):
            field = np.minimum(field, _squared_distance(axis, start, end))
        fields.append(np.sqrt(field))
    return np.stack(fields)


def _segments(strokes: Sequence[Sequence[tuple[int, int]]]) -> list[tuple[Point, Point]]:
    """Straight pieces of the strokes, in pixels."""
    scale = _HEIGHT / 100
    segments: list[tuple[Point, Point]] = []
    for stroke in strokes:
        points = [(x * scale, y * scale) for x, y in _smooth(stroke)]
        segments += itertools.pairwise(points)
    return segments


def _smooth(points: Sequence[tuple[int, int]]) -> list[Point]:
    """A curve through points (Catmull and Rom 1974), four pieces between two of them."""
    closed = points[0] == points[-1]
    before, after = (points[-2], points[1]) if closed else (points[0], points[-1])
    p = np.array([before, *points, after], np.float64)
    t = np.arange(4)[:, None, None] / 4
    a, b, c, d = p[:-3], p[1:-2], p[2:-1], p[3:]
    curve = b + t / 2 * ((c - a) + t * ((2 * a - 5 * b + 4 * c - d) + t * (3 * (b - c) + d - a)))
    return [*map(tuple, curve.transpose(1, 0, 2).reshape(-1, 2).tolist()), points[-1]]


def _squared_distance(axis: Floats, start: Point, end: Point) -> Floats:
    """Squared distances of the points of a grid from a straight piece."""
    (x0, y0), (x1, y1) = start, end
    along_x, along_y = x1 - x0, y1 - y0
    x, y = axis - x0, axis[:, None] - y0
    share = np.clip((x * along_x + y * along_y) / (along_x**2 + along_y**2), 0, 1)
    gap_x, gap_y = x - share * along_x, y - share * along_y
    return np.add(gap_x * gap_x, gap_y * gap_y)
