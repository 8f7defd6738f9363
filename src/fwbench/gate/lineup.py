"""A lineup: versions that are alive together, and measured by turns in each launch."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fwbench.errors import UnreadableRun
from fwbench.gate.ab import ERROR, STALLED, are_known, ending, nodeids_in
from fwbench.gate.launches import SideLauncher, parsed
from fwbench.gate.resume import SavedJob
from fwbench.gate.samples import SampleSet
from fwbench.gate.sequential import Floats
from fwbench.gate.sides import Side
from fwbench.measure.resources import processors_s
from fwbench.processes import scratch, session
from fwbench.processes.command import Finished
from fwbench.processes.session import ChildSession
from fwbench.records.measurement import Measurement
from fwbench.records.session_facts import FAILED
from fwbench.records.stored import from_json, parse
from fwbench.turns.contest import CaseVisits, Effort
from fwbench.turns.referee import Referee

#: pytest's exit statuses of sessions whose output has the reason: errors of collection, and
#: arguments that it refuses.
_SAID = (2, 4)


@dataclass
class LineupLaunch:
    """Visits that a launch has brought.

    Attributes:
        logs: by case and place, the logarithms of visits in seconds.
        missing: by case and place, why there are none.
        lost: by place, why a session brought nothing at all.
        died: the places of those that a signal or a crash has ended.
        lacked_memory: whether one of them seems to have done so for lack of memory.
        sessions: number of sessions that it took.
    """

    logs: dict[str, dict[int, Floats]] = field(default_factory=lambda: defaultdict(dict))
    missing: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    lost: dict[int, str] = field(default_factory=dict)
    died: set[int] = field(default_factory=set)
    lacked_memory: bool = False
    sessions: int = 0


@dataclass(frozen=True)
class SavedLaunch:
    """A launch of an earlier call.

    Attributes:
        states: of its versions, by name; see :meth:`fwbench.gate.sides.Side.state`.
        logs: by case and version.
        nodeids: by case.
        apart: why cases cannot take turns, as far as that was known by then.
    """

    states: Mapping[str, Any]
    logs: Mapping[str, Mapping[str, Floats]]
    nodeids: Mapping[str, str]
    apart: Mapping[str, str]


class RowJob(SavedJob):
    """A row of versions that is being measured.

    Its launches stay when it is over: they are good for any row with the same versions.
    """

    what = "row of versions"
    kind = "since"

    def save(
        self,
        launch: LineupLaunch,
        sides: Mapping[int, Side],
        nodeids: Mapping[str, str],
        apart: Mapping[str, str],
    ) -> None:
        """Save a launch.

        Args:
            sides: that were launched, by place.
            nodeids: of the cases.
            apart: why cases cannot take turns.
        """
        names = {place: side.name for place, side in sides.items()}
        logs = {
            case: {names[place]: visits.tolist() for place, visits in of_case.items()}
            for case, of_case in launch.logs.items()
        }
        states = {side.name: side.state() for side in sides.values()}
        of_cases = {"nodeids": dict(nodeids), "apart": dict(apart)}
        self.write({"sides": states, "logs": logs, **of_cases})

    def earlier(self) -> list[SavedLaunch]:
        """The launches of earlier calls.

        Raises:
            UnreadableRun: a file is damaged.
        """
        return [*map(_saved, self.files)]


class Lineup(SideLauncher[RowJob]):
    """Launches several versions at once, and one after the other what cannot take turns.

    Attributes:
        nodeids: of the cases.
        samples: by place and case, of the last launch of this call that has measured it.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tried_alone: set[tuple[int, str]] = set()  # in a version, after they had failed
        self.nodeids: dict[str, str] = {}
        self.samples: dict[int, dict[str, Measurement]] = defaultdict(dict)
        self._sessions = 0

    def earlier(self, make_ready: Callable[[int], bool]) -> list[LineupLaunch]:
        """The launches of earlier calls, as far as their versions are in this row and unchanged.

        Args:
            make_ready: makes the version at a place ready; false where that is impossible.
        """
        saved = self.job.earlier()
        named = {name for launch in saved for name in launch.states}
        places = {
            side.name: place
            for place, side in enumerate(self.sides)
            if side.name in named and make_ready(place)
        }
        now = {name: _in_json(self.sides[place].state()) for name, place in places.items()}
        launches = []
        for launch in saved:
            same = {name for name in now if launch.states.get(name) == now[name]}
            again = LineupLaunch()
            for case, visits in launch.logs.items():
                again.logs[case] = {places[name]: visits[name] for name in same & visits.keys()}
            if any(len(of_case) > 1 for of_case in again.logs.values()):
                launches.append(again)
                self.nodeids |= launch.nodeids
                self.apart |= launch.apart
        return launches

    def launch(self, places: Sequence[int], cases: Sequence[str] | None, seed: int) -> LineupLaunch:
        """Measure cases in the versions at some places; all that the arguments select if None."""
        brought, before = LineupLaunch(), self._sessions
        runs: dict[int, SampleSet] = {}
        apart = [case for case in cases or () if case in self.apart]
        if cases is None or len(apart) < len(cases):
            in_turns = cases and [case for case in cases if case not in self.apart]
            runs = self._taking_turns(places, in_turns, seed, brought)
            apart += self._failed_beside_others(runs, seed)
        if apart:
            there = [place for place in places if place not in brought.lost]
            shuffled = random.Random(seed).sample(there, len(there))  # noqa: S311 (no secret)
            alone = {place: self._alone(place, apart, seed) for place in shuffled}
            self._note(brought, alone, apart)
            runs = {**alone, **runs}
        brought.sessions = self._sessions - before
        if brought.logs:
            ran = {place: self.sides[place] for place in runs}
            nodeids = {case: self.nodeids[case] for case in brought.logs}
            self.job.save(brought, ran, nodeids, self.apart)
        return brought

    def _taking_turns(
        self, places: Sequence[int], cases: Sequence[str] | None, seed: int, brought: LineupLaunch
    ) -> dict[int, SampleSet]:
        """Measure cases in sessions that are alive together, and note what they bring."""
        with scratch.folder() as folder:
            files = {place: folder / f"{place}.json" for place in places}
            referee = Referee(
                folder,
                len(places),
                Effort(lambda _, contest: are_known(contest, ERROR)),
                seed,
                used_s=lambda seat: processors_s(children[seat].program.process.pid),
                tell=partial(self.patience.tell, [self.sides[place].name for place in places]),
            )
            with ExitStack() as running:
                children: dict[int, ChildSession] = {
                    seat: running.enter_context(
                        self._begun(places[seat], cases, seed, files, referee.variables(seat))
                    )
                    for seat in random.Random(seed).sample(range(len(places)), len(places))  # noqa: S311
                }
                referee.serve([children[seat] for seat in range(len(places))])
            runs = {}
            for seat, place in enumerate(places):
                done = children[seat].done
                if files[place].is_file() and done.status in session.RAN:
                    runs[place] = self._run(place, parsed(self.sides[place], files[place]))
                else:
                    brought.lost[place] = _why_lost(done, referee.ended_at(seat))
                    if session.has_died(done):
                        brought.died.add(place)
                        brought.lacked_memory |= session.lacked_memory(done)
                        how = ending(done, referee.ended_at(seat))
                        self.say(f"a session of {self.sides[place].name} has died ({how})")
        for key in sorted(referee.stalled):
            self._set_apart(key, STALLED)
        every = {key: None for run in runs.values() for key in (*run.samples, *run.unmeasured)}
        self._note(brought, runs, every, places, referee.contests)
        return runs

    def _failed_beside_others(self, runs: Mapping[int, SampleSet], seed: int) -> list[str]:
        """The cases that fail in a version while others have them, too, and not alone.

        Those that fail in every version are not tried: there is nothing to compare.
        """
        failed = {
            place: {key for key, why in run.unmeasured.items() if why in FAILED}
            for place, run in runs.items()
        }
        everywhere = set.intersection(*failed.values()) if failed else set()
        found: dict[str, None] = {}
        for place, keys in failed.items():
            tried = {(place, key) for key in keys - everywhere} - self._tried_alone
            self._tried_alone |= tried
            if tried:
                alone = self._alone(place, sorted(key for _, key in tried), seed)
                for key in (key for _, key in sorted(tried) if key in alone.samples):
                    found[key] = None
                    why = runs[place].unmeasured[key]
                    self._set_apart(key, f"{why} while other versions had it, and not alone")
        return [*found]

    def _alone(self, place: int, cases: Sequence[str], seed: int) -> SampleSet:
        """Measure cases in a version while no other one is alive."""
        with scratch.folder() as folder:
            files = {place: folder / f"{place}.json"}
            with self._begun(place, cases, seed, files, {}) as child:
                records = session.records_beside(files[place])
                self.patience.wait(self.sides[place].name, child, records)
            if files[place].is_file() and child.done.status in session.RAN:
                return self._run(place, parsed(self.sides[place], files[place]))
        lost = dict.fromkeys(cases, _why_lost(child.done))
        return SampleSet(self.sides[place].name, {}, lost)

    def _begun(
        self,
        place: int,
        cases: Sequence[str] | None,
        seed: int,
        files: Mapping[int, Path],
        variables: Mapping[str, str],
    ) -> Any:
        self._sessions += 1
        selected = [self.nodeids[case] for case in cases or ()]
        watching = self.watching if place == min(files) else nullcontext
        selects = {"selected": selected or None, "watching": watching}
        return self._start(place, seed, files[place], variables, **selects)

    def _run(self, place: int, output: dict[str, Any]) -> SampleSet:
        run = SampleSet.of_stored(from_json(str(place), output))
        self.nodeids |= nodeids_in(output)
        self.samples[place] |= run.samples
        self._origins[place] = session.origin_of(output)
        return run

    def _note(
        self,
        brought: LineupLaunch,
        runs: Mapping[int, SampleSet],
        cases: Iterable[str],
        places: Sequence[int] = (),
        contests: Mapping[str, CaseVisits] = MappingProxyType({}),
    ) -> None:
        """Note the visits of each case, or its median where it has taken no turns; or why not.

        Args:
            places: of those that took turns, by their numbers in the contests.
        """
        for key in cases:
            brought.logs.pop(key, None)
            brought.missing.pop(key, None)
            contest = contests.get(key)
            medians: dict[int, Floats] = {}
            if contest is not None and contest.visits_s:
                seats = (places[seat] for seat in contest.sides)
                medians = dict(zip(seats, contest.medians_s(), strict=True))
            for place, run in runs.items():
                sample = run.samples.get(key)
                if sample is None:
                    brought.missing[key][place] = run.unmeasured.get(key, "it is not there")
                else:
                    visits_s = medians.get(place, np.array([sample.median_s]))
                    brought.logs[key][place] = np.log(visits_s)


