"""The data sets of the training loops: found on disk, never downloaded, or generated.

Real data is used where it is found in the requested folder, in those that the environment variable
``FWBENCH_DATA`` names, or where one of the frameworks keeps it; else
:mod:`~fwbench.workloads.data.synthetic` has a substitute.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from fwbench.errors import DataError, UsageError, unknown
from fwbench.workloads.data import cifar, imdb, mnist, synthetic, text
from fwbench.workloads.data.dataset import DataSet, FileLayout, Found, Kind, Split, data_set

#: Folders to search after the requested one, separated as those in ``PATH``.
VARIABLE = "FWBENCH_DATA"

_KINDS: Mapping[str, Kind] = {"mnist": mnist, "cifar10": cifar, "imdb": imdb, "text": text}

#: The names of the data sets.
NAMES = tuple(_KINDS)


def find(name: str, folder: Path | None) -> Found:
    """Find a data set, without reading it.

    Args:
        name: one of :data:`NAMES`.
        folder: where to look first; None for the usual places alone.

    Raises:
        UsageError: there is no such data set, or no such folder.
        DataError: a folder that the user named has a part of the data set, or has it in a form
            that is not read.
    """
    kind = _kind(name)
    for place in _named(folder):
        if layout := _complete(kind, place):
            return _real(name, kind, layout)
    for place in _caches():
        # Not requested: what a framework left there unfinished or unreadable is passed over.
        with contextlib.suppress(DataError):
            if layout := _complete(kind, place):
                return _real(name, kind, layout)
    return generated(name)


def generated(name: str) -> Found:
    """The substitute for a data set, even if there is a real one."""
    return Found(name, "synthetic", "generated", (), synthetic.TRAIN_EXAMPLES[name])


def load(location: Found, cache: Path | None = None) -> DataSet:
    """Read, or generate, a data set.

    Args:
        location: by :func:`find`.
        cache: a folder for intermediate results, created if it is not there; None to keep
            nothing. A folder that cannot be written to is not an error.

    Raises:
        DataError: a file is missing, cut off or another one.
    """
    kind = _kind(location.name)
    if location.source == "synthetic":
        return data_set(location, synthetic.generate(location.name))
    return data_set(location, kind.read(location.paths, cache))


def _kind(name: str) -> Kind:
    if name not in _KINDS:
        raise unknown("data set", name, NAMES)
    return _KINDS[name]


def _real(name: str, kind: Kind, layout: FileLayout) -> Found:
    return Found(name, "real", layout.origin, tuple(layout.present()), kind.TRAIN_EXAMPLES)


def _complete(kind: Kind, place: Path) -> FileLayout | None:
    """A complete data set in a folder; None where there is nothing of it."""
    try:
        begun = [layout for layout in kind.layouts(place) if layout.begun]
        for layout in begun:
            if not layout.missing():
                return layout
    except OSError as error:
        raise DataError(f"cannot read {place}: {error.strerror}; check its permissions") from error
    if begun:
        missing = ", ".join(map(str, begun[0].missing()))
        raise DataError(
            f"{place} has only a part of a data set: {begun[0].origin} is there, not there: "
            f"{missing}; add what is missing, or remove the rest"
        )
    _refuse_other_forms(kind, place)
    return None


def _refuse_other_forms(kind: Kind, place: Path) -> None:
    """Refuse a folder that has the data set in a form that is not read."""
    for folder, (name, form) in itertools.product(kind.FOLDERS, kind.OTHER_FORMS.items()):
        path = place / folder / name
        if path.exists():
            raise DataError(
                f"{path} is the data set {form}, a form that is not read; put {kind.WANTED} there, "
                "or name another folder"
            )


def _named(folder: Path | None) -> list[Path]:
    variable = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    return [
        *([] if folder is None else [_existing(folder, "--fw-data")]),
        *(_existing(place, f"the environment variable {VARIABLE}") for place in variable),
    ]


def _existing(folder: Path, who: str) -> Path:
    with contextlib.suppress(OSError, RuntimeError):
        folder = folder.expanduser().absolute()
        if folder.is_dir():
            return folder
    problem = "is not a directory" if os.path.lexists(folder) else "does not exist"
    raise UsageError(
        f"{who} names {folder}, which {problem}; name a folder that holds data sets, or none to "
        "have them generated"
    )


def _caches() -> Iterator[Path]:
    """The download folders of Keras, MXNet and torchvision's examples."""
    for variable, usual in (("KERAS_HOME", "~/.keras"), ("MXNET_HOME", "~/.mxnet")):
        # A user without a home has no such folder.
        with contextlib.suppress(RuntimeError):
            yield Path(os.environ.get(variable) or usual).expanduser() / "datasets"
    yield Path("data").absolute()


__all__ = ["NAMES", "VARIABLE", "DataSet", "Found", "Split", "find", "generated", "load"]
