"""Replicas on the terminal: a row for each number of them."""

from __future__ import annotations

from typing import Any

from support.gangs import gang
from support.terminals import entry, shown


def _step(replicas: int, step_s: float, **of_gang: Any) -> dict[str, Any]:
    own = {} if replicas == 1 else {"gang": gang(replicas, step_s, bus_bytes_per_s=None, **of_gang)}
    return entry(
        "torch",
        step_s,
        workload="lenet_step",
        direction="train",
        size=48,
        threads=1,
        images_per_s=48 / step_s,
        toggles={"replicas": str(replicas)},
        params={"replicas": str(replicas)},
        **own,
    )


def _table(*records: dict[str, Any]) -> list[str]:
    lines = shown(*records)
    begin = next(n for n, line in enumerate(lines) if line.startswith("replicas: "))
    return lines[begin : lines.index("", begin)]


def test_what_each_number_of_replicas_took_and_gained() -> None:
    assert _table(_step(1, 1.0), _step(2, 0.625, skew=0.25)) == [
        "replicas: lenet_step cpu train float32 48",
        "             replicas  a step  a second  efficiency  MB sent  skew",
        "torch eager         1     1 s        48",
        "torch eager         2  625 ms      76.8         80%        8   25%",
    ]


def test_more_threads_than_processors_are_named() -> None:
    row = _table(_step(1, 1.0), _step(2, 0.625, oversubscribed=True))[-1]
    assert row.endswith("more threads than CPUs")
    assert "80%" not in row


def test_exchanges_say_in_their_row_how_many_replicas_there_are() -> None:
    exchanges = [
        entry(
            "numpy",
            1e-3 * replicas,
            workload="all_reduce",
            gang=gang(replicas, network="100mbit"),
            toggles={"replicas": str(replicas), "strategy": "allreduce"},
            params={"replicas": str(replicas), "strategy": "allreduce"},
        )
        for replicas in (2, 4)
    ]
    lines = shown(*exchanges)
    begin = next(n for n, line in enumerate(lines) if line.startswith("operations"))
    assert [line.split() for line in lines[begin + 1 : lines.index("", begin)]] == [
        *(["numpy"], ["eager"], ["strategy=allreduce"]),
        ["all_reduce", "(2", "replicas)", "8", "2", "ms"],
        ["all_reduce", "(4", "replicas)", "8", "4", "ms"],
    ]


def test_sessions_without_replicas_have_no_table() -> None:
    for records in ([entry("torch")], [_step(1, 1.0)]):
        assert not [line for line in shown(*records) if line.startswith("replicas")]
