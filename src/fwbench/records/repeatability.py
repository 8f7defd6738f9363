"""Repeatability: how far medians of the same case are apart in two processes.

Rounds of one process share its memory layout, its threads' places and its luck: "99 %" intervals
over rounds held in 19 % of 180 pairs of sessions. So what is shown is judged by processes.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from fwbench.records.session_facts import StoredRevisits
from fwbench.records.units import count
from fwbench.records.units import time as shown
from fwbench.terms.names import framework_of

#: Quantiles of Student's t: of what decides, at 5 % in both directions, and of 90 % intervals.
DECIDED, INTERVAL = 0.975, 0.95

#: Half of the differences are within this one and its negative.
_MIDDLE = 0.75

#: Fewer launches, or revisited cases, do not show how far others would be apart.
_AT_LEAST = 3


#: Whatever a file has must have an exponential.
_SD_AT_MOST = 9.0


@cache
def student(freedom: float, quantile: float) -> float:
    """A quantile of Student's t; of the normal distribution for infinite degrees of freedom."""
    if math.isinf(freedom):
        return statistics.NormalDist().inv_cdf(quantile)
    from scipy.special import stdtrit  # a session without comparisons needs none

    return float(stdtrit(freedom, quantile))


class Repeatability(NamedTuple):
    """The standard deviation between processes of the logarithm of a median, or of a ratio."""

    sd: float
    #: Degrees of freedom of ``sd``; infinite where it is assumed.
    freedom: float = math.inf
    #: What was measured; empty where ``sd`` is assumed.
    source: str = ""
    #: Logarithm of the second median, or ratio, over the first; None where it was measured once.
    change: float | None = None

    def beside(self, within: float) -> "Repeatability":
        """The same of a median that has a standard deviation within its process, too."""
        return self._replace(sd=min(math.hypot(self.sd, within), _SD_AT_MOST))

    @property
    def interval(self) -> float:
        """The 90 % interval of the difference of two medians' logarithms: from its negative on."""
        return student(self.freedom, INTERVAL) * math.sqrt(2) * self.sd

    @property
    def percent(self) -> str:
        """The same of the medians: ``9 %``."""
        return f"{max(1, round(100 * math.expm1(self.interval)))} %"


ASSUMED = Repeatability(math.log(1.05) / math.sqrt(2) / student(math.inf, INTERVAL))


#: Degrees of freedom of what other cases show, however many they are: a few cases repeat much worse
#: than the others of their framework, so that differences have longer tails than normal ones
#: (docs/measuring.md). Those of the case's own medians come on top, as of variances of which many
#: alike are known (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004). A
#: case that an earlier session has not measured may be one of those few.
_FREEDOM, _UNSEEN = 1.75, 1.0
_WITH_OWN = _FREEDOM + 1

#: As many cases with two results are named.
_NAMED = 3

#: The framework in the middle of the others counts as this many cases at most: it shows how a
#: machine repeats, and few cases of a framework may agree by chance. Not their mean: MXNet's
#: threads scatter by far more than NumPy's.
_OTHERS_AT_MOST = 2

#: Medians of a case that are apart by more than this factor.
_FAR = 2.0

Revisits = Mapping[str, StoredRevisits]


def known(
    launches_s: Sequence[float], revisits: Revisits, framework: str, nodeid: str = ""
) -> Repeatability:
    """Repeatability of the median of launches, or else of a framework's cases in its session.

    Args:
        nodeid: of the case, which may have been measured twice itself.
    """
    if (number := len(launches_s)) >= _AT_LEAST:
        # A median scatters by a factor of sqrt(pi / 2) more than a mean.
        sd = statistics.stdev(map(math.log, launches_s)) * math.sqrt(math.pi / 2 / number)
        return Repeatability(sd, number - 1, "by launches")
    number = sum(each.cases for each in revisits.values())
    if number < _AT_LEAST:
        return ASSUMED
    measured = {name: each for name, each in revisits.items() if each.cases}
    mine = measured.get(framework_of(framework))
    others = [each for each in measured.values() if each is not mine]
    cases, squares = (mine.cases, mine.cases * mine.sd**2) if mine else (0, 0.0)
    if others:
        counted = min(sum(each.cases for each in others), _OTHERS_AT_MOST)
        squares += counted * statistics.median_low(each.sd**2 for each in others)
        cases += counted
    is_earlier = _of_earlier(revisits)
    shown_by = count(number, "case")
    source = f"by {shown_by} of an earlier session" if is_earlier else f"{shown_by} revisited"
    square, freedom = squares / cases, _UNSEEN if is_earlier else _FREEDOM
    if (change := _change(mine.pairs.get(nodeid, ()) if mine else ())) is not None:
        square, freedom = (_FREEDOM * square + change**2 / 2) / _WITH_OWN, _WITH_OWN
    return Repeatability(min(math.sqrt(square), _SD_AT_MOST), freedom, source, change)


