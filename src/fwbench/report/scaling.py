"""Work that several numbers of replicas shared: what each took, and what more of them gained.

What exchanges would take with more replicas than were measured is a model, with limits. An exchange
takes alpha for every message on its way and beta for every byte of it (Hockney, "The communication
challenge for MPP", Parallel Computing 20, 1994). A ring all-reduce of S bytes takes 2 (W - 1) alpha
+ 2 (W - 1) / W S beta (Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", 2005). In networks that are limited by their wires the model was within 2 % up
to 8 times the replicas that it was fitted to, and within a factor of 1.5 beyond; it was wrong by a
half where processors were the limit.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fwbench.records.facts import CaseFacts, GangFacts
from fwbench.records.measurement import Measurement, group_by
from fwbench.report.condition import is_contended, marked
from fwbench.report.ranking import work
from fwbench.terms.replicas import ALLREDUCE, LOOPBACK
from fwbench.terms.toggles import is_of_gang
from fwbench.workloads.collectives import RINGS, Collective

#: In place of an efficiency.
OVERSUBSCRIBED = "more threads than CPUs"

#: Works that differ in their softmax alone, and which it is.
_SOFTMAXES = {"word_lm_step": "full", "word_lm_sampled_step": "sampled"}


@dataclass(frozen=True)
class Shared:
    """A case that replicas shared, or that one did by itself to compare them with."""

    #: The measured case; of a training loop its values are of epochs.
    record: Measurement
    suffix: str = ""

    @property
    def facts(self) -> CaseFacts:
        """The facts of the case."""
        return self.record.facts

    @property
    def alone(self) -> str:
        """The contestant, whatever its number of replicas: without the toggles of its gang."""
        return self.record.contestant_with(lambda name: not is_of_gang(name)) + self.suffix

    @property
    def time_s(self) -> float:
        """Median seconds of a step."""
        return self.record.median_s / self._steps

    @property
    def spread_s(self) -> tuple[float, float]:
        """The ends of the middle half of the seconds of a step."""
        low_s, high_s = self.record.quartiles_s
        return low_s / self._steps, high_s / self._steps

    @property
    def _steps(self) -> int:
        """The steps of a value: those of an epoch, or one."""
        return 1 if self.facts.epoch_s is None else self.facts.steps_per_epoch or 1

    @property
    def gang(self) -> GangFacts | None:
        """Facts of its replicas; None of a single one."""
        return self.facts.gang

    @property
    def replicas(self) -> int:
        """Number of replicas that shared it."""
        return 1 if self.gang is None else self.gang.replicas

    @property
    def name(self) -> str:
        """The contestant with what joins its replicas, as far as that is not the default."""
        return self._named(f"servers={self.servers}")

    @property
    def whatever_servers(self) -> str:
        """The same name for any number of servers."""
        return self._named("")

    @property
    def servers(self) -> int:
        """Number of parameter servers."""
        return 0 if self.gang is None else self.gang.servers

    @property
    def oversubscribed(self) -> bool:
        """True if its replicas had more threads than there are CPUs."""
        return self.gang is not None and self.gang.oversubscribed

    def _named(self, servers: str) -> str:
        gang = self.gang
        if gang is None:
            return self.alone
        strategy = f"{gang.strategy} {servers}".rstrip() if gang.strategy != ALLREDUCE else ""
        network = gang.network if gang.network != LOOPBACK else ""
        straggler = f"straggler={gang.straggler}" if gang.straggler else ""
        normalization = (self.facts.toggles or {}).get("normalization")  # where it is synchronized
        return " ".join(filter(None, [self.alone, strategy, network, straggler, normalization]))

    @property
    def rate(self) -> float | None:
        """Images, or tokens, in a second; None where nothing is counted."""
        if self.facts.direction != "train":
            return None
        known = self.facts.images_per_s or self.facts.tokens_per_s
        return known or self.facts.size / self.time_s

    @property
    def unit(self) -> str:
        """Unit that :attr:`rate` counts."""
        if self.facts.tokens_per_s:
            return "tokens"
        return "images" if self.facts.images_per_s else "examples"


def is_scaling(record: Measurement) -> bool:
    """True if a number of replicas was requested for a case."""
    return "replicas" in record.requested


@dataclass(frozen=True)
class Scaling:
    """The same work, shared by several numbers of replicas."""

    cases: Sequence[Shared]
    #: Whether each replica has the same work, and not all together.
    weak: bool = False

    @property
    def facts(self) -> CaseFacts:
        """Facts of the first case; the work is the same for all."""
        return self.cases[0].facts

    @property
    def title(self) -> str:
        """The work, in words."""
        facts = self.facts
        size = f"{_share_size(self.cases[0]):,} a replica" if self.weak else facts.size_text
        return f"{facts.workload} {facts.device} {facts.direction} {facts.dtype} {size}"

    @cached_property
    def lines(self) -> Mapping[str, Mapping[int, Shared]]:
        """Cases by contestant and number of replicas; a single one begins every line."""
        lines: dict[str, dict[int, Shared]] = {}
        shared = {case.alone for case in self.cases if case.gang is not None}
        for case in self.cases:
            if case.gang is not None or case.alone not in shared:
                lines.setdefault(case.name, {})[case.replicas] = case
        for line in lines.values():
            single = self.single(next(iter(line.values())))
            if single is not None:
                line[1] = single
        return {name: dict(sorted(line.items())) for name, line in lines.items()}

    def single(self, case: Shared) -> Shared | None:
        """Time of one replica of the same contestant, if it was measured."""
        singles = (
            other for other in self.cases if other.gang is None and other.alone == case.alone
        )
        return next(singles, None)

    def efficiency(self, case: Shared) -> float | None:
        """The gain of a case over a single replica, by the number of replicas.

        None where it would say something else: replicas with more threads than there are CPUs
        work by turns, those with other threads than the single one are other workers, and a time
        of a contended case is an upper bound.
        """
        single = self.single(case)
        if case.gang is None or case.gang.oversubscribed or single is None:
            return None
        if single.facts.threads != case.facts.threads:
            return None
        if is_contended(single.facts) or is_contended(case.facts):
            return None
        if single.rate and case.rate:  # of workers that do not wait no single time stands for all
            return case.rate / single.rate / case.replicas
        return single.time_s / case.time_s / (1 if self.weak else case.replicas)


class SharedCase(NamedTuple):
    """A case with the name of its line, and the work that its replicas shared."""

    name: str
    case: Shared
    work: Scaling

    @property
    def marked(self) -> str:
        """The name with the doubts about the case."""
        return marked(self.name, self.case.facts)

    @property
    def efficiency(self) -> float | None:
        """The gain over a single replica, as :meth:`Scaling.efficiency`."""
        return self.work.efficiency(self.case)


def rows(works: Iterable[Scaling]) -> list[SharedCase]:
    """The cases of works, line by line."""
    return [
        SharedCase(name, case, work)
        for work in works
        for name, line in work.lines.items()
        for case in line.values()
    ]


def _share_size(case: Shared) -> int:
    return case.facts.size // case.replicas


def scalings(cases: Iterable[Shared]) -> list[Scaling]:
    """The works that replicas have shared; an exchange's sizes are works of their own."""
    groups = group_by(cases, lambda case: work(case.facts))
    weak = _grown(groups)
    grown = {id(case) for group in weak for case in group}
    strong = [group for group in groups.values() if not grown & {*map(id, group)}]
    every = [Scaling(group) for group in strong] + [Scaling(group, weak=True) for group in weak]
    return [scaling for scaling in every if any(case.gang for case in scaling.cases)]


