"""The answer in words: which framework is fastest here, and for how much of the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fwbench.report.ranking.contests import Contest, Timed

#: Frameworks whose times differ by less are too close to call. Launches of the same case, minutes
#: apart, differ by 3 to 5 % (docs/measuring.md), so that one launch cannot tell them apart.
TOO_CLOSE = 1.05


@dataclass(frozen=True)
class Answer:
    """Which framework is fastest, for one kind of workload on one device.

    Attributes:
        kind: of workload: ``operations, forward``, ``training steps``.
        device: where it ran.
        fastest: for how many contests a framework is the fastest, the one with most first.
        too_close: for how many contests the two fastest frameworks are too close to call.
    """

    kind: str
    device: str
    fastest: Mapping[str, int]
    too_close: int

    @property
    def contests(self) -> int:
        """How many contests were decided or too close to call."""
        return sum(self.fastest.values()) + self.too_close

    @property
    def text(self) -> str:
        """The answer as a clause: ``torch for 21 of 33, numpy for 10; 2 too close to call``."""
        parts: list[str] = []
        for name, number in self.fastest.items():
            of = "" if parts else f" of {self.contests}"
            parts.append(f"{name} for {number}{of}")
        close = f"{self.too_close} too close to call" if self.too_close else ""
        return "; ".join(filter(None, [", ".join(parts), close]))


def answers(contests: Iterable[Contest]) -> list[Answer]:
    """An answer for each kind of workload and each device.

    A framework is as fast as its fastest execution. Contests of a single framework are left out,
    and so are contended and unequal cases.
    """
    by_kind: dict[tuple[str, str], list[Contest]] = {}
    for contest in contests:
        if len({timed.facts.framework for timed in contest.ranked}) > 1:
            by_kind.setdefault(contest.kind, []).append(contest)
    return [_answer(kind, device, group) for (kind, device), group in by_kind.items()]


def winner(contest: Contest) -> Timed | None:
    """The fastest case of a contest; None if another framework is too close to it to call."""
    first, *others = sorted(contest.ranked, key=lambda timed: timed.time_s)
    rivals = (timed for timed in others if timed.facts.framework != first.facts.framework)
    rival = next(rivals, None)
    close = rival is not None and rival.time_s < TOO_CLOSE * first.time_s
    return None if close else first


def _answer(kind: str, device: str, contests: Sequence[Contest]) -> Answer:
    winners = [winner(contest) for contest in contests]
    fastest = Counter(timed.facts.framework for timed in winners if timed is not None)
    return Answer(kind, device, dict(fastest.most_common()), winners.count(None))
