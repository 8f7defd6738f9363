"""A launch of a side: a pytest session in a process of its own, and what it has written."""

import json
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from fwbench.errors import ComparisonError, UnreadableRun
from fwbench.gate.patience import PairCutShort, Patience
from fwbench.gate.resume import J
from fwbench.gate.sides import Side, variables_of
from fwbench.machine import spinning_variables
from fwbench.processes import addresses, session
from fwbench.processes.session import CHECKOUT_VARIABLE, EXAMINED_VARIABLE, SELECTOR
from fwbench.records.session_facts import NOT_REACHED, LaunchTimes
from fwbench.records.stored import parse
from fwbench.records.units import count, duration
from fwbench.terms.names import without_environment
from fwbench.workers.environments import Environments

#: Settings of a project's own sessions that a launch is measured without: it is a single one, and
#: the comparison judges and explains it.
_ONE_LAUNCH = (
    *("-o", "fw_race=false", "-o", "fw_budget=", "-o", "fw_gate="),
    *("-o", "fw_resume=false"),
    *("-o", "fw_profile=false"),  # of what is timed nothing is profiled
)

#: Undoes -x and --maxfail of the project's own sessions: behind a test that fails since both sides
#: have it, others are to be measured. Those of the command line come later, and count.
_ALL_TESTS = ("--maxfail=0",)

#: Variables of a launch of what another launch has examined.
EXAMINED = {EXAMINED_VARIABLE: "1"}