def with_either_softmax(works: Iterable[Scaling]) -> list[Scaling]:
    """The works of language models with a full softmax and a sampled one, each pair as one.

    Their contestants say which they have; it is not the same work.
    """
    pairs: dict[tuple[Any, ...], dict[str, Scaling]] = defaultdict(dict)
    for scaling in works:
        facts = scaling.facts
        softmax = _SOFTMAXES.get(facts.workload)
        if softmax:
            key = (facts.device, facts.dtype, facts.shape, facts.size, scaling.weak)
            pairs[key][softmax] = scaling
    return [
        Scaling(
            [
                replace(case, suffix=f"{case.suffix}, {softmax} softmax")
                for softmax in _SOFTMAXES.values()
                for case in pair[softmax].cases
            ],
            weak=weak,
        )
        for (*_, weak), pair in pairs.items()
        if len(pair) == len(_SOFTMAXES)
    ]


def unshared(records: Iterable[Measurement]) -> list[Measurement]:
    """The records of work that no replicas shared: those that no table of replicas has."""
    every = [*records]
    works = scalings(Shared(record) for record in every if is_scaling(record))
    shown = {id(case.record) for scaling in works for case in scaling.cases}
    return [record for record in every if id(record) not in shown]


def _grown(groups: Mapping[tuple[Any, ...], Sequence[Shared]]) -> list[list[Shared]]:
    """Batches that grow with the number of replicas (``-o fw_scaling=weak``), by what each has."""
    lone = (
        case
        for group in groups.values()
        if len({case.replicas for case in group}) == 1
        for case in group
        if case.rate is not None and case.facts.shape is None
    )

    def share(case: Shared) -> tuple[Any, ...]:
        return work(CaseFacts.unchecked({**case.facts, "size": _share_size(case)}))

    groups_of_share = group_by(lone, share).values()
    return [group for group in groups_of_share if len({member.replicas for member in group}) > 1]


