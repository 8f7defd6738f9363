"""The quick grid on the CPU, training loops included, ends within 100 seconds on 2 cores.

Runs `pytest benchmarks --fw-device=cpu` on no more than two of the CPUs that there are, with the
frameworks that `make bench` installs, even if others are there. It says how much of that was
measuring: the rounds that became records, and in addition warm-up and first calls. The rest is
imports, binding, verification, calibration and reports.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import bounds

_BOUND_S = 100.0
_CPUS = 2

#: The extras of the Makefile, and NumPy.
_SELECTED = ("--fw=numpy,tensorflow,mxnet,torch", "--fw-device=cpu")


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=1, cpus=_CPUS)
    # Sessions and their workers inherit it, and take as many threads.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cpus])
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            start = time.perf_counter()
            kept = bounds.records(Path(folder) / "run.json", "benchmarks", *_SELECTED)
            took_s = time.perf_counter() - start
            facts = [record["extra_info"]["fwbench"] for record in kept]
            shares = {
                "rounds": sum(r["stats"]["total"] * r["stats"]["iterations"] for r in kept),
                "warm-up": sum(fact["warmup_s"] for fact in facts),
                "first calls": sum(fact.get("first_call_in_process_s", 0.0) for fact in facts),
            }
            findings += [
                bounds.at_most("quick grid", took_s, _BOUND_S, "s"),
                bounds.Finding("cases measured", str(len(kept))),
                bounds.Finding("threads", str({fact["threads"] for fact in facts} - {None})),
                *(
                    bounds.Finding(f"of it {name}", f"{share_s:.1f} s ({share_s / took_s:.0%})")
                    for name, share_s in shares.items()
                ),
            ]
    return bounds.conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
