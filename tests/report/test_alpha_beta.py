"""The model of an exchange: right where it is right by construction, silent where rules say so."""

from collections.abc import Mapping

import pytest

from fwbench.records.facts import GangFacts
from fwbench.report.scaling import Exchange, fitted, modelled
from fwbench.workloads import all_reduce
from support.gangs import gang

_ALPHA_S, _RATE = 1e-3, 12.5e6  # of a link of 100 Mbit/s


def _time_s(replicas: int, size_bytes: float = 4e6) -> float:
    return 2 * (replicas - 1) * (_ALPHA_S + size_bytes / replicas / _RATE)


def _exchanges(
    numbers: tuple[int, ...] = (2, 3, 4),
    slower: Mapping[int, float] = {},
    size_bytes: float = 4e6,
    cpu_share: float = 0.01,
    rate: float | None = _RATE,
) -> dict[int, Exchange]:
    """An all-reduce as the model has it for a link of 100 Mbit/s, on a link of some rate."""
    exchanges = {}
    for replicas in numbers:
        time_s = _time_s(replicas, size_bytes) * slower.get(replicas, 1.0)
        sent = 2 * (replicas - 1) / replicas * size_bytes
        made = gang(replicas, time_s, link_utilization=rate and sent / time_s / rate)
        for rank in made["ranks"]:
            rank["cpu_s"] = cpu_share * 2 * time_s / replicas
        exchanges[replicas] = Exchange(time_s, GangFacts.checked(made))
    return exchanges


def test_a_fit_finds_latency_and_bandwidth() -> None:
    model = fitted(all_reduce, 4_000_000, {w: _time_s(w) for w in (2, 3, 4)})
    assert model.alpha_s == pytest.approx(_ALPHA_S, rel=1e-3)
    assert 1 / model.beta_s == pytest.approx(_RATE, rel=1e-3)
    falling = fitted(all_reduce, 4_000_000, {2: 1.0, 3: 0.9, 4: 0.8})
    assert falling.alpha_s == 0
    assert falling.beta_s > 0


def test_what_more_replicas_would_take() -> None:
    """Twice as many, and so on: lines up to 8 times the measured number, a band beyond."""
    points = modelled("all_reduce", 4_000_000, _exchanges())
    assert [p.replicas for p in points] == [8, 16, 32, 64]
    for point in points:
        assert point.time_s == pytest.approx(_time_s(point.replicas), rel=1e-3)
    assert [p.high_s / p.low_s for p in points] == pytest.approx([1, 1, 1, 2.25])
    points = modelled("all_reduce", 4_000_000, _exchanges((2, 4, 500)))
    assert [p.replicas for p in points] == [1000], "nothing beyond a thousand"


@pytest.mark.parametrize(
    ("workload", "exchanges"),
    [
        ("all_reduce", _exchanges((2, 4))),
        ("all_reduce", _exchanges(slower={4: 1.3})),
        ("all_reduce", _exchanges(rate=None)),
        ("all_reduce", _exchanges(rate=10 * _RATE)),
        ("all_reduce", _exchanges(cpu_share=0.9)),
        ("broadcast", _exchanges()),
    ],
    ids=["two numbers", "no fit", "no wire", "idle wire", "busy processors", "no ring"],
)
def test_where_the_model_says_nothing(workload: str, exchanges: dict[int, Exchange]) -> None:
    assert modelled(workload, 4_000_000, exchanges) == []


def test_below_the_knee_the_wire_may_be_idle() -> None:
    """The time of messages is then the limit, and not their bytes."""
    points = modelled("all_reduce", 8, _exchanges(size_bytes=8.0))
    assert [point.replicas for point in points] == [8, 16, 32, 64]
