"""fwbench since finds the version that has made a package slower, whichever it is.

A package of eight versions gets a slow-down of 10 % in one of them, drawn anew in each round, and
three plain tests, two of which call it. Bounds: the right version is named in 19 of 20 cases, a
wrong one in none, and the test that does not call the package has no change; a row takes at most
two minutes. Its sessions are told as a share of those of measuring all versions in every launch.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bounds

_VERSIONS, _MORE_WORK = 8, 10
_RIGHT_AT_LEAST, _SECONDS_AT_MOST = 0.95, 120

_MODULE = "def work(n):\n    return sum(i * i for i in range(n + n * {more} // 100))\n"

_TESTS = """
from planted import work

def test_small(benchmark):
    benchmark(work, 1000)

def test_large(benchmark):
    benchmark(work, 5000)

def test_other(benchmark):
    benchmark(sorted, list(range(1000, 0, -1)))
"""


def _write_index(folder: Path, slow: int) -> str:
    """Write the versions into an index of a folder; returns its URL."""
    from support.wheels import write_wheel

    wheels = folder / "simple" / "planted"
    wheels.mkdir(parents=True)
    for version in range(_VERSIONS):
        text = _MODULE.format(more=_MORE_WORK if version >= slow else 0)
        write_wheel(wheels, "planted", f"1.{version}", {"planted.py": text})
    links = (f'<a href="{wheel.name}">{wheel.name}</a>' for wheel in sorted(wheels.iterdir()))
    (wheels / "index.html").write_text("\n".join(links), encoding="utf-8")
    return wheels.parent.as_uri()


def _since(folder: Path, url: str) -> dict[str, Any]:
    """The figures of a row."""
    command = [sys.executable, "-m", "fwbench", "since", "planted", "--index", url, "--json"]
    subprocess.run([*command, "row.json", "test_it.py"], cwd=folder, check=True, env=os.environ)
    row: dict[str, Any] = json.loads((folder / "row.json").read_text(encoding="utf-8"))
    return row


def _round(slow: int) -> tuple[list[bounds.Finding], list[bool | None], float]:
    """One row: its times, whether each test was told right, and the share of sessions."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "pytest.ini").write_text(
            "[pytest]\naddopts = --benchmark-max-time=0.1\n", encoding="utf-8"
        )
        (folder / "test_it.py").write_text(_TESTS, encoding="utf-8")
        url = _write_index(folder, slow)
        begun_s = time.monotonic()
        row = _since(folder, url)
        took_s = time.monotonic() - begun_s
        told = [_is_right(row["cases"][f"test_it.py::test_{name}"], name, slow) for name in _NAMES]
        share = row["sessions"] / (row["launches"] * _VERSIONS)
        seconds = bounds.at_most(
            f"1.{slow}: measured", row["took_s"], _SECONDS_AT_MOST, f"s of {took_s:.0f} s"
        )
        return [seconds], told, share


_NAMES = ("small", "large", "other")


def _is_right(case: dict[str, Any], name: str, slow: int) -> bool | None:
    """True if the right version is named; None if nothing is."""
    expected = [] if name == "other" else [f"1.{slow}"]
    found = [change["since"] for change in case["changes"]]
    if found == expected:
        return True
    return None if not found else False


def main() -> int:
    """Measure as many rows as are asked for, and compare with the bounds."""
    given = bounds.arguments(__doc__, rounds=20, seed=random.randrange(10**6))  # noqa: S311
    source = random.Random(given.seed)  # noqa: S311 (no secret)
    print(f"--rounds {given.rounds} --seed {given.seed}", flush=True)
    findings: list[bounds.Finding] = []
    told: list[bool | None] = []
    shares = []
    for _ in range(given.rounds):
        lines, cases, share = _round(source.randrange(1, _VERSIONS))
        findings += lines
        told += cases
        shares.append(share)
        print(lines[0].what, lines[0].figure, cases, f"{share:.0%} of all sessions", flush=True)
    right, wrong = told.count(True), told.count(False)
    all_share = statistics.mean(shares)
    pairs_share = all_share * _VERSIONS / (2 * (_VERSIONS - 1))
    findings += [
        bounds.Finding(
            "tests with the right version",
            f"{right} of {len(told)}",
            f"at least {_RIGHT_AT_LEAST:.0%}",
            right >= _RIGHT_AT_LEAST * len(told),
        ),
        bounds.Finding("tests with a wrong version", f"{wrong}", "none", wrong == 0),
        bounds.Finding("sessions, of those of all versions", f"{all_share:.0%}"),
        bounds.at_most("sessions, of those of all neighbours", 100 * pairs_share, 50, "%"),
    ]
    return bounds.conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
