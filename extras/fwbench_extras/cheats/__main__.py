"""Registers the liars: ``python -m fwbench_extras.cheats FOLDER``."""

from __future__ import annotations

import argparse
from pathlib import Path

from fwbench_extras.cheats.museum import LIARS, register


def main() -> None:
    """Write their entry points to a folder and say how to use them."""
    parser = argparse.ArgumentParser(prog="python -m fwbench_extras.cheats", description=__doc__)
    parser.add_argument("folder", type=Path, help="for the entry points")
    folder: Path = parser.parse_args().folder.resolve()
    register(folder)
    print(f"PYTHONPATH={folder} pytest benchmarks --fw {LIARS[0].name}")
    print("liars:", ", ".join(liar.name for liar in LIARS))


if __name__ == "__main__":
    main()
