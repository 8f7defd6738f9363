"""Substitutes for the data sets, generated: drawn digits, textures, reviews, and a text.

They have the shapes of the real ones, are smaller, and can be learned, neither at once nor never.

They are the same wherever they are generated. The frameworks may run in environments with different
NumPys, on machines with different vector units, and must be given the same data. So there is only
arithmetic that IEEE 754 rounds in one way (+, -, *, /, square root, no sums whose order is NumPy's
choice), and of a random generator only uniform numbers, integers and permutations. Numbers of
Python meet float32 arrays, never scalars of NumPy: whether those widen the array depends on its
version.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.packaged import read_table
from fwbench.workloads.data import imdb, text
from fwbench.workloads.data.dataset import Split, Splits

Floats = NDArray[np.float32]

#: Examples, and the label of each, or labels (n, length) of texts.
Examples = tuple[NDArray[Any], NDArray[np.int32]]


def labels(examples: int, classes: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Labels (examples,) from 0 to below ``classes``, balanced and in random order."""
    return rng.permutation(np.arange(examples, dtype=np.int32) % classes)


def uniform(rng: np.random.Generator, low: float, high: float, *shape: int) -> Floats:
    """Uniform float32 numbers from ``low`` to below ``high``."""
    return rng.random(shape, dtype=np.float32) * (high - low) + low


def wave(x: Floats) -> Floats:
    """Like a sine, but from 0 to 1, of period 1 and composed of parabolas."""
    x = (x - np.floor(x)) * 2 - 1
    return (1 - np.abs(x)) * x * 2 + 0.5


# Digits in place of MNIST: (n, 28, 28, 1) of uint8

_DIGIT = 28

Point = tuple[float, float]

#: A digit's height in pixels, and around how many of them its distances are known.
_HEIGHT = 20.0
_MARGIN = 10.0
#: Points of the grid of distances for a pixel.
_FINE = 3
_GRID = int((_HEIGHT + 2 * _MARGIN) * _FINE)


#: Bounds of an example's distortions: shifts in pixels, the tangent of half the
#: angle that it is turned by, slant, widths and heights, and the size and phase of two bends.
_DISTORTIONS = (
    *((-2.5, 2.5), (-2.5, 2.5), (-0.15, 0.15), (-0.3, 0.3), (0.9, 1.35), (0.9, 1.2)),
    *((-1.5, 1.5), (0.0, 1.0), (-1.5, 1.5), (0.0, 1.0)),
)

#: Images that are drawn at a time: as many as caches hold.
_BATCH = 64


def digits(examples: int, rng: np.random.Generator) -> Examples:
    """Digits shifted, turned, slanted, bent, drawn with pens of any width on spotted paper."""

    def per_image(low: float, high: float) -> Floats:
        return uniform(rng, low, high, examples, 1, 1)

    y = labels(examples, 10, rng)
    distortions = np.stack([per_image(*bounds) for bounds in _DISTORTIONS])
    pen, black = per_image(0.7, 1.9), per_image(0.7, 1.0)
    spots = uniform(rng, -1.0, 1.0, examples, _DIGIT, _DIGIT)
    spotted = per_image(0.0, 0.5)
    distances = _distances().reshape(-1)
    images = np.empty((examples, _DIGIT, _DIGIT, 1), np.uint8)
    for start in range(0, examples, _BATCH):
        batch = slice(start, start + _BATCH)
        column, row = _warped(*distortions[:, batch])
        distance = distances[_nearest(column, row) + y[batch, None, None] * _GRID**2]
        ink = np.clip(pen[batch] + 0.5 - distance, 0, 1) * black[batch]
        ink += spots[batch] * spots[batch] * spots[batch] * spotted[batch]
        images[batch, ..., 0] = np.clip(ink, 0, 1) * 255
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
    """Columns and rows of each pixel on the undistorted digit; 0 is the centre."""
    bend_x, phase_x, bend_y, phase_y = bends
    pixels = np.arange(_DIGIT, dtype=np.float32) - (_DIGIT - 1) / 2
    x, y = pixels + shift_x, pixels[:, None] + shift_y
    cosine = (1 - half * half) / (1 + half * half)
    sine = 2 * half / (1 + half * half)
    slanted = x + slant * y
    column = (slanted * cosine - y * sine) * width
    row = (slanted * sine + y * cosine) * height
    column = column + bend_x * wave(row * (1 / 20) + phase_x)
    row = row + bend_y * wave(column * (1 / 20) + phase_y)
    return column, row