def _change(medians_s: Iterable[float]) -> float | None:
    logs = [math.log(median_s) for median_s in medians_s if 0 < median_s < math.inf]
    if len(logs) < 2:  # noqa: PLR2004 (one has not changed)
        return None
    return min(max(logs[-1] - logs[0], -_SD_AT_MOST), _SD_AT_MOST)


def of_ratio(base: Repeatability, case: Repeatability, *, together: bool) -> Repeatability:
    """Repeatability of the ratio of two medians, with its own change where both have one.

    Args:
        together: whether a session measured both. Then medians that have both become longer since
            an earlier one leave their ratio as it was: without what they have in common, it is the
            ratio's own change that counts beside what other cases show.
    """
    square, change = base.sd**2 + case.sd**2, None
    if together and base.change is not None and case.change is not None:
        square -= base.change * case.change / _WITH_OWN
        change = case.change - base.change
    sd = math.sqrt(min(max(square, 0.0), 2 * _SD_AT_MOST**2))
    return Repeatability(sd, min(base.freedom, case.freedom), change=change)


def _of_earlier(revisits: Revisits) -> bool:
    """True if cases were compared with those of an earlier session, and not measured again."""
    return any(each.earlier for each in revisits.values())


def of_pairs(pairs: dict[str, list[float]], *, contended: int = 0, late: int = 0) -> StoredRevisits:
    """The record of cases that were measured again: both medians in seconds, by node id.

    Args:
        contended: number of cases that have none, since one of theirs is an upper bound.
        late: of those that were not reached in time.
    """
    squares = [math.log(second / first) ** 2 for first, second in pairs.values()]
    return StoredRevisits(
        cases=len(pairs),
        sd=math.sqrt(statistics.fmean(squares or [0.0]) / 2),
        pairs=pairs,
        contended=contended or None,
        late=late or None,
    )


def of_earlier(pairs: dict[str, list[float]]) -> StoredRevisits:
    """The same of cases that an earlier session has measured, its medians behind the others.

    They are many, and each has two medians: so it is the middle one that tells, and those that
    repeat much worse show it themselves.
    """
    logs = [abs(math.log(second / first)) for first, second in pairs.values()]
    sd = statistics.median(logs) / (student(_FREEDOM, _MIDDLE) * math.sqrt(2))
    return StoredRevisits(cases=len(pairs), sd=sd, pairs=pairs, earlier=True)


def far_apart(revisits: Revisits, names: Mapping[str, str]) -> str:
    """Name the cases whose two medians are two results, not the scatter of one; empty for none.

    Args:
        names: of the cases, by node id.
    """
    pairs = {
        names[nodeid]: medians_s
        for each in revisits.values()
        for nodeid, medians_s in each.pairs.items()
        if nodeid in names and medians_s and max(medians_s) > _FAR * min(medians_s)
    }
    where = "in an earlier session" if _of_earlier(revisits) else "in a fresh process"
    named = [
        f"{name} took {shown(medians_s[0])}, and {shown(medians_s[-1])} {where}"
        for name, medians_s in pairs.items()
    ]
    others = [f"{len(named) - _NAMED} others differ as much"] if len(named) > _NAMED else []
    return "; ".join(named[:_NAMED] + others)


def stated(every: Iterable[tuple[str, Repeatability]], revisits: Revisits) -> str:
    """``medians here repeat to within 4 % (numpy), 9 % (torch): 12 cases revisited``.

    Args:
        every: those of cases with their framework; of each framework the middle one is told.
        revisits: those of the session, which may be too few.
    """
    measured: dict[str, list[Repeatability]] = {}
    for framework, each in every:
        if each.source:
            measured.setdefault(framework, []).append(each)
    if not measured:
        return f"medians are assumed to repeat to within {ASSUMED.percent}: {_unknown(revisits)}"
    middle = {
        name: sorted(those, key=lambda each: each.interval)[len(those) // 2]
        for name, those in measured.items()
    }
    percents = ", ".join(f"{middle[name].percent} ({name})" for name in sorted(middle))
    sources = " and ".join({each.source: None for each in middle.values()})
    return f"medians here repeat to within {percents}: {sources}"


def _unknown(revisits: Revisits) -> str:
    """The reason why nothing shows how far medians repeat, and what would."""
    if not revisits or _of_earlier(revisits):
        return "--fw-revisit 12 measures it"
    cases, contended, late = (
        sum(getattr(each, name) or 0 for each in revisits.values())
        for name in ("cases", "contended", "late")
    )
    why = [f"{count(cases, 'case')} revisited, and at least {_AT_LEAST} are needed"]
    if contended:
        why += [f"{contended} had to share processors (measure again on an idle machine)"]
    if late:
        why += [f"for {late} there was no time (select cases that take less)"]
    return "; ".join(why)
