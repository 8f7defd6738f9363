"""Writes the losses that frameworks are compared with (workloads/models/trajectories.json).

    python scripts/trajectories.py          writes the file
    python scripts/trajectories.py --check  compares it; exits with 1 where it is out of date

One line for each training loop, update (dense, or lazy where gradients of the embedding can be
sparse) and number of different examples in a batch.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fwbench.workloads.models import networks, reference
from fwbench.workloads.training import TRAJECTORY_STEPS, Training

_FILE = Path(__file__).parents[1] / "src/fwbench/workloads/models/trajectories.json"
_ROWS = (1, 2, 4, 8)
_DIGITS = 12
_TOLERANCE = 1e-9  # relative: what another processor's rounding may add up to

Trajectory = list[float]


def main() -> int:
    """Write, or compare; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    trajectories = _trajectories()
    if not check:
        _FILE.write_text(_layout(trajectories) + "\n", encoding="utf-8")
        return 0
    differences = _differences(trajectories)
    print("\n".join(differences) or f"{_FILE.name} is up to date")
    return 1 if differences else 0


def _trajectories() -> dict[str, Any]:
    """Losses by training loop, update and rows."""
    return {
        training.name: {
            update: {str(rows): _losses(training, rows, update) for rows in _ROWS}
            for update in ("dense", "lazy")
            if update == "dense" or "sparse" in training.toggles
        }
        for training in networks.TRAININGS
    }


def _losses(training: Training, rows: int, update: str) -> Trajectory:
    losses = reference.losses(training, rows, TRAJECTORY_STEPS, update)
    return [float(f"{loss:.{_DIGITS}g}") for loss in losses]


def _layout(value: Any, indent: str = "") -> str:
    """JSON with a line for each list."""
    if not isinstance(value, dict):
        return json.dumps(value)
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(key)}: {_layout(inner_value, inner)}"
        for key, inner_value in value.items()
    ]
    return "\n".join(["{", ",\n".join(lines), indent + "}"])


def _differences(trajectories: dict[str, Any]) -> list[str]:
    """Entries of the file that are out of date, a line each."""
    try:
        stored = dict(_flat(json.loads(_FILE.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        return [f"{_FILE.name} is missing"]
    now = dict(_flat(trajectories))
    compared = {name: _difference(stored.get(name), now.get(name)) for name in {**stored, **now}}
    return [f"{name}: {difference}" for name, difference in compared.items() if difference]


def _flat(trajectories: dict[str, Any]) -> Iterator[tuple[str, Trajectory]]:
    for name, updates in trajectories.items():
        for update, by_rows in updates.items():
            for rows, losses in by_rows.items():
                yield f"{name}, {update}, {rows} rows", losses


def _difference(stored: Trajectory | None, now: Trajectory | None) -> str | None:
    """The difference of two trajectories; None where there is none."""
    if stored is None or now is None:
        return "in the reference alone" if stored is None else "in the file alone"
    if len(stored) != len(now):
        return f"the file has {len(stored)} steps, the reference {len(now)}"
    for step, (old, new) in enumerate(zip(stored, now, strict=True), start=1):
        if not math.isclose(old, new, rel_tol=_TOLERANCE):
            return f"the file has {old} in step {step}, the reference {new}"
    return None


if __name__ == "__main__":
    sys.exit(main())