def _nearest(column: Floats, row: Floats) -> NDArray[np.int64]:
    """The index of the nearest point of the grid of distances."""
    at = [
        np.clip((axis + (_HEIGHT / 2 + _MARGIN)) * _FINE, 0, _GRID - 1).astype(np.int64)
        for axis in (row, column)
    ]
    return at[0] * _GRID + at[1]


def _distances() -> Floats:
    """The distance in pixels of each point of the grid from each digit: (10, rows, columns)."""
    axis = (np.arange(_GRID, dtype=np.float32) + 0.5) / _FINE - _MARGIN
    # The strokes of each digit: smooth curves through points (x, y), from 0 to 100, y downwards.
    digits = read_table(__package__, "strokes.json")
    fields = []
    for strokes in digits:
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


# Textures in place of CIFAR-10: (n, 32, 32, 3) of uint8, of ten kinds

_TEXTURE = 32

#: From 0 to 1, at columns and rows (n, 32, 32) counted in periods.
_Texture = Callable[[Floats, Floats, np.random.Generator], Floats]

#: Each with the red, green and blue that it tends to have more than others: a weak hint, and all
#: that a classifier without convolutions can see.
_TEXTURES: tuple[tuple[_Texture, tuple[int, int, int]], ...] = (
    (lambda x, y, rng: wave(x), (1, 0, -1)),
    (lambda x, y, rng: wave(y), (-1, 1, 0)),
    (lambda x, y, rng: wave((x + y) * 0.7), (0, -1, 1)),
    (lambda x, y, rng: wave((x - y) * 0.7), (1, -1, 0)),
    (lambda x, y, rng: wave(np.sqrt(x * x + y * y)), (0, 1, -1)),
    (lambda x, y, rng: np.clip(wave(x) * wave(y) * 4 - 1.4, 0, 1), (-1, 0, 1)),  # dots
    (lambda x, y, rng: np.abs(_steps(x) - _steps(y)), (1, 1, -1)),  # checks
    # A lattice
    (lambda x, y, rng: np.clip(np.maximum(wave(x), wave(y)) * 6 - 4.5, 0, 1), (-1, 1, 1)),
    (lambda x, y, rng: _clouds(len(x), rng), (1, -1, 1)),
    (lambda x, y, rng: _grain(len(x), rng), (-1, -1, -1)),
)
_TINT = 70.0
_NOISE = 30.0


def textures(examples: int, rng: np.random.Generator) -> Examples:
    """Textures of any scale, phase and pair of colours, a little turned, with noise."""
    y = labels(examples, len(_TEXTURES), rng)
    x = np.empty((examples, _TEXTURE, _TEXTURE, 3), np.uint8)
    for label in range(len(_TEXTURES)):
        chosen = y == label
        x[chosen] = _draw_textures(label, int(chosen.sum()), rng)
    return x, y