@dataclass(eq=False)
class SideLauncher(Generic[J]):
    """Launches sides, and remembers which of their tests cannot take turns.

    Attributes:
        arguments: of pytest.
        job: saves the launches.
        say: takes a line for the user.
        apart: why tests cannot take turns, by key.
    """

    sides: Sequence[Side]
    arguments: Sequence[str]
    environments: Environments
    job: J
    say: Callable[[str], object]
    watching: session.Watching = nullcontext
    apart: dict[str, str] = field(default_factory=dict, init=False)
    _origins: dict[int, Mapping[str, Any]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.patience = Patience(self.say)

    def _set_apart(self, key: str, reason: str) -> None:
        if key not in self.apart:
            self.apart[key] = reason
            self.say(f"{key} cannot take turns: {reason}; it is measured by one side at a time")

    def _start(
        self, side: int, seed: int, results: Path, variables: Mapping[str, str], **known: Any
    ) -> AbstractContextManager[session.ChildSession]:
        """A launch of a side; see :func:`start`."""
        return start(
            self.sides[side],
            self.arguments,
            self.environments,
            seed,
            results,
            {**variables, **(EXAMINED if side in self._origins else {})},
            origin=self._origins.get(side),
            **known,
        )


@contextmanager
def start(
    side: Side,
    arguments: Sequence[str],
    environments: Environments,
    seed: int,
    results: Path,
    variables: Mapping[str, str],
    **known: Any,
) -> Iterator[session.ChildSession]:
    """A launch of a side: a single one, which nobody but the comparison judges.

    Args:
        arguments: of pytest.
        variables: of this launch, beside those of its side.
        known: further arguments of :func:`fwbench.processes.session.started`.

    Raises:
        ComparisonError: it has imported modules from somewhere else than its checkout.
    """
    side.check()
    outside = results.with_suffix(".outside")
    checkout = [*map(str, (*side.checkout_of, outside))] if side.checkout_of else []
    with session.started(
        [
            *("-p", SELECTOR, *_ALL_TESTS, *arguments, *side.arguments),
            *("--fw-launches", "1", "--fw-seed", str(seed), *_ONE_LAUNCH),
        ],
        folder=side.folder,
        results=results,
        variables={
            **spinning_variables(),
            **variables_of(side, environments),
            "PYTHONHASHSEED": str(seed),  # collisions are alike in all launches of a pair
            **addresses.drawn(seed),
            CHECKOUT_VARIABLE: json.dumps(checkout),
            **variables,
        },
        interpreter=side.interpreter,
        **known,
    ) as child:
        yield child
    if outside.is_file():
        raise _of_working_tree(side, parsed(side, outside))


def key_of(entry: Mapping[str, Any]) -> str:
    """The key of a test that a launch has measured."""
    facts = (entry.get("extra_info") or {}).get("fwbench", {})
    return without_environment(entry["fullname"], facts.get("framework", ""))


#: Why a test that a launch had come behind has no figures.
_NO_RECORD = "it failed or was skipped, or there was no room for its record"


def measured_by_then(
    results: Path, left: Sequence[str], why: str = NOT_REACHED, every: Iterable[str] = ()
) -> dict[str, Any]:
    """The run of a launch that was ended, with what it had measured by then.

    Args:
        left: the keys of the tests that it had not finished, in their order.
        why: the first of them has no figures.
        every: all that it was to measure.
    """
    records = session.records_beside(results)
    # Text after the last line break was cut off while it was written.
    lines = records.read_text(encoding="utf-8").split("\n")[:-1] if records.is_file() else ()
    # A launch that was repeated has some twice.
    entries = {key_of(entry): entry for entry in map(json.loads, lines)}
    reasons = dict.fromkeys(every, _NO_RECORD) | dict.fromkeys(left, NOT_REACHED)
    reasons |= dict.fromkeys(left[:1], why)
    missing = [
        {"nodeid": key, "framework": "", "why": text}
        for key, text in reasons.items()
        if key not in entries
    ]
    return {"benchmarks": [*entries.values()], "fwbench": {"missing": missing}}


def _of_working_tree(side: Side, files: Mapping[str, str]) -> ComparisonError:
    """The error for a launch that has not measured its own checkout.

    Args:
        files: those of the working tree that it has imported, by their modules.
    """
    name, file = next(iter(files.items()))
    others = f" and {count(len(files) - 1, 'other module')}" if len(files) > 1 else ""
    return ComparisonError(
        f"a launch of {side.name} imported {name}{others} from the working tree ({file}), not from "
        "its own checkout, so all sides may run the same code: let --build install each of them, "
        "or remove what leads there (an editable install, by pip uninstall; an absolute path)"
    )


def parsed(side: Side, results: Path) -> Any:
    """The run that a launch has written.

    Raises:
        PairCutShort: it is not whole.
    """
    try:
        return parse(results)
    except UnreadableRun as error:
        raise PairCutShort(
            f"a launch of {side.name} has not written all of its results: look for room in "
            f"{tempfile.gettempdir()}, or name a folder on another disk by TMPDIR",
            key="",
        ) from error


#: Sides take equally long if they differ by no more than this, or by this share.
_ALIKE_S, _ALIKE = 0.1, 0.25


_OWN_ADDRESSES = (
    "each launch has addresses of its own, since this system does not let fwbench choose them (in "
    "Docker, --security-opt seccomp=unconfined does): pairs differ by more"
)


def notes_on_launches(took_s: Sequence[Sequence[Mapping[str, float]]]) -> list[str]:
    """Notes on addresses, and on what launches take, by side; none if nothing is known of it."""
    every = [launches for launches in took_s if launches]
    if not every:
        return []
    start, collection, fixtures, calls = (_usual(every, part) for part in LaunchTimes.declared())
    took = (
        f"a launch takes {start} to start, {collection} to import its tests, {fixtures} in "
        f"fixtures, and {calls} to measure by turns (medians, of base and contender where "
        "they differ)"
    )
    apart = (
        "ratios are those of calls by turns; base and contender are medians over launches, "
        "which are further apart"
    )
    return [took, apart, *[_OWN_ADDRESSES] * (not addresses.can_be_given())]


def _usual(sides: Sequence[Sequence[Mapping[str, float]]], part: str) -> str:
    """The median duration on all sides; that of each, the base's first, if they differ."""
    sides_s = [statistics.median(took_s.get(part, 0.0) for took_s in side) for side in sides]
    if max(sides_s) - min(sides_s) <= max(_ALIKE_S, _ALIKE * max(sides_s)):
        return duration(statistics.mean(sides_s))
    return " and ".join(map(duration, sides_s))
