"""Plant each defect of ``defects.toml`` in a copy of the checkout, and run its tests.

    python scripts/plant.py [NAME...] [--checkout FOLDER]

Needs the interpreter of an environment that has what the tests need. Prints a table; the exit
status is 1 if a defect was not caught.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[1]
_FOLDERS = ("src", "extras", "tests")
_NEVER_COPIED = (".venv", ".git", "__pycache__", ".*_cache", ".hypothesis", "site", "dist")
_TIMEOUT_S = 900


@dataclass(frozen=True)
class Defect:
    """A mistake in the source.

    Attributes:
        name: what is wrong, in a few words.
        old: a regular expression that matches in one file of the source, and there once.
        new: its replacement.
        tests: files of tests, as their paths end; at least one of their tests fails.
    """

    name: str
    old: str
    new: str
    tests: Sequence[str]


_TABLE = tomllib.loads(
    (_CHECKOUT / "tests" / "planted" / "defects.toml").read_text(encoding="utf-8")
)
DEFECTS = [Defect(**row) for row in _TABLE["defect"]]


def files_of(defect: Defect, checkout: Path) -> list[Path]:
    """The source files that a defect can be planted in: one, if all is well."""
    old = re.compile(defect.old)
    return [file for file, source in _sources(checkout).items() if old.search(source)]


@cache
def _sources(checkout: Path) -> dict[Path, str]:
    files = (
        file
        for name in _FOLDERS[:2]
        for kind in ("*.py", "*.toml")
        for file in (checkout / name).rglob(kind)
    )
    return {file: file.read_text(encoding="utf-8") for file in files}


def selected(defect: Defect, checkout: Path) -> list[str]:
    """The files of its tests that the checkout has."""
    there = [file for name in _FOLDERS for file in (checkout / name).rglob("test_*.py")]
    return [
        str(file.relative_to(checkout))
        for name in defect.tests
        for file in there
        if file.as_posix().endswith(f"/{name}")
    ]


def _copied(checkout: Path, folder: Path) -> Path:
    """A copy of the checkout, with an environment that imports what it has and this one else."""
    copy = folder / "checkout"
    shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(*_NEVER_COPIED), symlinks=True)
    venv.create(copy / ".venv", symlinks=True)
    installed = sysconfig.get_paths()["purelib"]
    paths = {"base": str(copy / ".venv"), "platbase": str(copy / ".venv")}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    folders = [str(copy / name) for name in _FOLDERS[:2] if (copy / name).is_dir()]
    packages.joinpath("planted.pth").write_text(
        "\n".join([*folders, f"import site; site.addsitedir({installed!r})"]) + "\n",
        encoding="utf-8",
    )
    return copy


def _caught(defect: Defect, copy: Path) -> tuple[str, float]:
    """The first test that fails of a defect, or why there is none, and the seconds that it took."""
    (file,) = files_of(defect, copy)
    source = file.read_text(encoding="utf-8")
    started_s = time.monotonic()
    file.write_text(re.sub(defect.old, defect.new, source), encoding="utf-8")
    try:
        done = subprocess.run(
            [
                *(str(copy / ".venv/bin/python"), "-m", "pytest", "-x", "-q", "-n0", "--tb=no"),
                *("-rfE", "--basetemp", str(copy.parent / "tests"), *selected(defect, copy)),
            ],
            cwd=copy,
            env={**os.environ, "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", done.stdout, re.MULTILINE)
        if done.returncode == pytest.ExitCode.OK:
            outcome = "NOT CAUGHT"
        else:  # a file that cannot be collected catches nothing
            outcome = f"caught by {failed[1]}" if failed else f"NO TESTS: {done.stdout[-300:]}"
    except subprocess.TimeoutExpired:
        outcome = f"caught: not over within {_TIMEOUT_S} s"
    finally:
        file.write_text(source, encoding="utf-8")
    return outcome, time.monotonic() - started_s


def plant(defects: Sequence[Defect], checkout: Path) -> int:
    """Plant defects one after the other, and print what became of each.

    Returns:
        How many the tests did not notice.
    """
    missed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = _copied(checkout, Path(folder))
        for defect in defects:
            if len(files_of(defect, copy)) == 1:
                outcome, seconds = _caught(defect, copy)
            else:
                outcome, seconds = "CANNOT BE PLANTED", 0.0
            missed += not outcome.startswith("caught")
            print(f"{defect.name:55} {seconds:4.0f} s  {outcome}", flush=True)
    print(f"{len(defects) - missed} of {len(defects)} caught")
    return missed


def main() -> int:
    """Plant the defects whose names have one of the words of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="a part of the names of some; default: all")
    parser.add_argument("--checkout", type=Path, default=_CHECKOUT)
    arguments = parser.parse_args()
    names = arguments.names or [""]
    chosen = [defect for defect in DEFECTS if any(name in defect.name for name in names)]
    return 1 if plant(chosen, arguments.checkout.resolve()) else 0


if __name__ == "__main__":
    sys.exit(main())
