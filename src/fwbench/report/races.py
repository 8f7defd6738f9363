"""Races and budgets in words: who is the fastest, what is open, and what that would take."""

from collections import Counter
from collections.abc import Iterable, Iterator

from fwbench.errors import some
from fwbench.records.session_facts import StoredBudget, StoredContestant, StoredGroup, StoredRace
from fwbench.records.units import count, duration, time, times
from fwbench.report.terminal.text import plain_lines

#: Groups that a terminal shows; of more, those without a fastest contestant, and not all of them.
_SHOWN_GROUPS = 12

#: Cases that are named, at most.
_NAMED = 5

#: From the one that a reader must know of first.
_VERDICTS = ("undecided", "tie", "fastest")

#: From this difference on, a factor is easier to read than per cent.
_FACTOR = 1.0

#: Quotients of two times with three digits are off by as much.
_ROUNDED = 0.01


def race_lines(race: StoredRace, width: int, *, every: bool = False) -> list[str]:
    """A race for a terminal: who is fastest how often, then the groups."""
    ordered = sorted(race.groups, key=lambda group: _VERDICTS.index(group.verdict))
    if not every and len(ordered) > _SHOWN_GROUPS:
        ordered = [group for group in ordered if group.verdict != "fastest"][:_SHOWN_GROUPS]
    texts = [headline(race), *_winners(race)]
    texts += [f"{group.title}: {verdict(group)}" for group in ordered]
    if len(ordered) < len(race.groups):
        texts.append(f"{count(len(race.groups) - len(ordered), 'more group')}: -v shows all")
    texts += paired(ordered)
    return plain_lines(texts, width)


def race_answer(race: StoredRace | None) -> str:
    """The winners of a race: ``torch eager for 3 of 6, numpy eager for 1; 1 tie; 1 undecided``.

    Returns:
        The answer of the session, in place of that by medians; empty where the race has decided
        nothing, or there was none.
    """
    counts = Counter(group.verdict for group in race.groups) if race else Counter[str]()
    if race is None or counts["undecided"] == len(race.groups):
        return ""
    first, *others = [f"{name} for {n}" for name, n in race_winners(race).items()] or ["0"]
    parts = [", ".join([f"{first} of {len(race.groups)}", *others])]
    parts += [f"{counts[name]} {name}" for name in ("tie", "undecided") if counts[name]]
    return "; ".join(parts)


def race_winners(race: StoredRace) -> dict[str, int]:
    """Numbers of groups by the contestant that is the fastest of them, the largest first."""
    firsts = Counter(g.contestants[0].name for g in race.groups if g.verdict == "fastest")
    return dict(firsts.most_common())


def paired(groups: Iterable[StoredGroup]) -> list[str]:
    """Say how contestants are compared; empty where the quotients of their times are the same."""
    apart = (
        abs((1 + other.behind) * leader.time_s / other.time_s - 1) > _ROUNDED
        for leader, *others in (group.contestants for group in groups)
        for other in others
        if leader.time_s and other.time_s and other.behind is not None
    )
    if not any(apart):
        return []
    note = (
        "contestants are compared launch by launch, by adjacent visits where they took turns: the "
        "difference is not that of the times shown"
    )
    return [note]


def headline(race: StoredRace) -> str:
    """Number of groups by verdict: ``4 groups: 2 fastest, 1 tie, 1 undecided``."""
    if not race.groups:
        return (
            "no contestant has a rival: those with the same work did it in different ways (a view "
            "or a copy, in fewer bits), or failed"
        )
    counts = Counter(group.verdict for group in race.groups)
    parts = ", ".join(f"{counts[name]} {name}" for name in reversed(_VERDICTS) if counts[name])
    return (
        f"{count(len(race.groups), 'group')}: {parts} "
        f"(a verdict is wrong with a probability of {race.level:.0%} at most)"
    )


def verdict(group: StoredGroup) -> str:
    """The verdict on a group, with the figures of its first contestants."""
    leader, *others = group.contestants
    if group.verdict == "fastest":
        return f"fastest: {_timed(leader)}; {'; '.join(map(_behind, others[:2]))}"
    if group.verdict == "tie":
        tied = [contestant for contestant in group.contestants if contestant.standing == "tied"]
        names = " and ".join(contestant.name for contestant in tied)
        return f"tie within {group.threshold:.0%}: {names}, {_time(leader)}"
    rivals = [_behind(other) for other in others if other.standing == "open"]
    return f"undecided: {'; '.join([_timed(leader), *rivals])}: {why_undecided(group)}"


