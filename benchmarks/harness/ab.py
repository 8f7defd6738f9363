"""fwbench ab does not cry wolf, sees what is there, and costs little more than its first stage.

The suite of the self-test (twenty NumPy operations, two of them in slowed forms as well) is
launched many times. The launches are cut into stretches, each as long as one comparison may need;
from every stretch comparisons are drawn, which give each launch to one side or the other, and are
decided by fwbench's own code. Comparisons from one stretch share its launches, so the intervals
(95 %) come from resampling whole stretches.

Then whole comparisons of the suite with itself are run as a user would run them, and timed: what
they take against what their first stage took. A launch lasts a few seconds here, which is short for
a suite, so starting processes weighs more than it would elsewhere. ``--rounds`` says how many.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import bounds
import numpy as np

from fwbench.environments.named import Environments
from fwbench.gate import self_test
from fwbench.gate.ab import StagedComparison, Stages
from fwbench.gate.launcher import Launcher
from fwbench.gate.sides import Installed
from fwbench.gate.verdicts import Rules, Verdict

_RULES = Rules(margin=0.01)
_STAGES = Stages()
_DRAWN = 50  # from each stretch
_RESAMPLES = 10_000
_FALSE_AT_MOST = 0.02
_FOUND_AT_LEAST = {5: 0.75, 10: 0.90}
_COST_AT_MOST = 1.3


def _rates(pool: self_test.Pool) -> list[bounds.Finding]:
    needed = 2 * (_STAGES.launches + _STAGES.fresh)
    stretches = [pool.part(i, needed) for i in range(0, pool.launches - needed + 1, needed)]
    by_kind: dict[str, list[self_test.Outcome]] = {}
    for number, stretch in enumerate(stretches):
        for outcome in self_test.outcomes(stretch, _STAGES, _RULES, _DRAWN, number):
            by_kind.setdefault(outcome.what, []).append(outcome)
    findings = []
    least = iter([None, *(_FOUND_AT_LEAST[percent] for percent in pool.percents)])
    for what, outcomes in by_kind.items():
        rates = [outcome.detected / outcome.comparisons for outcome in outcomes]
        rate, bound = float(np.mean(rates)), next(least)
        low, high = _interval(rates)
        figure = f"{rate:.1%} regressed ({low:.1%} to {high:.1%}), {len(stretches)} stretches"
        kept = rate <= _FALSE_AT_MOST if bound is None else rate >= bound
        limit = f"at most {_FALSE_AT_MOST:.0%}" if bound is None else f"at least {bound:.0%}"
        findings.append(bounds.Finding(what, figure, limit, kept))
        extra = float(np.mean([outcome.extra for outcome in outcomes]))
        findings.append(bounds.Finding("  launches of cases in its second stage", f"+{extra:.1%}"))
    return findings


def _interval(rates: Sequence[float]) -> tuple[float, float]:
    random = np.random.default_rng(0)
    means = random.choice(np.asarray(rates), (_RESAMPLES, len(rates))).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def _real(comparisons: int) -> list[bounds.Finding]:
    """Whole comparisons of the suite with itself."""
    totals, firsts, wrong = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        suite = resources.files("fwbench.gate").joinpath("self_test_suite.py")
        Path("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        Path("test_self.py").write_text(suite.read_text(encoding="utf-8"), encoding="utf-8")
        both = (Installed("numpy", ["numpy"]), Installed("numpy", ["numpy"]))
        arguments = ["test_self.py", "-k", "not slowed"]
        for number in range(comparisons):
            launcher = Launcher(both, arguments, Environments(Path(folder)))
            messages: list[tuple[float, str]] = []
            job = StagedComparison(
                launcher,
                Stages(seed=number),
                _RULES,
                say=lambda text, messages=messages: messages.append((time.perf_counter(), text)),
            )
            start = time.perf_counter()
            comparison = job.compare(("base", "contender"))
            end = time.perf_counter()
            second = [at for at, text in messages if text.startswith("fresh")]
            totals += end - start
            firsts += (second[0] if second else end) - start
            verdicts = [judgement.verdict for judgement in comparison.judgements]
            wrong += Verdict.REGRESSED in verdicts
            print(f"comparison {number + 1}: {end - start:.0f} s; {comparison.counts}", flush=True)
    return [
        bounds.Finding(f"of {comparisons} whole comparisons regressed", str(wrong)),
        bounds.at_most("time against the first stage's", totals / firsts, _COST_AT_MOST, "x"),
    ]


def main() -> int:
    """Measure, and compare with the bounds."""
    arguments = bounds.arguments(__doc__, rounds=3, launches=600)
    pool = self_test.measure(arguments.launches, 0, lambda line: print(line, flush=True))
    return bounds.conclude([*_rates(pool), *_real(arguments.rounds)])


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(main())
