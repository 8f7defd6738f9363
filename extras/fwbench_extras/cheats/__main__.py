"""Registers the cheats: ``python -m fwbench_extras.cheats FOLDER``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fwbench_extras.cheats.table import CHEATS, register


def main() -> None:
    """Write the entry points to a folder, and print how to use them."""
    parser = argparse.ArgumentParser(prog="python -m fwbench_extras.cheats", description=__doc__)
    parser.add_argument("folder", type=Path, help="for the entry points")
    folder: Path = parser.parse_args().folder.resolve()
    register(folder)
    print(f"PYTHONPATH={folder} pytest benchmarks --fw {CHEATS[0].name}")
    print("cheats:", ", ".join(cheat.name for cheat in CHEATS))


if __name__ == "__main__":
    main()
