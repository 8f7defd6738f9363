"""Ceilings of GPUs: by precision, and of what their cache holds."""

from types import SimpleNamespace
from typing import Any

import pytest

from fwbench import ceilings, cli, machine
from fwbench.ceilings import Ceiling, gpu_suite
from fwbench.measure.nvml import Gpu
from fwbench.records.session_facts import NotMeasured, SessionFacts
from fwbench.records.stored import StoredRun
from support.peaks import CEILING, QUICKLY, attainable_of, product_entry, product_facts
from support.tables import tabled

_MIB = 2.0**20


def test_tf32_has_a_ceiling_of_its_own() -> None:
    """It leaves that of float32 where it is; of other dtypes the toggle says nothing."""
    result = Ceiling()
    for dtype, tf32, seconds in (
        ("float32", "off", 2.0),
        ("float32", "on", 0.25),
        ("bfloat16", "on", 0.5),
        ("float8_e4m3fn", "off", 0.125),
    ):
        facts = product_facts(dtype=dtype, toggles={"tf32": tf32})
        result = result.with_result(facts, seconds)
    assert result.flops_per_s == {"float32": 2.0**30, "tf32": 2.0**33, "bfloat16": 2.0**32} | {
        "float8_e4m3fn": 2.0**34
    }
    assert {*result.by} == {*result.flops_per_s}


@pytest.mark.parametrize(
    ("toggles", "seconds"),
    [({"tf32": "on"}, 1.0), ({"tf32": "off"}, 2.0), ({}, 2.0)],
    ids=["on", "off", "not recorded"],
)
def test_a_case_in_tf32_is_held_against_tf32(toggles: dict[str, str], seconds: float) -> None:
    """Or it would seem to be faster than its device."""
    ceiling = Ceiling({"float32": 2.0**30, "tf32": 2.0**31}, 2.0**20)
    record = product_entry(4.0, toggles=toggles)
    ceilings.annotate([record], {"Fake CPU": ceiling})
    assert attainable_of(record) == (seconds, seconds / 4.0)


def test_the_time_on_the_gpu_is_what_a_product_took() -> None:
    """Where its own clock has told: launch and wait are none of its rate."""
    on_gpu = {"device_clock": "events", "device_s": 1.0}
    assert Ceiling().with_result(product_facts(**on_gpu), 2.0).flops_per_s == {"float32": 2.0**31}
    by_slope = product_facts(**{**on_gpu, "device_clock": "slope"})
    assert Ceiling().with_result(by_slope, 2.0).flops_per_s == {"float32": 2.0**30}


def _copied(size_bytes: float, device_s: float, **changes: Any) -> Any:
    facts = {"flops": 0.0, "bytes": size_bytes, "device_s": device_s, "device_clock": "events"}
    return product_facts(**{"workload": "cached_copy", **facts, **changes})


def test_copies_that_a_cache_may_hold_are_kept_by_their_size() -> None:
    """The best of each; without the GPU's own clock it would be the rate of launches."""
    result = Ceiling({}, 2.0**20)
    for facts in (
        _copied(_MIB, 2.0**-3),
        _copied(_MIB, 2.0**-2),
        _copied(4 * _MIB, 1.0),
        _copied(2 * _MIB, 2.0**-9, device_clock="slope"),
    ):
        result = result.with_result(facts, 9.0)
    assert result.cached_per_s == {"1048576": 2.0**23, "4194304": 2.0**22}
    assert (result.bytes_per_s, result.by) == (2.0**20, {"cached_copy": "fake 1.2"})
    of_device = {"Fake 9000": result}
    assert ceilings.from_json(ceilings.to_json(of_device)) == of_device


#: A cache of some 4 MiB that is eight times as fast as memory.
_CACHED = Ceiling(
    {}, 2.0**20, {}, {}, {"1048576": 2.0**22, "4194304": 2.0**23, "16777216": 2.0**19}
)


@tabled
def test_what_a_cache_holds_is_held_against_the_cache(
    moved_mib: float, l2: str | None, rate: float
) -> None:
    """The best rate at which as much was moved, or more; of an emptied cache, that of memory."""
    toggles = {} if l2 is None else {"l2": l2}
    moved_bytes = moved_mib * _MIB
    record = product_entry(1.0, flops=0.0, bytes=moved_bytes, toggles=toggles)
    ceilings.annotate([record], {"Fake CPU": _CACHED})
    assert attainable_of(record) == (moved_bytes / rate, moved_bytes / rate)


def test_a_size_that_is_none_is_left_out() -> None:
    """The rest of a file that someone has edited is kept."""
    stored = {"Fake 9000": {"cached_per_s": {"many": 1.0, "8": 2.0}, "bytes_per_s": 1.0}}
    assert ceilings.from_json(stored)["Fake 9000"].cached_per_s == {"8": 2.0}
    assert CEILING.cached_per_s == {}