def _draw_textures(label: int, examples: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    texture, colours = _TEXTURES[label]
    pattern = texture(*_coordinates(examples, rng), rng)[..., None]
    first, second = uniform(rng, 20.0, 235.0, 2, examples, 1, 1, 3)
    tint = np.array(colours, np.float32) * uniform(rng, 0.0, _TINT, examples, 1, 1, 1)
    image = first + tint + (second - first) * pattern
    image += uniform(rng, -_NOISE, _NOISE, *image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


def _coordinates(examples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Columns and rows in periods of 5 to 12 pixels, a little turned, from any point on."""
    pixels = np.arange(_TEXTURE, dtype=np.float32) - (_TEXTURE - 1) / 2
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
    place = np.arange(_TEXTURE, dtype=np.float32) * (5 / _TEXTURE)
    low = place.astype(np.int64)
    share = place - low.astype(np.float32)
    rows = values[:, low] * (1 - share)[:, None] + values[:, low + 1] * share[:, None]
    return np.add(rows[..., low] * (1 - share), rows[..., low + 1] * share)


def _grain(examples: int, rng: np.random.Generator) -> Floats:
    """Squares of two pixels, light or dark."""
    squares = rng.integers(0, 2, (examples, _TEXTURE // 2, _TEXTURE // 2)).astype(np.float32)
    return squares.repeat(2, axis=1).repeat(2, axis=2)


def _zipf(
    shape: tuple[int, int], first: int, end: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Tokens from ``first`` to below ``end``, with roughly the reciprocal rank as frequency."""
    sums = np.cumsum(1 / (np.arange(end - first, dtype=np.float64) + 3))
    ranks = np.searchsorted(sums / sums[-1], rng.random(shape, dtype=np.float32))
    return (ranks + first).astype(np.int32)


# Texts with a sentiment in place of IMDB: tokens (n, 500) of int32, and 0 or 1 as labels

#: Words of each sentiment: neither the most frequent ones nor the rarest.
_SENTIMENTS = 2
_SENTIMENT_WORDS = 40
_FREQUENT, _RARE = 100, 2_000

#: The share of words that are planted, and of those the share that agrees with the label: different
#: from text to text.
_PLANTED = 0.1
_AGREEING = (0.5, 0.95)

#: Lengths, the shorter ones more often. Longer ones are cut.
_LENGTHS = (40, 690)


def sentiments(examples: int, rng: np.random.Generator) -> Examples:
    """Words by Zipf's law, with words of both sentiments among them, most of them the label's."""
    y = labels(examples, _SENTIMENTS, rng)
    x = _zipf((examples, imdb.LENGTH), imdb.FIRST_WORD, imdb.VOCABULARY, rng)
    planted = rng.random(x.shape, dtype=np.float32) < _PLANTED
    agreeing = rng.random(x.shape, dtype=np.float32) < uniform(rng, *_AGREEING, examples, 1)
    sentiment = np.where(agreeing, y[:, None], 1 - y[:, None])
    choice = (uniform(rng, 0.0, _SENTIMENT_WORDS, *x.shape)).astype(np.int32)
    words = rng.permutation(
        np.arange(imdb.FIRST_WORD + _FREQUENT, imdb.FIRST_WORD + _RARE, dtype=np.int32)
    )
    words = words[: _SENTIMENTS * _SENTIMENT_WORDS].reshape(_SENTIMENTS, _SENTIMENT_WORDS)
    x = np.where(planted, words[sentiment, choice], x)
    return _padded(x, rng), y


def _padded(x: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Texts of any length: start and padding in front of those that are shorter."""
    shortest, longest = _LENGTHS
    share = rng.random((len(x), 1), dtype=np.float32)
    begin = imdb.LENGTH - (shortest + share * share * (longest - shortest)).astype(np.int64)
    place = np.arange(imdb.LENGTH)
    return np.where(
        place >= begin, x, np.where(place == begin - 1, imdb.START, imdb.PADDING)
    ).astype(np.int32)


# A text without a meaning: tokens (n, 35) of int32, and the token that follows on each of them

#: The share of words that are followed by one of their followers, and the followers of each word.
_FOLLOWED = 0.6
_FOLLOWERS = 3


def sequences(examples: int, rng: np.random.Generator) -> Examples:
    """Words by Zipf's law, many of which are followed by a word that often follows on them."""

    def words(shape: tuple[int, int]) -> NDArray[np.int32]:
        return _zipf(shape, text.FIRST_WORD, text.VOCABULARY, rng)

    followers = words((text.VOCABULARY, _FOLLOWERS))
    tokens = words((examples, text.LENGTH + 1))
    followed = rng.random(tokens.shape, dtype=np.float32) < _FOLLOWED
    choice = rng.integers(0, _FOLLOWERS, tokens.shape)
    for place in range(1, text.LENGTH + 1):
        following = followers[tokens[:, place - 1], choice[:, place]]
        tokens[:, place] = np.where(followed[:, place], following, tokens[:, place])
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


#: For each data set the function that draws its examples, the seed, and the numbers of examples to
#: train, to validate and to test with; none to validate where the real data has none.
_DRAW: dict[str, tuple[Callable[[int, np.random.Generator], Examples], int, list[int]]] = {
    "mnist": (digits, 30, [12_000, 3_000, 2_500]),
    "cifar10": (textures, 31, [10_000, 0, 2_000]),
    "imdb": (sentiments, 32, [5_000, 0, 2_500]),
    "text": (sequences, 33, [8_000, 500, 500]),
}

TRAIN_EXAMPLES = {name: train for name, (_, _, (train, _, _)) in _DRAW.items()}


def generate(name: str) -> Splits:
    """Generate the substitute for ``mnist``, ``cifar10``, ``imdb`` or ``text``, within seconds."""
    draw, seed, sizes = _DRAW[name]
    x, y = draw(sum(sizes), np.random.default_rng(seed))
    at = np.cumsum(sizes[:-1])
    train, validation, test = map(Split, np.split(x, at), np.split(y, at))
    return train, validation if sizes[1] else None, test
