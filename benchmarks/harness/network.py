"""A shaped network on one machine scales as its links do, and twice alike.

NumPy's ring adds up 1 MiB between 2, 4 and 8 replicas, each at a link of 100 Mbit/s in a network
namespace of its own (`--fw-network 100mbit`). As long as the links are the limit, and not the
processors, theory says what comes out: the bus bandwidth is the link's less the headers of
Ethernet, IP and TCP (95 %), 4 replicas take 1.5 times as long as 2, and latency and bandwidth
fitted to 2 replicas predict 8:

    t = 2 (W - 1) alpha + 2 (W - 1) / W S beta

Everything is measured `--rounds` times, and the runs must agree. Needs what `fwbench doctor` says
of networks.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import bounds

_NETWORK = "100mbit"
_REPLICAS = (2, 4, 8)

#: The numbers that are added up: one, for the latency, and a MiB of them.
_ONE, _MANY = 1, 262_144
_ITEM_BYTES = 4

_LINK_BYTES_PER_S = 12.5e6

#: Steps in seconds, by replicas and size.
Steps = dict[tuple[int, int], float]


def _measured(folder: Path) -> tuple[Steps, list[dict[str, Any]]]:
    """A run of its own: seconds of a step, and all that was recorded of the gangs."""
    kept = bounds.records(
        folder / "run.json",
        "benchmarks/test_collectives.py",
        *("--fw=numpy", f"--fw-network={_NETWORK}", f"--fw-size={_ONE},{_MANY}"),
        *("--fw-threads=1", f"--fw-replicas={','.join(map(str, _REPLICAS))}", "--fw-timeout=600"),
    )
    facts = [record["extra_info"]["fwbench"] for record in kept]
    steps = {(f["gang"]["replicas"], f["size"]): f["completion_s"] for f in facts}
    return steps, [fact["gang"] for fact in facts if fact["size"] == _MANY]


def _predicted_s(steps: Steps, replicas: int) -> float:
    """A step of N replicas, by what two of them took."""
    alpha_s = max(0.0, steps[2, _ONE] / 2)
    beta_s = max(0.0, steps[2, _MANY] - 2 * alpha_s) / (_MANY * _ITEM_BYTES)
    share = 2 * (replicas - 1) / replicas
    return 2 * (replicas - 1) * alpha_s + share * _MANY * _ITEM_BYTES * beta_s


def _findings(steps: Steps, gangs: list[dict[str, Any]]) -> list[bounds.Finding]:
    findings = []
    for gang in gangs:
        used = gang["bus_bytes_per_s"] / _LINK_BYTES_PER_S
        replicas = gang["replicas"]
        step_ms = 1e3 * steps[replicas, _MANY]
        findings += [
            bounds.Finding(f"{replicas} replicas: a step of 1 MiB", f"{step_ms:.1f} ms"),
            bounds.Finding(
                f"{replicas} replicas: bus bandwidth of the link",
                f"{used:.1%}",
                "88 to 96 %" if replicas <= 4 else "",
                0.88 <= used <= 0.96 if replicas <= 4 else None,
            ),
        ]
    ratio = steps[4, _MANY] / steps[2, _MANY]
    off = steps[8, _MANY] / _predicted_s(steps, 8) - 1
    return [
        *findings,
        bounds.Finding("4 replicas over 2", f"{ratio:.3f}", "1.47 to 1.53", 1.47 <= ratio <= 1.53),
        bounds.Finding(
            "8 replicas over the model's", f"{off:+.1%}", "within 5 %", abs(off) <= 0.05
        ),
    ]


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=2)
    findings, runs = [], []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as folder:
            steps, gangs = _measured(Path(folder))
        runs.append(steps)
        load = f"{os.getloadavg()[0]:.1f}"
        findings += [bounds.Finding("load average", load), *_findings(steps, gangs)]
    for replicas in _REPLICAS:
        apart = bounds.spread([steps[replicas, _MANY] for steps in runs])
        what = f"{replicas} replicas: runs differ by"
        findings.append(bounds.Finding(what, f"{apart:.2%}", "at most 2 %", apart <= 0.02))
    return bounds.conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
