"""Pairs of launches that take turns repeat to a few per cent where launches one by one do not.

Both sides are the same, so the logarithm of each pair's ratio should be 0. Of each case there are
the mean and the standard deviation of these, in turns (the median of adjacent visits' ratios) and
by launches (the contender's median over the base's of the pair before, as far apart as launches of
several cases were when one followed the other).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path

import bounds
import numpy as np

from fwbench.gate import resume
from fwbench.gate.ab import Launcher
from fwbench.gate.sides import Installed
from fwbench.records.measurement import MEDIAN, TURNS
from fwbench.workers.environments import Environments

#: The standard deviation of a pair's logarithm, by the number of threads.
_AT_MOST = {1: 0.02, 2: 0.04}

_FRAMEWORKS = ("numpy", "torch", "mxnet", "tensorflow")
_CASES = (
    "gemm-numpy or gemm-torch or gemm-mxnet or gemm-tensorflow or relu- or (conv2d- and forward)"
)


def main() -> int:
    """Measure pairs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no pair after these")
    parser.add_argument("--threads", type=int, default=1, choices=[*_AT_MOST])
    parser.add_argument("--fw", default=",".join(_FRAMEWORKS))
    parser.add_argument("-k", default=_CASES)
    given = parser.parse_args()
    both = [Installed(name, given.fw.split(",")) for name in ("base", "contender")]
    arguments = ["benchmarks", "-k", given.k, "--fw-threads", str(given.threads)]
    in_turns: dict[str, list[float]] = defaultdict(list)
    base_s: dict[str, list[float]] = defaultdict(list)
    contender_s: dict[str, list[float]] = defaultdict(list)
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Environments(Path(folder))
        with resume.job(Path(folder), {"seed": 0}, resume.ComparisonJob, resume=False) as job:
            launcher = Launcher(both, arguments, place, job, partial(print, flush=True))
            for pair in range(given.pairs):
                if time.monotonic() - start_s > 60 * given.minutes:
                    break
                base, contender = launcher(None, pair)
                for key, sample in contender.samples.items():
                    if key in base.samples:
                        in_turns[key] += sample.values(TURNS[MEDIAN])
                        base_s[key] += base.samples[key].values(MEDIAN)
                        contender_s[key] += sample.values(MEDIAN)
                print(f"pair {pair + 1}: {time.monotonic() - start_s:.0f} s", flush=True)
            job.finish()
    findings = []
    for key, logs in in_turns.items():
        apart = np.log(np.roll(contender_s[key], 1) / np.asarray(base_s[key]))
        text = (
            f"{np.mean(logs):+.1%}, sd {np.std(logs):.1%}; by launches sd {np.std(apart):.1%}"
            f" ({np.median(base_s[key]) * 1e6:.4g} us)"
        )
        findings.append(
            bounds.Finding(
                key.partition("[")[2].rstrip("]"),
                text,
                f"at most {_AT_MOST[given.threads]:.0%}",
                bool(np.std(logs) <= _AT_MOST[given.threads]),
            )
        )
    return bounds.conclude(findings)


if __name__ == "__main__":
    sys.exit(main())
