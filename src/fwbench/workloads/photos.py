"""Loading of photos: JPEG files decoded, resized or augmented, normalized and batched.

Photos are drawn and encoded by Pillow. Each is a class of its own, so that its label tells which
one it is. Red rises from left to right and green falls, which shows where a crop comes from; clouds
and grain, alike in all colours, tell photos apart.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Sizes
from fwbench.workloads.workload import Workload

#: Rows and columns of what is loaded, and of the shorter side of a photo that is resized first.
CROP, RESIZED = 224, 256

#: ImageNet's red, green and blue, from 0 to 255.
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)

#: The sides of photos: whole even numbers where they are resized, too.
_SHORT, _LONG = 320, (320, 360, 400, 440, 480)


class PhotoJob(NamedTuple):
    """Photos to load, in batches that divide them; the label of each file in RGB is its place."""

    paths: Sequence[Path]
    batch: int
    workers: int
    augmented: bool


@dataclass(frozen=True)
class PhotoLoader:
    """A framework's own loader of photos: float32 images and labels in the host's memory."""

    #: Makes one pass.
    batches: Callable[[], Iterator[tuple[Any, Any]]]
    #: The library that decodes JPEG.
    decoder: str
    #: Whether images are (batch, colours, rows, columns), as networks of the framework take them;
    #: otherwise colours are last.
    channels_first: bool = False
    #: Writes its own file of all photos anew, where it has one: they changed in place.
    pack: Callable[[], None] = lambda: None


@dataclass(frozen=True, eq=False)
class PhotoLoading(Workload):
    """One pass over photos."""

    name: str
    #: Whether they are shuffled, cropped at random and mirrored at random; otherwise they are
    #: resized and cropped at the centre, in the order of their files.
    augmented: bool = False
    #: Number of photos, unless batches do not divide it.
    photos: int = 256

    representative = False
    directions: ClassVar = ("train",)
    by_preset = Sizes(quick=(32,), full=(32, 256))
    toggles = frozenset({"workers"})

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """One: nothing is compiled."""
        return ("eager",)


PHOTOS = (PhotoLoading("photos_loader"), PhotoLoading("photos_augmented_loader", augmented=True))


@lru_cache(maxsize=1024)
def jpeg(number: int) -> bytes:
    """A photo as the content of a JPEG file."""
    from PIL import Image  # here, as below: most sessions do not need it

    rng = np.random.default_rng([41, number])
    height, width = rng.permutation([_SHORT, rng.choice(_LONG)])
    clouds = Image.fromarray(rng.uniform(-40, 40, (8, 8)).astype(np.float32))
    grey = np.asarray(clouds.resize((width, height), Image.Resampling.BICUBIC))
    grey = grey + rng.uniform(128 - 12, 128 + 12, grey.shape)
    red = 0.25 * (np.arange(width) - width / 2)
    pixels = np.stack([grey + red, grey - red, grey], axis=-1).round().clip(0, 255)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


#: Quantization steps that are changed: as many, and what they may be.
_STEPS, _SMALLEST, _LARGEST = 8, 1, 4


def changed(content: bytes, seed: int) -> bytes:
    """A file of the same length whose photo has other contrasts, by a seed."""
    place = content.index(b"\xff\xdb") + 5  # the first quantization steps
    steps = np.random.default_rng(seed).integers(_SMALLEST, _LARGEST, _STEPS, endpoint=True)
    return content[:place] + bytes(steps.tolist()) + content[place + _STEPS :]


def decoded(content: bytes, *, resized: bool) -> NDArray[np.uint8]:
    """A photo's pixels (rows, columns, colours), by Pillow; or resized, cropped at the centre."""
    from PIL import Image

    photo: Image.Image = Image.open(io.BytesIO(content))
    if resized:
        sides = [side * RESIZED // min(photo.size) for side in photo.size]
        left, top = ((side - CROP) // 2 for side in sides)
        photo = photo.resize(sides, Image.Resampling.BILINEAR)
        photo = photo.crop((left, top, left + CROP, top + CROP))
    return np.asarray(photo)
