"""Copies between host and GPU have ceilings of their own, by direction and memory."""

from typing import Any

import pytest

from fwbench import ceilings
from fwbench.ceilings import Ceiling
from support.peaks import CEILING, attainable_of, product_entry, product_facts


def _copy(workload: str = "copy_to_device", pinned: str = "off") -> dict[str, Any]:
    """Facts of a copy of a mebibyte that a product does not have."""
    return {"workload": workload, "flops": 0.0, "toggles": {"pinned": pinned}}


def test_each_way_and_memory_has_a_ceiling() -> None:
    """The best of each counts, and says whose it is; rates of the device's memory stay."""
    ceiling = CEILING
    for framework, changes, seconds in (
        ("fake", _copy(), 2.0),
        ("other", _copy(), 1.0),
        ("third", _copy(), 4.0),
        ("fake", _copy(pinned="on"), 0.5),
        ("fake", _copy("copy_to_host"), 8.0),
    ):
        ceiling = ceiling.with_result(product_facts(framework, **changes), seconds)
    assert ceiling.copied_per_s == {
        "copy_to_device": 2.0**20,
        "copy_to_device, pinned": 2.0**21,
        "copy_to_host": 2.0**17,
    }
    assert ceiling.by["copy_to_device"] == "other 1.2"
    assert (ceiling.flops_per_s, ceiling.bytes_per_s) == (CEILING.flops_per_s, CEILING.bytes_per_s)
    result = {"Fake 9000": ceiling}
    assert ceilings.from_json(ceilings.to_json(result)) == result


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (_copy(), (2.0, 0.5)),
        (_copy(pinned="on"), (1.0, 0.25)),
        (_copy("copy_to_host"), (None, None)),
        ({}, (2.0, 0.5)),
    ],
    ids=["ordinary memory", "pinned", "not measured", "no copy"],
)
def test_a_copy_is_held_against_the_best_of_its_kind(
    changes: dict[str, Any], expected: tuple[float | None, float | None]
) -> None:
    """And not against copies within the device, which are many times as fast."""
    copied = {"copy_to_device": 2.0**19, "copy_to_device, pinned": 2.0**20}
    ceiling = Ceiling(CEILING.flops_per_s, CEILING.bytes_per_s, {}, copied)
    record = product_entry(4.0, **changes)
    ceilings.annotate([record], {"Fake CPU": ceiling})
    assert attainable_of(record) == expected
