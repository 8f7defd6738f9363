"""All liars, and the entry points by which fwbench finds them."""

from __future__ import annotations

from pathlib import Path

from fwbench.frameworks.registry import GROUP
from fwbench.version import __version__
from fwbench_extras.cheats import (
    gradients,
    harness,
    inputs,
    learners,
    remembering,
    results,
    rounding,
    waiting,
)
from fwbench_extras.cheats.liar import Liar

#: The rooms of the museum, by what their liars lie about.
ROOMS: dict[str, tuple[type[Liar], ...]] = {
    "Work that is not done again": remembering.LIARS,
    "Work that is not done yet": waiting.LIARS,
    "Work in fewer bits": rounding.LIARS,
    "Other work": results.LIARS,
    "Gradients": gradients.LIARS,
    "Inputs": inputs.LIARS,
    "The harness": harness.LIARS,
    "Training": learners.LIARS,
}

#: Every liar.
LIARS: tuple[type[Liar], ...] = tuple(liar for room in ROOMS.values() for liar in room)

_DISTRIBUTION = "fwbench-liars"


def register(folder: Path) -> None:
    """Write the entry points of all liars, as an installer would for a package that has them.

    Python finds them when the folder is on its path, workers included (``PYTHONPATH``).

    Args:
        folder: is created if it is not there.
    """
    info = folder / f"{_DISTRIBUTION.replace('-', '_')}-{__version__}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {_DISTRIBUTION}\nVersion: {__version__}\n"
    info.joinpath("METADATA").write_text(metadata, encoding="utf-8")
    points = [f"{liar.name} = {liar.__module__}:{liar.__name__}\n" for liar in LIARS]
    text = "".join([f"[{GROUP}]\n", *points])
    info.joinpath("entry_points.txt").write_text(text, encoding="utf-8")
