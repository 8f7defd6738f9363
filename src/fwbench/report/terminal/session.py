"""What a session ran on, in a line, and who was fastest, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fwbench.records.facts import CaseFacts
from fwbench.records.units import count
from fwbench.report.ranking import times
from fwbench.report.ranking.answer import Answer, answers
from fwbench.report.ranking.condition import is_contended
from fwbench.report.ranking.contests import Contest, Timed, contests

Cases = Sequence[CaseFacts]

_FASTEST = "Fastest here"


def headline(cases: Cases) -> str:
    """Machine, threads and versions: ``AMD EPYC 7B13, 2 threads: numpy 1.26.4, torch 2.13.0``.

    Args:
        cases: all that were measured.
    """
    models = _devices(cases)
    threads = sorted({facts.threads for facts in cases if facts.threads is not None})
    named = [count(threads[0], "thread")] if len(threads) == 1 else []
    versions = _versions(cases, with_threads=len(threads) > 1)
    return f"{', '.join([*models, *named])}: {', '.join(versions)}"


def _devices(cases: Cases) -> list[str]:
    models = {facts.device: facts.device_name or facts.device for facts in cases}
    if len(models) == 1:
        return [*models.values()]
    return [f"{model} ({device})" for device, model in sorted(models.items())]


def _versions(cases: Cases, *, with_threads: bool) -> list[str]:
    """Each framework with its version, and its threads if asked."""
    frameworks = {facts.framework: facts for facts in cases}
    return [
        " ".join(filter(None, [name, facts.framework_version]))
        + (f" ({count(facts.threads, 'thread')})" if with_threads and facts.threads else "")
        for name, facts in sorted(frameworks.items())
    ]


def answer(cases: Sequence[Timed]) -> list[str]:
    """Which framework is fastest: a line, or one for each kind of workload and device.

    Args:
        cases: all that were measured.
    """
    held = contests(cases)
    found = answers(held)
    if not found:
        return [_why_none([timed.facts for timed in cases])]
    texts = [f"{one.text}{_left_out(one, held)}" for one in found]
    if len(found) == 1:
        return [f"{times.named(_FASTEST, found[0].device)}: {texts[0]}"]
    devices = {one.device for one in found}
    kinds = [_kind(one, devices) for one in found]
    return [f"{_FASTEST}:", *(f"  {kind}: {text}" for kind, text in zip(kinds, texts, strict=True))]


def _left_out(one: Answer, held: Iterable[Contest]) -> str:
    """How many contests of the frameworks have no winner, since not two of them are ranked."""
    entered = (
        {timed.facts.framework for timed in contest.entrants}
        for contest in held
        if contest.kind == (one.kind, one.device)
    )
    number = sum(len(frameworks) > 1 for frameworks in entered) - one.contests
    return f"; {number} not ranked" if number else ""


def _kind(one: Answer, devices: set[str]) -> str:
    kind = f"{one.kind}, {one.device}" if len(devices) > 1 else one.kind
    return times.named(kind, one.device)


def _why_none(cases: Cases) -> str:
    names = sorted({facts.framework for facts in cases})
    if len(names) == 1:
        return f"only {names[0]} was measured: nothing to compare"
    contended = sum(map(is_contended, cases))
    if contended:
        return f"nothing to compare: {contended} of {count(len(cases), 'case')} contended"
    return f"nothing to compare: {', '.join(names)} share no workload and size"
