"""Notes on probes: a line for each case with -v, a line for all without."""

from __future__ import annotations

from support.terminals import IN_FULL, entry, shown

_PROFILE = {
    "call_s": 1.5,
    "shares": {"convolution": 0.6, "matmul": 0.38, "pooling": 0.01, "loss": 0.01},
    "trace": "trace.json",
}


def test_each_case_has_a_line_in_full() -> None:
    lines = shown(
        entry("torch", profile=_PROFILE),
        entry("numpy", profile={"gap": "numpy has no profiler"}),
        entry("mxnet", profile={**_PROFILE, "shares": {"matmul": 1.0}, "call_s": 0.75}),
        view=IN_FULL,
        traces="/traces",
    )
    start = lines.index("where the time goes, by the frameworks' own profilers:")
    assert lines[start + 1 : start + 5] == [
        "  gemm-torch: convolution 60%, matmul 38%, rest 2% (profiler: +50%)",
        "  gemm-numpy: numpy has no profiler",
        "  gemm-mxnet: matmul 100% (profiler: -25%)",
        "traces for https://ui.perfetto.dev: /traces",
    ]


def test_all_cases_have_one_line_otherwise() -> None:
    found = {"profile": {"gap": "numpy has no profiler"}}
    lines = shown(entry("numpy", **found))
    assert "1 case profiled, 1 without a result: -v shows where the time goes" in lines
    assert not [line for line in lines if "perfetto" in line]
    lines = shown(entry("torch", profile=_PROFILE), entry("numpy", **found), traces="/traces")
    assert "2 cases profiled, 1 without a result: -v shows where the time goes" in lines
    assert "traces for https://ui.perfetto.dev: /traces" in lines


def test_memory_has_a_line_in_full() -> None:
    forward = {"before_bytes": 2**30, "peak_bytes": 2**30 + 40 * 2**20, "planned_bytes": 7 * 2**20}
    step = {"before_bytes": 2**30, "peak_bytes": 2**30 + 90 * 2**20, "saved_bytes": 60 * 2**20}
    records = (
        entry("torch", direction="train", memory=step, forward_memory=forward),
        entry("numpy", memory={"gap": "it died"}),
        entry("mxnet", memory={"before_bytes": None, "peak_bytes": None}),
    )
    lines = shown(*records, view=IN_FULL)
    start = lines.index("peak memory above what was held before, each in a process of its own:")
    assert lines[start + 1 : start + 4] == [
        "  gemm-torch: forward 40 MiB (7 MiB planned), train 90 MiB (60 MiB saved)",
        "  gemm-numpy: forward it died",
        "  gemm-mxnet: forward unknown",
    ]
    assert "memory of 3 cases measured: -v shows it, and reports do" in shown(*records)


def test_without_probes_nothing_is_said() -> None:
    assert not [
        line
        for line in shown(entry("torch"), traces="/traces")
        if "profile" in line or "memory" in line
    ]
