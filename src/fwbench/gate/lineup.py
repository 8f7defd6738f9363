"""A lineup: versions that are alive together, and measured by turns in each launch."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fwbench.gate.ab import ERROR, EXAMINED, are_known, start
from fwbench.gate.samples import SampleSet
from fwbench.gate.sequential import Floats
from fwbench.gate.sides import Side
from fwbench.processes import scratch, session
from fwbench.processes.session import ChildSession
from fwbench.records.stored import from_json, parse
from fwbench.turns.contest import CaseVisits, Effort
from fwbench.turns.referee import Referee
from fwbench.workers.environments import Environments


@dataclass
class LineupLaunch:
    """Visits that a launch has brought.

    Attributes:
        logs: by case and place, the logarithms of visits in seconds.
        missing: by case and place, why there are none.
        lost: by place, the last words of a session that brought nothing at all.
    """

    logs: dict[str, dict[int, Floats]] = field(default_factory=lambda: defaultdict(dict))
    missing: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    lost: dict[int, str] = field(default_factory=dict)


class Lineup:
    """Launches several versions at once.

    Args:
        sides: the versions, each at its place.
        arguments: of pytest.
    """

    def __init__(
        self,
        sides: Sequence[Side],
        arguments: Sequence[str],
        environments: Environments,
        watching: session.Watching = nullcontext,
    ) -> None:
        self._sides = sides
        self._arguments = arguments
        self._environments = environments
        self._watching = watching
        self._nodeids: dict[int, dict[str, str]] = {}
        self._machines: dict[int, Mapping[str, Any]] = {}

    def launch(self, places: Sequence[int], cases: Sequence[str] | None, seed: int) -> LineupLaunch:
        """Measure cases in the versions at some places; all that the arguments select if None."""
        with scratch.folder() as folder:
            files = {place: folder / f"{place}.json" for place in places}
            referee = Referee(
                folder, len(places), Effort(lambda _, contest: are_known(contest, ERROR)), seed
            )
            with ExitStack() as running:
                children: dict[int, ChildSession] = {
                    seat: running.enter_context(
                        self._begun(places[seat], cases, seed, files, referee.variables(seat))
                    )
                    for seat in random.Random(seed).sample(range(len(places)), len(places))  # noqa: S311
                }
                referee.serve([children[seat] for seat in range(len(places))])
            brought = LineupLaunch()
            runs = {}
            for seat, place in enumerate(places):
                done = children[seat].done
                if files[place].is_file() and done.status in session.RAN:
                    runs[place] = self._run(place, parse(files[place]))
                else:
                    brought.lost[place] = _last_words(done.last_lines)
        self._note(brought, runs, places, referee.contests)
        return brought

    def _begun(
        self,
        place: int,
        cases: Sequence[str] | None,
        seed: int,
        files: Mapping[int, Path],
        variables: Mapping[str, str],
    ) -> Any:
        known = self._nodeids.get(place, {})
        selected = [known[case] for case in cases or () if case in known]
        return start(
            self._sides[place],
            self._arguments,
            self._environments,
            seed,
            files[place],
            {**variables, **(EXAMINED if known else {})},
            selected=selected or None,  # a version that is new has not told its node ids
            machine=self._machines.get(place),
            watching=self._watching if place == min(files) else nullcontext,
        )

    def _run(self, place: int, output: dict[str, Any]) -> SampleSet:
        run = SampleSet.of_stored(from_json(str(place), output))
        nodeids = {key: sample.nodeid for key, sample in run.samples.items()}
        self._nodeids[place] = nodeids | self._nodeids.get(place, {})
        self._machines[place] = output["machine_info"]
        return run

    def _note(
        self,
        brought: LineupLaunch,
        runs: Mapping[int, SampleSet],
        places: Sequence[int],
        contests: Mapping[str, CaseVisits],
    ) -> None:
        """Note the visits of each case, or its median where it has taken no turns; or why not."""
        for key in {key: None for run in runs.values() for key in (*run.samples, *run.unmeasured)}:
            contest = contests.get(key)
            medians: dict[int, Floats] = {}
            if contest is not None and contest.visits_s:
                medians = dict(zip(contest.sides, contest.medians_s(), strict=True))
            for place, run in runs.items():
                sample = run.samples.get(key)
                if sample is None:
                    brought.missing[key][place] = run.unmeasured.get(key, "it is not there")
                else:
                    visits_s = medians.get(places.index(place), np.array([sample.median_s]))
                    brought.logs[key][place] = np.log(visits_s)


def _last_words(lines: Sequence[str]) -> str:
    """The last line of a session's output that says something."""
    return next((line.strip("= ") for line in reversed(lines) if line.strip("= ")), "it ended")
