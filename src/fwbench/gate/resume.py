"""The launches of a job, saved so that another call goes on with them: ``--resume``.

A job has a folder in the project, with what it measures and a file for each launch. A comparison
saves pairs of them: what ``--benchmark-json`` wrote of either side, and the ratios of their visits.
Pairs follow each other in an order that the seed decides, so the saved ones are the first ones of
the job, whenever it was interrupted. :class:`fwbench.gate.lineup.RowJob` saves those of a row.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from fwbench import project
from fwbench.errors import StorageError, UnreadableRun, UsageError
from fwbench.gate.samples import SampleSet
from fwbench.processes import scratch
from fwbench.processes.interruption import held
from fwbench.processes.scratch import Owned
from fwbench.records.files import write_atomically
from fwbench.records.stored import from_json, parse

#: Number of jobs of a kind whose launches a project keeps.
_JOBS = 10

#: In the folder of a job: what it measures.
_SETTINGS = "job.json"

#: The files of its launches.
_LAUNCHES = "launch-*.json"

J = TypeVar("J", bound="SavedJob")

#: By case and metric: the logarithm of the contender's time over the base's, of adjacent visits.
Ratios = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class SavedPair:
    """A finished pair of launches.

    Attributes:
        sides: the base, and the contender.
        ratios: of the cases that have taken turns.
        cases: the keys of the cases that it was to measure; None for all.
    """

    sides: tuple[SampleSet, SampleSet]
    ratios: Ratios
    cases: Sequence[str] | None
    took_s: float


class SavedJob:
    """Launches that are being measured.

    Attributes:
        what: it is, in words.
        kind: the folder of such jobs in a project.
        saved: number of launches, or of pairs of them, that are saved.
        unsaved: why further ones are not; empty if all are.
    """

    what: ClassVar[str]
    kind: ClassVar[str]

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.saved = len(self.files)
        self.unsaved = ""
        self._is_over = False

    @property
    def files(self) -> list[Path]:
        """The files of its launches, in their order."""
        return sorted(self.folder.glob(_LAUNCHES))

    def write(self, values: Mapping[str, Any]) -> bool:
        """Save a launch, unless an earlier one could not be; true if it is saved."""
        if not self.unsaved:
            try:
                write_atomically(
                    self.folder / f"launch-{self.saved + 1:04}.json", json.dumps(values)
                )
                self.saved += 1
            except StorageError as error:
                self.unsaved = str(error)
        return not self.unsaved

    def remarks(self) -> list[str]:
        """A line for the terminal, since it names a path, if launches are not saved."""
        kept = "what was measured from then on counts, but is not kept for --resume"
        return [f"{self.unsaved}; {kept}: make room on that disk"] if self.unsaved else []

    def finish(self) -> None:
        """Mark the job as over: its launches are not needed any more."""
        self._is_over = True

    def close(self) -> None:
        """Remove what is saved if the job is over, or if it is nothing."""
        if self._is_over or not self.saved:
            with held():
                scratch.remove(self.folder)


class ComparisonJob(SavedJob):
    """A comparison that is being measured."""

    what = "interrupted comparison"
    kind = "ab"

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self._unsaved: list[SavedPair] = []
        self.earlier = self.pairs()

    def pairs(self) -> list[SavedPair]:
        """The pairs that have finished so far, in their order."""
        return [*(_pair(parse(file), file) for file in self.files), *self._unsaved]

    def save(
        self,
        sides: Sequence[Mapping[str, Any]],
        ratios: Ratios,
        cases: Collection[str] | None,
        took_s: float,
    ) -> SavedPair:
        """Save a pair that has finished.

        Args:
            sides: the JSON of the base, and of the contender.
        """
        job_facts = {"cases": None if cases is None else [*cases], "took_s": took_s}
        values = {"sides": sides, "ratios": ratios, **job_facts}
        pair = _pair(values, self.folder)
        self._unsaved += [] if self.write(values) else [pair]
        return pair


def _pair(values: Any, file: Path) -> SavedPair:
    """A pair from the contents of its file."""
    match values:
        case {
            "sides": [base, contender],
            "ratios": dict() as ratios,
            "cases": None | [*_] as cases,
            "took_s": float() | int() as took_s,
        } if 0 <= took_s < math.inf and _are_names(cases or ()) and _are_ratios(ratios):
            sides = (
                SampleSet.of_stored(from_json(file.name, side, str(file)))
                for side in (base, contender)
            )
            return SavedPair((next(sides), next(sides)), ratios, cases, took_s)
    raise UnreadableRun(
        f"{file} is not a pair of launches of fwbench ab; start the comparison again, without "
        "--resume"
    )


def _are_names(values: Collection[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_ratios(ratios: Mapping[str, Any]) -> bool:
    return all(
        isinstance(of_case, dict)
        and all(
            isinstance(ratio, float | int) and math.isfinite(ratio) for ratio in of_case.values()
        )
        for of_case in ratios.values()
    )


@contextmanager
def job(root: Path, settings: Mapping[str, Any], kind: type[J], *, resume: bool) -> Iterator[J]:
    """A job to be measured; its launches stay if it is left before it is finished.

    Args:
        settings: all that it measures, in JSON's own types; a seed of None is any.
    """
    folder = project.own_folder(root, kind.kind)
    with ExitStack() as stack:
        if resume:
            made = _resumed(folder, settings, kind.what, stack)
        else:
            made = _new(folder, settings, stack)
        begun = kind(made, _settings(made)["seed"])
        stack.callback(begun.close)
        yield begun


def _new(folder: Path, settings: Mapping[str, Any], stack: ExitStack) -> Path:
    try:
        project.make_own_folder(folder)
        for number, (old, owner) in enumerate(_left(folder), 1):
            with owner:
                if number >= _JOBS or not (old / _SETTINGS).is_file():
                    scratch.remove(old)
        made = Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=folder))
        with ExitStack() as undone:
            undone.callback(scratch.remove, made)
            mine = scratch.take(made)
            if mine is not None:
                stack.enter_context(mine)
            write_atomically(made / _SETTINGS, json.dumps(settings, indent=2) + "\n")
            undone.pop_all()
    except OSError as error:
        raise StorageError(f"cannot write under {folder}: {error.strerror}") from error
    return made


def _resumed(folder: Path, settings: Mapping[str, Any], what: str, stack: ExitStack) -> Path:
    different = ""
    for made, owner in _left(folder):
        if not any(made.glob(_LAUNCHES)):  # killed before its first one was over
            with owner:
                scratch.remove(made)
            continue
        differences = _differences(_settings(made), settings)
        if not differences:
            stack.enter_context(owner)
            return made
        owner.release()
        different = different or f"{made} differs in\n  " + "\n  ".join(differences)
    if not different:
        raise UsageError(f"--resume: no {what} is kept under {folder}; run this without --resume")
    raise UsageError(
        f"--resume: no {what} is like this one; the newest, {different}\n"
        "run it as it was, or run this one without --resume"
    )


def _left(folder: Path) -> Iterator[tuple[Path, Owned]]:
    """The jobs without a running process, the newest first, each locked for the caller."""
    for made in sorted(folder.glob("*"), reverse=True):
        if (owner := scratch.take(made)) is not None:
            yield made, owner


def _settings(made: Path) -> dict[str, Any]:
    """Settings of a saved job; empty if they cannot be read."""
    with suppress(UnreadableRun):
        kept = parse(made / _SETTINGS)
        if isinstance(kept, dict):
            return kept
    return {}


def _differences(kept: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """In what a kept job is another one: a setting, there and here."""
    there, here = _flat(kept), _flat(settings)
    if here["seed"] is None and isinstance(there.get("seed"), int):
        here["seed"] = there["seed"]
    return [
        f"{name}: {there.get(name)} -> {here.get(name)}"
        for name in dict.fromkeys([*here, *there])
        if there.get(name) != here.get(name)
    ]


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those within others by both names."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": setting for inner, setting in value.items()})
        else:
            flat[name] = value
    return flat
