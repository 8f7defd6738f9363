"""Loaders of photos as cases: a call is a pass, and every photo is compared with Pillow's."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.inputs import Change
from fwbench.cases.training import FolderCase, any_and_last, kept
from fwbench.cases.work import NO_TURNS, Turns, Work
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Array, BoundCall
from fwbench.records.facts import CaseFacts
from fwbench.workloads import photos
from fwbench.workloads.photos import CROP, MEAN, STD, PhotoJob, PhotoLoader, PhotoLoading

#: Allowed deviations from Pillow's photo, in levels of 255, by ``augmented``: mean and largest.
#: TensorFlow's inexact transform differs by 1.03 and 4; where photos are resized, without
#: smoothing, by 1.60 and 13. The nearest pixel would be off by 4.2 and 25, another photo by 22.
_ALLOWED = {True: (1.5, 8.0), False: (2.5, 20.0)}

#: Least standard deviation of a crop's place, from 0 to 1, and of its being mirrored; and the share
#: of photos that two passes may crop alike.
_LEAST_SPREAD, _ALIKE = 0.2, 0.1

#: Place of a crop, from 0 to 1 downwards and to the right, and whether it is mirrored.
_Crop = tuple[float, float, bool]


class _PhotoPass(Work):
    """One pass over all photos; ``run`` returns two of the batches."""

    def __init__(self, loader: PhotoLoader, job: PhotoJob, to_numpy: Callable[..., Any]) -> None:
        self._loader, self._job, self._to_numpy = loader, job, to_numpy
        self._original = self._contents = [path.read_bytes() for path in job.paths]
        self._worst = 0.0
        self.pieces = len(self._contents) // job.batch
        numbers = any_and_last(self.pieces)
        self.run = lambda: kept(loader.batches(), numbers)

    def arrays(self, result: Any) -> Sequence[Array]:
        """The parts of the drawn batch: they are there, and not made when they are read."""
        return [*result[0]]

    def verify(self, result: Any) -> CaseFacts:
        """Every photo is there once, with its label; augmented ones are random."""
        [*self._read(result, self._contents)]
        crops = self._pass()
        if not self._job.augmented and [*crops] != sorted(crops):
            raise WrongResult("the photos are not in the order of their files")
        if self._job.augmented:
            _check_random(crops, self._pass())
        return CaseFacts(
            steps_per_epoch=len(self._contents) // self._job.batch,
            loaded_bytes=sum(map(len, self._contents)),
            decoder=self._loader.decoder,
            max_relative_error=self._worst / 255,
            tolerance=_ALLOWED[self._job.augmented][1] / 255,
        )

    def verify_again(self, last: Any, turns: Turns = NO_TURNS) -> CaseFacts:
        """The last timed pass is right, and so are others once the files have changed."""
        with verify.within("the last timed pass is wrong though the first was right"):
            [*self._read(last, self._original)]
        facts = CaseFacts()
        for _ in turns(self._others):
            with verify.within("a pass over changed files is wrong, so photos are kept decoded"):
                facts = self.verify(self._others(1)()())
        return facts

    def _others(self, seed: int) -> Change:
        contents = [photos.changed(x, seed) for x in self._original] if seed else self._original

        def switch() -> BoundCall:
            self._contents = contents
            for path, content in zip(self._job.paths, contents, strict=True):
                path.write_bytes(content)
            self._loader.pack()
            return self.run

        return switch

    def _pass(self) -> dict[int, _Crop]:
        """Crops of a pass by label, in order."""
        pairs = [*self._read(self._loader.batches(), self._contents)]
        crops = dict(pairs)
        if not len(pairs) == len(crops) == len(self._contents):
            raise WrongResult(
                f"a pass has {len(pairs)} photos, {len(crops)} of them different: load each of "
                f"{len(self._contents)} once"
            )
        return crops

    def _read(self, batches: Any, contents: Sequence[bytes]) -> Iterator[tuple[int, _Crop]]:
        """Labels of batches, each with the crop of its image."""
        shape = (self._job.batch, CROP, CROP, 3)
        for images, labels in (map(self._to_numpy, batch) for batch in batches):
            last = np.moveaxis(images, 1, -1) if self._loader.channels_first else images
            if (last.shape, last.dtype.name, len(labels)) != (shape, "float32", len(last)):
                raise WrongResult(
                    f"a batch has images of {images.dtype.name} {images.shape} and {len(labels)} "
                    f"labels; {self._job.batch} of float32 and {CROP} x {CROP} were asked for"
                )
            if not {*labels.tolist()} <= {*range(len(contents))}:
                raise WrongResult(f"a batch has the labels {labels}, which no photos have")
            levels = last * np.array(STD, np.float32) + np.array(MEAN, np.float32)
            for image, label in zip(levels, labels.astype(int).tolist(), strict=True):
                yield label, self._compare(image, contents[label])

    def _compare(self, image: NDArray[np.float32], content: bytes) -> _Crop:
        augmented = self._job.augmented
        expected = photos.decoded(content, resized=not augmented)
        expected, crop = _cropped(image, expected) if augmented else (expected, (0.5, 0.5, False))
        deviation = np.abs(image - expected)
        mean, largest = float(deviation.mean()), float(deviation.max())
        if not (mean <= _ALLOWED[augmented][0] and largest <= _ALLOWED[augmented][1]):
            raise WrongResult(
                f"a photo differs from Pillow's by {mean:.2f} levels of 255 in the mean and by "
                f"{largest:.0f} at most, and {_ALLOWED[augmented]} are allowed: its label, crop, "
                "decoding or normalization is wrong"
            )
        self._worst = max(self._worst, largest)
        return crop


def _cropped(image: NDArray[Any], photo: NDArray[Any]) -> tuple[NDArray[Any], _Crop]:
    """A photo cropped as an image of it was: red tells about where, and the grain the pixel."""
    red, whole_red = ((pixels[..., 0] - 1.0 * pixels[..., 1]).mean(0) for pixels in (image, photo))
    mirror = slice(None, None, -1 if red[0] > red[-1] else 1)
    grey, whole = image[:, mirror].mean(axis=-1), photo.mean(axis=-1)
    left = _place(red[mirror], whole_red)
    # By differences, as a decoder may be a little darker everywhere.
    top = _place(np.diff(grey.mean(1)), np.diff(whole[:, left : left + CROP].mean(1)))
    left = _place(np.diff(grey.mean(0)), np.diff(whole[top : top + CROP].mean(0)))
    down, right = np.divide((top, left), np.subtract(whole.shape, CROP))
    crop = photo[top : top + CROP, left : left + CROP][:, mirror]
    return crop, (float(down), float(right), mirror.step < 0)


def _place(part: NDArray[Any], whole: NDArray[Any]) -> int:
    """Place of a part where it differs least from the whole."""
    return int(np.abs(sliding_window_view(whole, part.size) - part).sum(axis=1).argmin())


def _check_random(crops: dict[int, _Crop], again: dict[int, _Crop]) -> None:
    alike = sum(crops[label] == again[label] for label in crops) / len(crops)
    spread = np.std([*crops.values()], axis=0).min()
    if [*again] == [*crops] or alike > _ALIKE or spread < _LEAST_SPREAD:
        raise WrongResult(
            f"photos are not shuffled, cropped and mirrored at random: two passes crop {alike:.0%} "
            f"of them alike, and crops from 0 to 1 have a standard deviation of {spread:.2f}"
        )


class PhotosCase(FolderCase):
    """The case of one pass of a loader over photos."""

    def bind(self) -> Work:
        """The framework's loader of files that are written here."""
        workload, batch = cast("PhotoLoading", self.cell.workload), self.cell.batch
        examples = batch * max(1, workload.photos // batch)
        paths = [self._folder / f"{number:06}.jpg" for number in range(examples)]
        for number, path in enumerate(paths):
            path.write_bytes(photos.jpeg(number))
        job = PhotoJob(paths, batch, int(self.cell.toggle("workers")), workload.augmented)
        return _PhotoPass(self.framework.photo_loader(job), job, self.framework.to_numpy)

    def _record(self, facts: CaseFacts) -> None:
        """With the photos that are loaded in a second."""
        if self._benchmark.timed and facts.steps_per_epoch:
            examples = self.cell.batch * facts.steps_per_epoch
            facts |= CaseFacts(images_per_s=examples / self.typical_s)
        super()._record(facts)
