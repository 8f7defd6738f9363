"""All cheats, and the entry points by which fwbench finds them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from fwbench.terms.names import GROUP
from fwbench.version import __version__
from fwbench_extras.cheats import repeating, results, surroundings, training, waiting
from fwbench_extras.cheats.cheat import Cheat

#: The cheats by subject.
CHEATS_BY_SUBJECT: dict[str, tuple[Cheat, ...]] = {
    "Work that is not done again": repeating.CHEATS,
    "Work that is not done yet": waiting.CHEATS,
    "Work in fewer bits": results.PRECISION,
    "Other work": results.OTHER_WORK,
    "Gradients": results.GRADIENTS,
    "Inputs": surroundings.INPUTS,
    "The device": surroundings.DEVICE,
    "The harness": surroundings.HARNESS,
    "Training": training.CHEATS,
}

#: Every cheat.
CHEATS: tuple[Cheat, ...] = tuple(
    cheat for cheats in CHEATS_BY_SUBJECT.values() for cheat in cheats
)

#: By name, what makes the framework; entry points lead here.
FRAMEWORKS = SimpleNamespace(**{cheat.name: cheat.framework for cheat in CHEATS})

_DISTRIBUTION = "fwbench-cheats"


def register(folder: Path) -> None:
    """Write the entry points of all cheats, as an installer would for a package that has them.

    Python finds them when the folder is on its path, workers included (``PYTHONPATH``).

    Args:
        folder: is created if it is not there.
    """
    info = folder / f"{_DISTRIBUTION.replace('-', '_')}-{__version__}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: {_DISTRIBUTION}\nVersion: {__version__}\n"
    info.joinpath("METADATA").write_text(metadata, encoding="utf-8")
    points = [f"{cheat.name} = {__name__}:FRAMEWORKS.{cheat.name}\n" for cheat in CHEATS]
    text = "".join([f"[{GROUP}]\n", *points])
    info.joinpath("entry_points.txt").write_text(text, encoding="utf-8")
