"""Made-up ceilings of a machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fwbench.ceilings import Ceiling, Ceilings
from fwbench.records.facts import CaseFacts

#: As short as can be measured; no test asks how long anything takes.
QUICKLY = ("--fw-warmup=0", "--benchmark-max-time=0.01", "--benchmark-min-rounds=1", "-v")
BY = {"float32": "fake 1.2", "copy": "other 0.1"}

#: Powers of two, so that what follows from them is exact.
CEILING = Ceiling(
    {"float32": 2.0**30, "float16": 2.0**32},
    2.0**20,
    {**BY, "float16": "fake 1.2"},
    undisturbed={"float32": ["fake 1.2"]},
)


def product_facts(framework: str = "fake", **changes: Any) -> CaseFacts:
    """The part of a product's record that counts here."""
    facts = {
        "workload": "gemm",
        "framework": framework,
        "framework_version": "1.2",
        "device_name": "Fake CPU",
        "device": "cpu",
        "execution": "eager",
        "direction": "forward",
        "dtype": "float32",
        "size": 1024,
        "flops": 2.0**31,
        "bytes": 2.0**20,
    }
    return CaseFacts.unchecked({**facts, **changes})


#: The facts of a machine that decide what it can do.
MACHINE: Mapping[str, Any] = {
    "cpu": "Fake CPU",
    "cpus": 8,
    "physical_cores": 4,
    "usable_cpus": 2,
    "memory_bytes": 3 * 2**29,
    "os": "Fake OS",
    "python": "3.99",
    "gpu_driver": None,
}


FOUND = {"Fake CPU": CEILING, "Fake 9000": Ceiling({"float64": 2.0}, None, {"float64": "fake 1.2"})}


def stored_ceilings(
    root: Path, ceilings: Mapping[str, Ceiling] = FOUND, **changes: Any
) -> Ceilings:
    """The ceilings that were stored in a project, on this machine with some of it changed."""
    stored = Ceilings(root, {**MACHINE, **changes}, 2)
    stored.store(ceilings)
    return stored


#: What is no JSON of ceilings.
NONSENSE = [
    *("null", "3", '"Fake CPU"', "[]", "[[]]", '{"Fake CPU": null}', '{"Fake CPU": 3}'),
    *('{"Fake CPU": []}', '{"Fake CPU": {"flops_per_s": {"float32": NaN}}}'),
    '{"Fake CPU": {"bytes_per_s": 1e400}}',
    "[" * 90 + "]" * 90,
    '{"Fake CPU": {"flops_per_s": 3}}',
    '{"Fake CPU": {"flops_per_s": {"float32": "fast"}, "bytes_per_s": 1.0}}',
    '{"Fake CPU": {"flops_per_s": {"float32": 1.0}, "bytes_per_s": "fast"}}',
]


def product_entry(median: float = 2.0, **changes: Any) -> dict[str, Any]:
    """An entry of pytest-benchmark's whose work takes two seconds at least."""
    facts = dict(product_facts(**{"result_is_view": False, **changes}))
    return {"extra_info": {"fwbench": facts}, "stats": {"min": 1.0, "median": median, "max": 9.0}}


def attainable_of(record: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """The attainable time of an entry, and its share."""
    facts = record["extra_info"]["fwbench"]
    assert ("attainable_s" in facts) == ("attainable_share" in facts)
    return facts.get("attainable_s"), facts.get("attainable_share")