def _why_lost(done: Finished, at: str = "") -> str:
    """The reason why a session has no results, and the case at which it ended."""
    if done.status in session.RAN:
        return f"its session measured nothing ({ending(done)})"
    is_said = done.status in _SAID or session.has_found_nothing(done)
    if session.has_died(done) or not is_said:
        return f"its session broke down ({ending(done, at)})"
    errors = (line[1:].strip() for line in reversed(done.last_lines) if line.startswith("E  "))
    return next(errors, session.last_words(done))


def _in_json(values: Any) -> Any:
    return json.loads(json.dumps(values))


def _saved(file: Path) -> SavedLaunch:
    with suppress(AttributeError, TypeError, ValueError):
        match parse(file):
            case {
                "sides": dict() as states,
                "logs": dict() as logs,
                "nodeids": dict() as nodeids,
                "apart": dict() as apart,
            }:
                visits = {case: _visits(of_case) for case, of_case in logs.items()}
                return SavedLaunch(states, visits, nodeids, apart)
    raise UnreadableRun(
        f"{file} is not a launch of fwbench since; measure the row again, without --resume"
    )


def _visits(of_case: Mapping[str, Any]) -> dict[str, Floats]:
    """Logarithms of visits by name; ValueError if they are none, or not as many of each."""
    visits = {name: np.asarray(logs, dtype=np.float64) for name, logs in of_case.items()}
    np.broadcast(*visits.values())  # one stands for all where a case has taken no turns
    if not all(each.ndim == 1 and np.isfinite(each).all() for each in visits.values()):
        raise ValueError
    return visits