_KERNEL = {"workload": "relu", "device": "gpu:0", "device_clock": "events", "device_s": 1e-3}
_GEMM = {"device": "gpu:0", "device_clock": "events", "precision_bits": 23.0, "steady": True}
_COPIED = {"workload": "copy_to_host", "device": "gpu:0", "bytes": 2.0**26, "completion_s": 2e-3}
_IN_CACHE = {**_KERNEL, "size": 1_000_000}

#: The facts of cases on a GPU of which every claim holds.
_SOUND: dict[str, list[dict[str, Any]]] = {
    "product": [{**_GEMM, "device_s": 2.0, "sm_clock_hz": 1.9e9}],
    "narrow": [{**_GEMM, "dtype": "bfloat16", "device_s": 1.0}],
    "capture": [{**_GEMM, "execution": "cuda_graph", "device_memory_left_bytes": 2**20}],
    "copies": [_COPIED],
    "clocks": [{**_KERNEL, "size": 10_000_000, "kernels_s": 0.997e-3}],
    "caches": [{**_IN_CACHE, "toggles": {"l2": "hot"}, "device_s": 5e-4},
               {**_IN_CACHE, "toggles": {"l2": "cold"}, "device_s": 1e-3}],
}  # fmt: skip


class _SoundGpu(Gpu):
    """An H200 that answers at once."""

    def __init__(self) -> None:
        """Nothing of NVML's."""

    def sm_clock_hz(self) -> float:
        return 1.9e9

    default_sm_clock_hz = 1.98e9
    link_generation = 5


def _judged(gpu: Gpu | None = None, **changed: list[dict[str, Any]]) -> dict[str, bool | None]:
    parts = {**_SOUND, **changed}.values()
    facts = [product_facts(**case) for part in parts for case in part]
    records = [SimpleNamespace(facts=each) for each in facts]
    run = StoredRun("doctor", records)  # type: ignore[arg-type]
    outcomes = gpu_suite.judged(run, gpu or _SoundGpu())
    return {outcome.expected: outcome.holds for outcome in outcomes}


def test_every_claim_holds_on_a_sound_gpu() -> None:
    assert {*_judged().values()} == {True}


@tabled
def test_what_is_not_so_is_told(part: str, place: int, fact: str, value: Any, claim: str) -> None:
    cases = [dict(case) for case in _SOUND[part]]
    cases[place][fact] = value
    refuted = [expected for expected, holds in _judged(**{part: cases}).items() if holds is False]
    assert refuted == [claim]


def test_a_clock_that_was_not_read_is_told_with_the_reason() -> None:
    slope = {**_GEMM, "device_clock": "slope", "slope_reason": "CUPTI has no record of a call"}
    run = StoredRun("doctor", [SimpleNamespace(facts=product_facts(**slope))])  # type: ignore[list-item]
    seen = {outcome.expected: outcome.seen for outcome in gpu_suite.judged(run, _SoundGpu())}
    framework = product_facts().framework
    expected = f"{framework} slope (CUPTI has no record of a call)"
    assert seen["the device's own clock is read"] == expected


def test_nvml_that_is_slow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr(gpu_suite, "perf_counter", lambda: float(next(ticks)))
    assert _judged()["NVML answers within 100 us"] is False


def test_a_failed_case_is_named() -> None:
    missing = [NotMeasured(nodeid="gemm-jax", framework="jax", why="failed")]
    run = StoredRun("doctor", [], SessionFacts(missing=missing))
    first, *others = gpu_suite.judged(run, None)
    assert (first.seen, first.holds) == ("0 of 1 case; not gemm-jax", False)
    assert {outcome.holds for outcome in others} == {None}


@tabled
def test_what_failed_leaves_the_claim_open_that_it_is_held_to(
    case: str, open_claims: tuple[str, ...]
) -> None:
    """A copy faster than its link and a product in TF32 fail, as what ran out of memory does."""
    missing = [NotMeasured(nodeid=f"test_suite.py::{case}", framework="jax", why="failed")]
    outcomes = gpu_suite.judged(StoredRun("doctor", [], SessionFacts(missing=missing)), None)
    assert (
        tuple(each.expected for each in outcomes[1:] if "cannot be told" in each.seen)
        == open_claims
    )
    assert {each.holds for each in outcomes[1:]} == {None}


def test_without_a_gpu_the_same_cases_run_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quickly = (*gpu_suite._ARGUMENTS, *QUICKLY, "--fw=numpy")
    monkeypatch.setattr(gpu_suite, "_ARGUMENTS", quickly)
    monkeypatch.setattr(machine, "gpus", lambda: {"models": []})
    assert cli.main(["doctor", "--gpu", "--threads", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("tried on cpu: there is no GPU here, or no driver for one\nok ")
    assert "results are right, and on the device: 3 of 3 cases" in shown
    assert "-       a cold cache is cold: not tried here" in shown
