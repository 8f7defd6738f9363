"""fwbench ab does not cry wolf, sees what is there, and costs little where nothing has changed.

The suite of the self-test (twenty NumPy operations, two of them in slowed forms as well) is
launched many times; ``--pool FILE`` keeps the launches, or takes those of an earlier run. They are
then compared with each other by fwbench's own code, as they are and under each of the noise models
of `noise.py`: either nothing is changed, or one case is slowed by 5, 10 or 20 %.

A case that says a change would have shown must show it: of slowed cases whose detectable change is
at most what they were slowed by, four of five are found.

Then one comparison is run as a user would run it: ten NumPy operations of two revisions, of which
the second does 5 % more work in six. ``--rounds`` says how many such comparisons.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import bounds
import noise

from fwbench.gate import resume
from fwbench.gate.ab import Launcher, PairedComparison, PairPlan
from fwbench.gate.sides import Installed
from fwbench.gate.verdicts import Rules, Verdict
from fwbench.plugin.lines import Live
from fwbench.processes import session
from fwbench.workers.environments import Environments
from fwbench_extras import self_test

_RULES = Rules(margin=0.01, level=0.02)
_PLAN = PairPlan()
_FALSE_AT_MOST = 0.02
_KEPT_AT_LEAST = 0.8
_COST_AT_MOST = 1.3

#: The share of slowed cases to be found, by noise model and per cent.
_FOUND_AT_LEAST = {
    "quiet": {5: 0.75, 10: 0.90},
    "drift": {5: 0.75, 10: 0.90},
    "noise of 6 %": {20: 0.75},
}


def _simulated(pool: self_test.Pool, comparisons: int) -> list[bounds.Finding]:
    findings: list[bounds.Finding] = []
    shown = 0
    for name, model in noise.MODELS.items():
        wrong = done = claimed = kept = 0
        for outcome in self_test.outcomes(model(pool), _PLAN, _RULES, comparisons, len(findings)):
            wrong, done = wrong + outcome.false_alarms, done + outcome.comparisons
            claimed, kept = claimed + outcome.claimed, kept + outcome.kept
            findings += _outcome(name, outcome)
        findings.append(
            bounds.Finding(
                f"{name}: jobs with a false alarm",
                f"{wrong} of {done}",
                f"at most {_FALSE_AT_MOST:.0%}",
                wrong / done <= _FALSE_AT_MOST,
            )
        )
        if claimed:
            what = f"{name}: found of {claimed} that a case said it would show"
            findings.append(_at_least(what, kept / claimed, _KEPT_AT_LEAST))
        for finding in findings[shown:]:
            print(f"{finding.what}: {finding.figure} {finding.bound}", flush=True)
        shown = len(findings)
    return findings


def _outcome(name: str, outcome: self_test.ErrorRates) -> list[bounds.Finding]:
    percent = outcome.percent
    if not percent:
        what = f"{name}: launches of a job in which nothing changed, against five a side"
        if name == "quiet":
            return [bounds.at_most(what, outcome.cost, _COST_AT_MOST, "x")]
        return [bounds.Finding(what, f"{outcome.cost:.2f}x")]
    number = outcome.comparisons
    detected, overlooked = outcome.detected / number, outcome.overlooked / number
    what = f"{name}: +{percent} % found"
    least = _FOUND_AT_LEAST.get(name, {}).get(percent)
    figure = f"{detected:.0%}; {overlooked:.0%} unchanged"
    if least is None:
        return [bounds.Finding(what, figure)]
    return [bounds.Finding(what, figure, f"at least {least:.0%}", detected >= least)]


def _at_least(what: str, share: float, least: float) -> bounds.Finding:
    return bounds.Finding(what, f"{share:.0%}", f"at least {least:.0%}", share >= least)


#: Ten cases; the slowed ones do 5 % more of the same work in the contender.
_SLOWED = ("exp", "sin", "tanh", "sqrt", "cumsum", "sort")
_STEADY = ("add", "sum", "copy", "outer")


def _real(number: int) -> list[bounds.Finding]:
    """One whole comparison with planted changes, in the time that a user would give it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        suite = resources.files("fwbench_extras").joinpath("self_test_suite.py")
        text = suite.read_text(encoding="utf-8")
        for side, more in (("base", 0), ("contender", 1)):
            made = Path(side) / "test_self.py"
            made.parent.mkdir()
            made.with_name("pytest.ini").write_text("[pytest]\n", encoding="utf-8")
            made.write_text(_planted(text, more), encoding="utf-8")
        start = time.monotonic()
        plan = PairPlan(seed=number)
        both = (_Planted("base"), _Planted("contender"))
        arguments = ["test_self.py", "-k", "30000", *self_test.SHORT]
        say = partial(print, flush=True)
        with resume.job(Path(folder), {"seed": number}, resume.ComparisonJob, resume=False) as job:
            launcher = Launcher(both, arguments, Environments(Path(folder)), job, say)
            measured = PairedComparison(launcher, plan, Rules(), say=say)
            comparison = measured.compare(("base", "contender"))
            job.finish()
        took_s = time.monotonic() - start
    print(json.dumps({key: str(v) for key, v in comparison.verdicts.items()}, indent=1))
    planted = [v for k, v in comparison.verdicts.items() if _name(k) in _SLOWED]
    others = [v for k, v in comparison.verdicts.items() if _name(k) in _STEADY]
    detected = planted.count(Verdict.REGRESSED)
    return [
        bounds.Finding(
            f"comparison {number + 1}: +5 % found in 6 of 10 cases",
            str(detected),
            "at least 4",
            detected >= 4,
        ),
        _none("  of these called unchanged", planted.count(Verdict.UNCHANGED)),
        _none("  of the others called regressed", others.count(Verdict.REGRESSED)),
        bounds.Finding("  time", f"{took_s / 60:.1f} min", "at most 10 and a pair", took_s < 660),
    ]


