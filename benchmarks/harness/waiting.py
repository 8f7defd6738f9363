"""Cost of looking for asynchronous results where there are none, in nanoseconds of a call.

A plain test measures a function that does nothing, in fresh sessions by turns: with the wait, and
without it (``fw_wait = false``). A session's figure is the median of its rounds. Both are made with
and without an asynchronous framework imported:

    python benchmarks/harness/waiting.py --pairs 10 --framework torch
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_TEST = """
{imported}
def nothing():
    pass

def test_it(benchmark):
    benchmark(nothing)
"""

_S_TO_NS = 1e9


def main() -> None:
    """Measure, and print the difference with each pair's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--framework", default="", help="module that the test imports")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        imported = f"import {given.framework}" if given.framework else ""
        (folder / "test_it.py").write_text(_TEST.format(imported=imported), encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        differences = [_difference_ns(folder) for _ in range(given.pairs)]
    print(f"pairs, ns of a call: {', '.join(f'{each:+.1f}' for each in differences)}")
    print(f"median: {statistics.median(differences):+.1f} ns, at most {max(differences):+.1f} ns")


def _difference_ns(folder: Path) -> float:
    """The time of a call with the wait minus that without, in an order that is drawn."""
    times_ns = {waits: _call_ns(folder, waits) for waits in random.sample(("true", "false"), 2)}
    return times_ns["true"] - times_ns["false"]


def _call_ns(folder: Path, waits: str) -> float:
    command = (sys.executable, "-P", "-m", "pytest", "-q", f"-ofw_wait={waits}")
    more = ("--benchmark-json=measured.json", "-p", "no:randomly", "test_it.py")
    subprocess.run([*command, *more], cwd=folder, check=True, capture_output=True)
    stored = json.loads((folder / "measured.json").read_text(encoding="utf-8"))
    return float(stored["benchmarks"][0]["stats"]["median"]) * _S_TO_NS


if __name__ == "__main__":
    main()
