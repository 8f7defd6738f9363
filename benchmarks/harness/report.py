"""Time, size and memory of ``fwbench report``: one run of 1,000 cases, and a history of 100,000.

The runs are made up: 20 operations in five frameworks at ten sizes, with the statistics of their
rounds and ten launches each; in the history a tenth of the cases shifts by 10 % half-way.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bounds import Finding, arguments, at_most, conclude, python

_MEASURED = """
import resource, sys, time
start = time.perf_counter()
from fwbench.cli import main
status = main(sys.argv[1:])
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
sys.exit(status)
"""

_FRAMEWORKS = ("tensorflow", "mxnet", "torch", "jax", "numpy")


def _cases() -> Iterator[tuple[str, str, int]]:
    for number in range(20):
        for framework in _FRAMEWORKS:
            for size in range(1, 11):
                yield f"operation_{number}", framework, 100 * 2**size


def _entry(
    case: tuple[str, str, int], level: float, launches: int, chance: random.Random
) -> dict[str, Any]:
    workload, framework, size = case
    name = f"{workload}-{framework}-cpu-eager-forward-float32-{size}"
    times_s = [1e-9 * size * level * chance.lognormvariate(0.0, 0.02) for _ in range(launches)]
    ordered = sorted(times_s)
    stats = {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": sum(ordered) / launches,
        "rounds": 100,
        "median": ordered[launches // 2],
        "q1": ordered[launches // 4],
        "q3": ordered[3 * launches // 4],
        "iterations": 1,
        "stddev": 0.0,
    }
    facts = {
        "schema": 1,
        "workload": workload,
        "framework": framework,
        "device": "cpu",
        "execution": "eager",
        "direction": "forward",
        "dtype": "float32",
        "size": size,
        "framework_version": "1.0",
        "device_name": "CPU",
        "threads": 2,
        "toggles": {},
        "flops": 2.0 * size,
        "bytes": 8.0 * size,
        "completion_s": stats["median"],
        "dispatch_s": stats["median"] / (5 if framework == "mxnet" else 1),
        "launches": [{"launch": i, "value_s": value} for i, value in enumerate(times_s)],
    }
    return {
        "name": f"test[{name}]",
        "fullname": f"test_it.py::test[{name}]",
        "param": name,
        "group": f"{workload} {size}",
        "params": {},
        "stats": stats,
        "extra_info": {"fwbench": facts},
    }


def _write(path: Path, day: int, days: int, launches: int, chance: random.Random) -> None:
    levels = [1.1 if day * 2 >= days and n % 10 == 0 else 1.0 for n in range(1_000)]
    run = {
        "benchmarks": [
            _entry(case, level, launches, chance)
            for case, level in zip(_cases(), levels, strict=True)
        ],
        "datetime": f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00+00:00",
        "machine_info": {"cpu": {"brand_raw": "CPU"}},
        "fwbench": {"schema": 1, "threads": 2, "machine": {"cpu": "CPU"}},
    }
    path.write_text(json.dumps(run), encoding="utf-8")


def _measure(*command: str) -> tuple[float, float]:
    """Seconds, imports among them, and the largest resident set in bytes."""
    _, output = python("-c", _MEASURED, "report", *command)
    seconds, peak_bytes = output.splitlines()[-1].split()
    return float(seconds), float(peak_bytes)


def main() -> int:
    """Make the runs, make the reports, and print the table."""
    given = arguments(__doc__, 3, days=100)
    chance = random.Random(0)  # noqa: S311 (no secret)
    findings = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history = folder / "history"
        history.mkdir()
        for day in range(given.days):
            _write(history / f"{day:04}.json", day, given.days, 10, chance)
        first, page = history / "0000.json", folder / "report.html"
        for _ in range(given.rounds):
            one_s, _ = _measure(str(first), "-o", str(page))
            size_bytes = page.stat().st_size
            all_s, peak_bytes = _measure("--history", str(history), "-o", str(page))
            records = 1_000 * given.days
            findings += [
                at_most("1,000 cases", one_s, 3.0, "s"),
                at_most("1,000 cases, the page", size_bytes / 1e6, 3.0, "MB"),
                at_most(f"{records:,} records of history", all_s, 15.0, "s"),
                at_most(f"{records:,} records, peak memory", peak_bytes / 1e6, 500.0, "MB"),
                Finding("the page of the history", f"{page.stat().st_size / 1e6:.1f} MB"),
            ]
    return conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
