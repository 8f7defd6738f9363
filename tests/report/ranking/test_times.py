"""On a GPU a ranking says which time it uses; on a CPU there is only one."""

from __future__ import annotations

from typing import Any

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.report import ranking, sections, writers
from support.reports import case, run_of
from support.terminals import IN_FULL, entry, shown

_GPU: dict[str, Any] = {"device": "gpu:0", "device_name": "Fake 9000"}


def measured(completion_s: float = 8e-6, **facts: Any) -> CaseFacts:
    """A case on a GPU whose own clock has told its time."""
    known = {"device": "gpu:0", "device_clock": "events", "completion_s": completion_s}
    return CaseFacts.unchecked({**known, **facts})


_RANKED = (
    "cases on gpu:0 are ranked by completion time, until the result exists: launch, kernel and wait"
)


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([measured(device="cpu", device_s=2e-6)], []),
        ([measured(device_s=2e-6)],
         [f"{_RANKED}; the GPU itself needed 25 % of it (median of 1 case)"]),
        ([measured(device_s=share * 8e-6) for share in (0.125, 0.5, 1.5)],
         [f"{_RANKED}; the GPU itself needed 50 % of it (median of 3 cases, 12 % to 100 %)"]),
        ([measured(device_clock="slope", device_s=2e-6)], [_RANKED]),
        ([measured(device_s=None)], [_RANKED]),
    ],
    ids=["a CPU", "one case", "several", "no clock of its own", "noise was larger"],
)  # fmt: skip
def test_a_gpu_s_time_is_named_with_the_part_that_it_needed(
    cases: list[CaseFacts], said: list[str]
) -> None:
    """Where the part is small, the ranking is one of launches."""
    assert ranking.notes(cases) == said


def test_a_terminal_names_the_time_in_tables_means_and_answer() -> None:
    records = [
        entry(name, time_s, device_s=1e-6, device_clock="events", **_GPU)
        for name, time_s in (("torch", 4e-6), ("jax", 8e-6))
    ]
    lines = shown(*records, view=IN_FULL)
    assert lines[1].startswith(f"{_RANKED}; the GPU itself needed 19 % of it (median of 2 cases")
    (table,) = [line for line in lines if line.startswith("operations, forward: median")]
    assert table.endswith("(completion time)")
    assert any(line.startswith("operations, forward (completion time): geom") for line in lines)
    assert lines[-1] == "Fastest here (completion time): torch for 1 of 1"


def test_reports_and_markdown_name_the_time() -> None:
    run = run_of(*(
            case("gemm", name, time_s, completion_s=time_s, device_s=1e-6, **_GPU,
                 device_clock="events")
            for name, time_s in (("torch", 4e-6), ("jax", 8e-6))
        ))  # fmt: skip
    runs = [run]
    text = writers.markdown(runs)
    assert f"- C{_RANKED[1:]}" in text
    assert "against the fastest: operations, forward (completion time)" in text
    (overview,) = [one for one in sections.details(runs) if one.title.startswith("overview")]
    assert "On a GPU these are completion times: launch, kernel and wait." in overview.notes
    (gemm,) = [one for one in sections.details(runs) if one.title.startswith("gemm")]
    assert "on the device" in gemm.columns


def test_a_cpu_has_one_time() -> None:
    run = run_of(*(case("gemm", name, 1.0) for name in ("torch", "jax")))
    runs = [run]
    assert "completion time" not in writers.markdown(runs)
    titles = [column for one in sections.details(runs) for column in one.columns]
    assert "on the device" not in titles
