"""Model of exchanges with more replicas than were measured, and its limits.

An exchange takes alpha for every message on its way and beta for every byte of it (Hockney, "The
communication challenge for MPP", Parallel Computing 20, 1994). A ring all-reduce of S bytes takes
2 (W - 1) alpha + 2 (W - 1) / W S beta (Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH", 2005). In networks that are limited by their wires the model
was within 2 % up to 8 times the replicas that it was fitted to, and within a factor of 1.5 beyond;
it was wrong by a half where processors were the limit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fwbench.records.facts import GangFacts
from fwbench.workloads.collectives import RINGS, Collective

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
