"""Time, size and memory of ``fwbench report``: 1,000 and 10,000 cases, and a history of 100,000.

The runs are made up: 20 or 200 operations of five contestants at ten sizes, with the statistics of
their rounds and ten launches each; in the history a tenth of the cases shifts by 10 % half-way.
Where there is a Chromium, the page of 10,000 cases is opened in it.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
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
from fwbench.machine import usable_cpus
status = main(sys.argv[1:])
took_s = time.perf_counter() - start
here, child = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(took_s, (here.ru_maxrss + usable_cpus() * child.ru_maxrss) * 1024)
sys.exit(status)
"""

#: Framework and execution.
_CONTESTANTS = (
    *(("tensorflow", "graph"), ("mxnet", "eager"), ("torch", "eager"), ("torch", "compile")),
    ("numpy", "eager"),
)

_SIZES = 10

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")

#: Says, behind everything of a page, when it was loaded and laid out.
_OPENED = """<script>addEventListener("load", () => {
  document.body.dataset.opened = document.body.offsetHeight && performance.now() / 1000;
});</script>"""


def _cases(operations: int) -> Iterator[tuple[str, str, str, int]]:
    for number in range(operations):
        for framework, execution in _CONTESTANTS:
            for size in range(1, 1 + _SIZES):
                yield f"operation_{number}", framework, execution, 100 * 2**size


def _entry(
    case: tuple[str, str, str, int], level: float, launches: int, chance: random.Random
) -> dict[str, Any]:
    workload, framework, execution, size = case
    name = f"{workload}-{framework}-cpu-{execution}-forward-float32-{size}"
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
        "execution": execution,
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


def _write(
    path: Path, chance: random.Random, operations: int = 20, day: int = 0, days: int = 1
) -> None:
    cases = [*_cases(operations)]
    levels = [1.1 if day * 2 >= days and n % 10 == 0 else 1.0 for n in range(len(cases))]
    run = {
        "benchmarks": [
            _entry(case, level, 10, chance) for case, level in zip(cases, levels, strict=True)
        ],
        "datetime": f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00+00:00",
        "machine_info": {"cpu": {"brand_raw": "CPU"}},
        "fwbench": {"schema": 1, "threads": 2, "machine": {"cpu": "CPU"}},
    }
    path.write_text(json.dumps(run), encoding="utf-8")


def _measure(*command: str) -> tuple[float, float]:
    """Seconds, imports among them, and what all processes have in memory at most, in bytes.

    Histories are read by a process for each CPU; none of them takes more than the largest.
    """
    _, output = python("-c", _MEASURED, "report", *command)
    seconds, peak_bytes = output.splitlines()[-1].split()
    return float(seconds), float(peak_bytes)


def _opened_s(page: Path) -> float | None:
    """Seconds until a browser has loaded a page and laid it out; None where there is none."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return None
    shown = page.read_text(encoding="utf-8").replace("</body>", f"{_OPENED}</body>")
    page.write_text(shown, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
    ended = subprocess.run(
        [browser, *options, f"--user-data-dir={page.parent}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(ended.stdout.rpartition('data-opened="')[2].partition('"')[0])


def _opening(page: Path) -> list[Finding]:
    opened_s = _opened_s(page)
    return [] if opened_s is None else [at_most("10,000 cases, opened", opened_s, 3.0, "s")]


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
            _write(history / f"{day:04}.json", chance, day=day, days=given.days)
        large, large_page = folder / "large.json", folder / "large.html"
        _write(large, chance, operations=200)
        first, page = history / "0000.json", folder / "report.html"
        for _ in range(given.rounds):
            one_s, _ = _measure(str(first), "-o", str(page))
            size_bytes = page.stat().st_size
            large_s, _ = _measure(str(large), "-o", str(large_page))
            large_bytes = large_page.stat().st_size
            all_s, peak_bytes = _measure("--history", str(history), "-o", str(page))
            records = 1_000 * given.days
            findings += [
                at_most("1,000 cases", one_s, 3.0, "s"),
                at_most("1,000 cases, the page", size_bytes / 1e6, 3.0, "MB"),
                Finding("10,000 cases", f"{large_s:.2f} s"),
                Finding("10,000 cases, the page", f"{large_bytes / 1e6:.2f} MB"),
                *_opening(large_page),
                at_most(f"{records:,} records of history", all_s, 15.0, "s"),
                at_most(f"{records:,} records, peak memory", peak_bytes / 1e6, 500.0, "MB"),
                Finding("the page of the history", f"{page.stat().st_size / 1e6:.1f} MB"),
            ]
    return conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