def _none(what: str, number: int) -> bounds.Finding:
    return bounds.Finding(what, str(number), "none", number == 0)


class _Planted(Installed):
    """A side whose suite is in a separate folder."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ["numpy"])

    @property
    def folder(self) -> Path:
        """The folder with its suite."""
        return Path.cwd() / self.name


def _planted(text: str, more: int) -> str:
    """The suite with so much more work in the cases that are slowed."""
    slowed = repr(dict.fromkeys(_SLOWED, (more,)))
    before, _, after = text.partition("_SLOWED = ")
    _, _, rest = after.partition("\n")
    text = f"{before}_SLOWED = {slowed}\n{rest}"
    return text.replace(
        '_operation(f"{name}_slowed_{more}" if more else name, function, _REPEATS + more)',
        "_operation(name, function, _REPEATS + sum(_SLOWED.get(name, ())))",
    ).replace("for more in (0, *_SLOWED.get(name, ()))", "for _ in (0,)")


def _name(key: str) -> str:
    return key.partition("[")[2].partition("-")[0]


def _pool(file: Path | None, launches: int) -> self_test.Pool:
    """The launches of a file, or new ones; those are kept in it."""
    if file is not None and file.is_file():
        return self_test.pool(json.loads(file.read_text(encoding="utf-8")))
    measured: dict[str, Any] = session.measure_suite(
        "fwbench_extras.self_test_suite",
        [*self_test.ARGUMENTS, "--fw-launches", str(launches), "--fw-seed", "0"],
        Live(sys.stdout).watching,
    )
    if file is not None:
        file.write_text(json.dumps(measured), encoding="utf-8")
    return self_test.pool(measured)


def main() -> int:
    """Measure, and compare with the bounds."""
    arguments = bounds.arguments(
        __doc__,
        rounds=1,
        files={"pool": "keep the launches in it, or take them from it"},
        launches=200,
        comparisons=100,
    )
    findings: list[bounds.Finding] = []
    if arguments.comparisons:
        pool = _pool(arguments.pool, arguments.launches)
        findings = _simulated(pool, arguments.comparisons)
    for number in range(arguments.rounds):
        findings += _real(number)
    return bounds.conclude(findings)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    sys.exit(main())
