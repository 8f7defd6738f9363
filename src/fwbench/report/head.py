"""Head of a report: machine, date, versions, and the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fwbench.records.session_facts import MachineFacts, SessionFacts
from fwbench.records.units import count
from fwbench.report.model import Run, frameworks, labels
from fwbench.report.ranking.means import Answer, answers

#: How dates begin in ISO 8601, to the minute.
_MINUTE = 16


@dataclass(frozen=True)
class FastestShare:
    """A part of the contests of an answer.

    Attributes:
        name: of the framework that is fastest in them.
        contests: how many they are.
        colour: of the framework; empty for those that are too close to call.
    """

    name: str
    contests: int
    colour: str


@dataclass(frozen=True)
class HeadVerdict:
    """An answer in words, and its parts for a bar.

    Attributes:
        title: what it is about.
        text: the answer.
        shares: of the frameworks, the one with most contests first.
    """

    title: str
    text: str
    shares: Sequence[FastestShare]


@dataclass(frozen=True)
class Head:
    """Head of one run.

    Attributes:
        title: of the run; empty where it is the only one.
        facts: date, machine, versions and the like, by their names.
        verdicts: an answer for each kind of workload and each device.
    """

    title: str
    facts: Mapping[str, str]
    verdicts: Sequence[HeadVerdict]


def title(runs: Sequence[Run]) -> str:
    """Title of the report: its frameworks and its machine."""
    names = frameworks(runs)
    machines = list(dict.fromkeys(run.cpu for run in runs if run.cpu))
    if not names:
        return "fwbench report"
    where = f" on {machines[0]}" if len(machines) == 1 else ""
    return _listed(names) + where


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def heads(runs: Sequence[Run], colours: Mapping[str, str]) -> list[Head]:
    """Head of each run that has cases.

    Args:
        runs: in the order in which they are shown.
    """
    return [
        Head(
            name if len(runs) > 1 else "",
            {what: text for what, text in _facts(run) if text},
            [_verdict(answer, run, colours) for answer in answers(run.contests)],
        )
        for run, name in zip(runs, labels(runs), strict=True)
        if run.records
    ]


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Names and texts; a text is empty where nothing is known."""
    machine = run.session.machine or MachineFacts()
    # pytest-benchmark stores times in UTC.
    yield "measured", f"{run.when[:_MINUTE].replace('T', ' ')} UTC" if run.when else ""
    yield "machine", ", ".join(_machine(run, machine))
    yield "threads", str(run.session.threads or "")
    versions = (run.session.frameworks or {}).items()
    yield "versions", ", ".join(f"{name} {each.version}" for name, each in versions)
    number = launches(run.session)
    yield "launches", f"{number}, shuffled" if number else ""
    yield "cases", run.incompleteness or f"{len(run.records):,}"


def launches(session: SessionFacts) -> str:
    """Launches of each case: ``5``, or with a budget ``1 to 14 a case``."""
    if session.launches is None:
        return ""
    least = session.launches.launches
    most = session.budget.launches if session.budget else least
    return f"{least} to {most} a case" if least < most else str(most)


def _machine(run: Run, machine: MachineFacts) -> Iterator[str]:
    if run.cpu:
        yield run.cpu
    if machine.usable_cpus:
        yield f"{count(machine.usable_cpus, 'CPU')} used"
    devices = {record.facts.device: record.facts.device_name for record in run.records
               if record.facts}  # fmt: skip
    yield from (name for device, name in sorted(devices.items()) if device != "cpu" and name)
    if machine.os:
        yield machine.os


def _verdict(answer: Answer, run: Run, colours: Mapping[str, str]) -> HeadVerdict:
    devices = {record.facts.device for record in run.records if record.facts}
    where = f" on {answer.device}" if len(devices) > 1 else ""
    shares = [FastestShare(name, number, colours[name]) for name, number in answer.fastest.items()]
    if answer.too_close:
        shares.append(FastestShare("too close to call", answer.too_close, ""))
    return HeadVerdict(f"Fastest ({answer.kind}{where})", answer.text, shares)
