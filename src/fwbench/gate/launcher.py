"""Measures one launch of one side, as a pytest session in a process of its own."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from fwbench.errors import ComparisonError, DifferentSettings, UsageError
from fwbench.gate.kept import Job, KeptLaunch
from fwbench.gate.samples import FACTS, SampleSet, refuse_differences
from fwbench.gate.sides import Side, variables_of
from fwbench.processes import scratch, session
from fwbench.processes.command import Finished
from fwbench.processes.session import SELECTOR
from fwbench.records.stored import parse
from fwbench.workers.named import Environments

#: Settings of a project's own sessions that a launch is measured without: it is a single one, and
#: the comparison judges it.
_ONE_LAUNCH = ("-o", "fw_race=false", "-o", "fw_budget=", "-o", "fw_gate=")

#: What a command line has for the same, and what fwbench ab has instead.
_INSTEAD = {
    "--fw-launches": "--pairs N is the number of launches of each side",
    "--fw-seed": "--seed N is the seed of all launches",
    "--fw-race": "a race is a session of its own: pytest --fw-race",
    "--fw-budget": "--budget MINUTES is that of the comparison",
    "--fw-gate": "--threshold and --fail-on are those of the comparison",
}


def refuse_launching(arguments: Sequence[str]) -> None:
    """Refuse arguments that decide on launches or judge them, as only the comparison does.

    Args:
        arguments: of pytest, as the user gave them.

    Raises:
        UsageError: there is one.
    """
    for flag in (argument.partition("=")[0] for argument in arguments):
        if flag in _INSTEAD:
            raise UsageError(
                f"{flag} cannot be passed on to pytest: fwbench ab chooses the launches and judges "
                f"them itself; leave it out: {_INSTEAD[flag]}"
            )


class Launcher:
    """Measures launches of base and contender; one that dies is repeated, once.

    Args:
        sides: base and contender, both ready.
        arguments: of pytest, as the user gave them.
        environments: the named environments of the project.
        job: keeps what is measured, and has what an interrupted job has left.
        say: called with what goes wrong.
        watching: shows how far a launch is.
    """

    def __init__(
        self,
        sides: Sequence[Side],
        arguments: Sequence[str],
        environments: Environments,
        job: Job,
        say: Callable[[str], object],
        watching: session.Watching = nullcontext,
    ) -> None:
        self._sides = sides
        self._arguments = arguments
        self._environments = environments
        self._job = job
        self._say = say
        self._watching = watching
        self._earlier = [*job.earlier]
        self._first: dict[int, SampleSet] = {}
        self._nodeids: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def __call__(self, side: int, keys: Collection[str] | None, seed: int) -> SampleSet:
        """Measure one launch; see :data:`fwbench.gate.ab.Measure`.

        Raises:
            ComparisonError: the session broke down, or measured nothing.
            DifferentSettings: launches of an interrupted job were measured with other settings.
        """
        launch = self._earlier.pop(0) if self._earlier else self._measured(side, keys, seed)
        lost = {key: "failed" for key in keys or () if key not in launch.run.samples}
        unmeasured = {**lost, **launch.run.unmeasured}
        run = replace(launch.run, name=self._sides[side].name, unmeasured=unmeasured)
        self._refuse_differences(self._first.setdefault(side, run), run)
        self._nodeids[side].update({key: sample.nodeid for key, sample in run.samples.items()})
        return run

    def _refuse_differences(self, first: SampleSet, run: SampleSet) -> None:
        """Refuse to go on with kept launches if what they were measured with has changed.

        Raises:
            DifferentSettings: it has.
        """
        differences = refuse_differences(first, run, FACTS) if self._job.earlier else ()
        if differences:
            raise DifferentSettings(
                f"the kept launches of {run.name} were measured with other settings: "
                f"{'; '.join(differences)}; run the comparison without --resume"
            )

    def _measured(self, side: int, keys: Collection[str] | None, seed: int) -> KeptLaunch:
        selected = None if keys is None else [self._nodeids[side][key] for key in keys]
        start_s = time.monotonic()
        values = self._values(self._sides[side], seed, selected)
        return self._job.keep(values, keys, time.monotonic() - start_s)

    def _values(self, side: Side, seed: int, selected: Sequence[str] | None) -> dict[str, Any]:
        """What a launch writes."""
        with scratch.folder() as folder:
            results = folder / "results.json"
            done = self._run(side, seed, results, selected)
            if session.has_died(done):
                self._say(f"a launch of {side.name} has died ({_ending(done)}): it is repeated")
                results.unlink(missing_ok=True)
                done = self._run(side, seed, results, selected)
            if results.is_file() and done.status in session.RAN:
                values: dict[str, Any] = parse(results)
                return values
        if done.status in session.RAN and selected is not None:
            # Once they could be measured: that they cannot now is for the job to judge.
            return {"benchmarks": []}
        what = "measured nothing" if done.status in session.RAN else "broke down"
        raise ComparisonError(
            f"a launch of {side.name} {what} ({_ending(done)}); its last output:\n"
            + "\n".join(done.last_lines)
        )

    def _run(
        self, side: Side, seed: int, results: Path, selected: Sequence[str] | None
    ) -> Finished:
        return session.run(
            [
                *("-p", SELECTOR, *self._arguments, *side.arguments),
                *("--fw-launches", "1", "--fw-seed", str(seed), *_ONE_LAUNCH),
            ],
            folder=side.folder,
            results=results,
            variables=variables_of(side, self._environments),
            selected=selected,
            watching=self._watching,
        )


def _ending(done: Finished) -> str:
    if done.status < 0:
        return f"by {signal.Signals(-done.status).name}"
    return f"pytest's exit status is {done.status}"