def why_undecided(group: StoredGroup) -> str:
    """Cost of a decision, or the obstacle to it."""
    racing = [rival for rival in group.contestants if rival.standing == "open"]
    if len(racing) < 2:  # noqa: PLR2004 (a race has two contestants or more)
        lost = [f"{rival.name} {rival.why}" for rival in group.contestants if rival.why]
        return f"no rival is left: {', '.join(lost)}"
    if names := [rival.name for rival in group.contestants if rival.disturbed]:
        verb = "was" if len(names) == 1 else "were"
        return (
            f"{' and '.join(names)} {verb} contended, and may be faster on a quiet machine: "
            "race again there"
        )
    contended = max(contestant.contended for contestant in racing)
    launches = max(contestant.launches for contestant in racing)
    disturbed = (
        f"; other processes disturbed {contended} of {count(launches, 'launch', 'launches')}"
        if contended
        else ""
    )
    if group.more_than is not None:
        more = count(group.more_than, "more launch", "more launches")
        return f"more than {more}, or a quieter machine, would decide it{disturbed}"
    if group.more_launches is None or group.more_s is None:
        return f"too few launches to say how many it takes{disturbed}"
    more = count(group.more_launches, "more launch", "more launches")
    return f"about {more} ({duration(group.more_s)}) would decide it{disturbed}"


def budget_lines(budget: StoredBudget, width: int) -> list[str]:
    """A budget for a terminal: what it was spent on, and what is still uncertain."""
    return plain_lines([spent(budget), *_too_short(budget), *unsettled(budget)], width)


def spent(budget: StoredBudget) -> str:
    """Use of a budget: ``14 launches in 4 min 50 s of 5 min``."""
    launches = count(budget.launches, "launch", "launches")
    return f"{launches} in {duration(budget.took_s)} of {duration(budget.budget_s)}"


def _too_short(budget: StoredBudget) -> list[str]:
    if budget.launch_s is None or budget.took_s < budget.budget_s or budget.launches > 1:
        return []
    launch = f"one launch of {count(budget.cases, 'case')} takes {duration(budget.launch_s)}"
    return [
        (
            f"a budget of {duration(budget.budget_s)} is too short to measure anything twice: "
            f"{launch}; give more (--fw-budget), or select fewer cases (-k)"
        )
    ]


def unsettled(budget: StoredBudget) -> list[str]:
    """Number of times that are not known well enough, and the least certain; often empty."""
    if budget.resolution is None or budget.unsettled is None:
        return []
    cases = count(budget.cases, "case")
    if not budget.unsettled:
        return [f"the time of each of {cases} is known to {budget.resolution:.0%}"]
    named = [f"{case.name} ({_share(case.uncertainty)})" for case in budget.unsettled]
    unknown = f"{len(budget.unsettled)} of {cases} is not known to {budget.resolution:.0%}"
    return [f"the time of {unknown}: {some(named, _NAMED)}"]


def _share(share: float | None) -> str:
    return "a single launch" if share is None else f"{share:.0%}"


def _winners(race: StoredRace) -> Iterator[str]:
    if firsts := race_winners(race):
        yield "fastest: " + ", ".join(f"{name} in {n}" for name, n in firsts.items())


def _timed(contestant: StoredContestant) -> str:
    return f"{contestant.name} {_time(contestant)}"


def _time(contestant: StoredContestant) -> str:
    return "" if contestant.time_s is None else time(contestant.time_s)


def _behind(contestant: StoredContestant) -> str:
    """A contestant and how much longer it takes than the leader: ``numpy eager +12 %``."""
    return f"{contestant.name} {behind(contestant) or _time(contestant)}".rstrip()


def behind(contestant: StoredContestant) -> str:
    """Extra time of a contestant over the leader; the reason where that is not known."""
    share = contestant.behind
    if share is None:
        return "" if contestant.why is None else f"({contestant.why})"
    return times(1 + share) if share >= _FACTOR else f"{100 * share:+.1f} %"
