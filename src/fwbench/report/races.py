"""Races and budgets for people: what is decided, what is not, and what that would have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fwbench.records.session_facts import (
    StoredBudget,
    StoredContestant,
    StoredGroup,
    StoredRace,
)
from fwbench.records.units import count, duration, time, times
from fwbench.report.terminal.text import plain, wrapped

#: Groups that a terminal shows; of more, those without a fastest contestant, and not all of them.
_SHOWN = 12

#: Cases that are named, at most.
_NAMED = 5

#: From the one that a reader must know of first.
_VERDICTS = ("undecided", "tie", "fastest")


def lines(race: StoredRace, width: int, *, every: bool = False) -> list[str]:
    """A race for a terminal: who is fastest how often, then the groups.

    Args:
        every: whether to show all groups, however many there are.
    """
    ordered = sorted(race.groups, key=lambda group: _VERDICTS.index(group.verdict))
    if not every and len(ordered) > _SHOWN:
        ordered = [group for group in ordered if group.verdict != "fastest"][:_SHOWN]
    said = [headline(race), *_winners(race)]
    said += [f"{group.title}: {verdict(group)}" for group in ordered]
    if len(ordered) < len(race.groups):
        said.append(f"{count(len(race.groups) - len(ordered), 'more group')}: -v shows all")
    return _wrapped(said, width)


def _wrapped(texts: Iterable[str], width: int) -> list[str]:
    return [plain(line) for text in texts for line in wrapped(text, width)]


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
        tied = [each for each in group.contestants if each.standing == "tied"]
        names = " and ".join(each.name for each in tied)
        return f"tie within {group.threshold:.0%}: {names}, {_time(leader)}"
    rivals = [_behind(each) for each in others if each.standing == "open"]
    return f"undecided: {'; '.join([_timed(leader), *rivals])}: {why_undecided(group)}"


def why_undecided(group: StoredGroup) -> str:
    """Cost of a decision, or the obstacle to it."""
    racing = [each for each in group.contestants if each.standing == "open"]
    if len(racing) < 2:  # noqa: PLR2004 (a race has two contestants or more)
        lost = [f"{each.name} {each.why}" for each in group.contestants if each.why]
        return f"no rival is left: {', '.join(lost)}"
    contended = max(each.contended for each in racing)
    launches = max(each.launches for each in racing)
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
    return _wrapped([spent(budget), *_too_short(budget), *unsettled(budget)], width)


def spent(budget: StoredBudget) -> str:
    """Use of a budget: ``14 launches in 4 min 50 s of 5 min``."""
    launches = count(budget.launches, "launch", "launches")
    return f"{launches} in {duration(budget.took_s)} of {duration(budget.budget_s)}"


def _too_short(budget: StoredBudget) -> list[str]:
    if budget.launch_s is None or budget.took_s < budget.budget_s or budget.launches > 1:
        return []
    said = (
        f"a budget of {duration(budget.budget_s)} is too short to measure anything twice: one "
        f"launch of {count(budget.cases, 'case')} takes {duration(budget.launch_s)}; give more "
        "(--fw-budget), or select fewer cases (-k)"
    )
    return [said]


def unsettled(budget: StoredBudget) -> list[str]:
    """Number of times that are not known well enough, and the least certain; often empty."""
    if budget.resolution is None or budget.unsettled is None:
        return []
    cases = count(budget.cases, "case")
    if not budget.unsettled:
        return [f"the time of each of {cases} is known to {budget.resolution:.0%}"]
    named = [f"{each.name} ({_share(each.uncertainty)})" for each in budget.unsettled[:_NAMED]]
    rest = len(budget.unsettled) - len(named)
    more = [f"{rest} more"] if rest else []
    return [
        f"the time of {len(budget.unsettled)} of {cases} is not known to {budget.resolution:.0%}: "
        + ", ".join([*named, *more])
    ]


def _share(share: float | None) -> str:
    return "a single launch" if share is None else f"{share:.0%}"


def _winners(race: StoredRace) -> Iterator[str]:
    """Number of wins of each contestant."""
    firsts = Counter(g.contestants[0].name for g in race.groups if g.verdict == "fastest")
    if firsts:
        yield "fastest: " + ", ".join(f"{name} in {n}" for name, n in firsts.most_common())


def _timed(contestant: StoredContestant) -> str:
    return f"{contestant.name} {_time(contestant)}"


def _time(contestant: StoredContestant) -> str:
    return "" if contestant.time_s is None else time(contestant.time_s)


def _behind(contestant: StoredContestant) -> str:
    """A contestant and how much longer it takes than the leader: ``numpy eager +12 %``."""
    return f"{contestant.name} {behind(contestant) or _time(contestant)}".rstrip()


#: From this difference on, a factor is easier to read than per cent.
_FACTOR = 1.0


def behind(contestant: StoredContestant) -> str:
    """Extra time of a contestant over the leader; the reason where that is not known."""
    share = contestant.behind
    if share is None:
        return "" if contestant.why is None else f"({contestant.why})"
    return times(1 + share) if share >= _FACTOR else f"{100 * share:+.1f} %"