#: A model is shown if it fits this many numbers of replicas, each within this share.
_NUMBERS_AT_LEAST = 3
_FIT_WITHIN = 0.05

#: The wire is the limit from this share of it on, if processors have less than this to do.
_WIRE_AT_LEAST = 0.85
_CPU_AT_MOST = 0.8

#: Up to this many times the replicas that were measured the model is a line, beyond it a band of
#: this factor up and down.
_LINE_TIMES = 8
_BAND = 1.5

#: Models are shown for twice the largest number that was measured, twice that, and so on.
_DOUBLINGS = 4
_REPLICAS_AT_MOST = 1000


@dataclass(frozen=True)
class Exchange:
    """An exchange as it was measured with some number of replicas."""

    time_s: float
    gang: GangFacts

    @property
    def cpu_share(self) -> float:
        """Share of the processors of their machines that replicas have used."""
        by_host = {rank.host: rank.cpus for rank in self.gang.ranks}
        used_s = sum(rank.cpu_s for rank in self.gang.ranks)
        return used_s / self.time_s / sum(by_host.values())


@dataclass(frozen=True)
class Modelled:
    """A time that was not measured."""

    replicas: int
    time_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class AlphaBeta:
    """Latency and bandwidth of one exchange of one size."""

    #: Seconds of a message.
    alpha_s: float
    #: Seconds of a byte.
    beta_s: float
    #: How many follow each other, by the number of replicas.
    messages: Callable[[int], float]
    #: What passes through each replica's wire, by the number of replicas.
    size_bytes: Callable[[int], float]

    def time_s(self, replicas: int) -> float:
        """Seconds of a step with a number of replicas."""
        return self.latency_s(replicas) + self.beta_s * self.size_bytes(replicas)

    def latency_s(self, replicas: int) -> float:
        """The part of it that messages take, whatever their size."""
        return self.alpha_s * self.messages(replicas)


def modelled(workload: str, size_bytes: int, measured: Mapping[int, Exchange]) -> list[Modelled]:
    """Expected times with more replicas, where the model has them.

    Returns:
        Nothing unless the model fits at least three numbers of replicas within 5 %, the processors
        have at most 80 % to do, and the wire is the limit: at least 85 % of it, or latency.
    """
    ring = RINGS.get(workload)
    if ring is None or len(measured) < _NUMBERS_AT_LEAST:
        return []
    model = fitted(ring, size_bytes, {w: case.time_s for w, case in measured.items()})
    largest = max(measured)
    off = (abs(model.time_s(w) / case.time_s - 1) for w, case in measured.items())
    if max(off) > _FIT_WITHIN or not _wire_is_limit(model, largest, measured[largest]):
        return []
    return [*_beyond(model, largest)]


def _wire_is_limit(model: AlphaBeta, replicas: int, exchange: Exchange) -> bool:
    wire_share = exchange.gang.link_utilization
    if wire_share is None or exchange.cpu_share >= _CPU_AT_MOST:
        return False
    below_knee = model.latency_s(replicas) > model.time_s(replicas) / 2
    return below_knee or wire_share >= _WIRE_AT_LEAST


def _beyond(model: AlphaBeta, largest: int) -> Iterator[Modelled]:
    for doubling in range(1, _DOUBLINGS + 1):
        times = 2**doubling
        if times * largest <= _REPLICAS_AT_MOST:
            time_s = model.time_s(times * largest)
            band = _BAND if times > _LINE_TIMES else 1.0
            yield Modelled(times * largest, time_s, time_s / band, time_s * band)


def fitted(ring: Collective, size_bytes: int, times_s: Mapping[int, float]) -> AlphaBeta:
    """The latency and bandwidth, neither below 0, that come nearest to times, relative to these."""
    from scipy.optimize import nnls  # few reports are of exchanges

    terms = np.array([[ring.sent(w), ring.bus(w) * size_bytes] for w in times_s])
    terms /= np.array([*times_s.values()])[:, None]
    scale = terms.max(axis=0)  # a message takes microseconds, and a byte nanoseconds
    alpha_s, beta_s = nnls(terms / scale, np.ones(len(terms)))[0] / scale
    return AlphaBeta(float(alpha_s), float(beta_s), ring.sent, lambda w: ring.bus(w) * size_bytes)
