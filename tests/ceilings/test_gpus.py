"""Ceilings of GPUs: by precision, and of what their cache holds."""

from typing import Any

import pytest

from fwbench import ceilings
from fwbench.ceilings import Ceiling
from support.peaks import CEILING, attainable_of, product_entry, product_facts
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
