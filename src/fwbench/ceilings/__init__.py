"""Ceilings: what a machine can do at most, measured through the frameworks themselves.

The roofline model (Williams, Waterman and Patterson, Communications of the ACM 52, 2009, p. 65):
work takes at least as long as its operations take at the best rate, and at least as long as its
bytes take at the best rate. Data that stays in a cache from call to call can be faster than that.
"""

import dataclasses
import hashlib
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from fwbench import project
from fwbench.errors import StorageError
from fwbench.frameworks.gpus import DEVICE_CLOCKS
from fwbench.jsontext import loads
from fwbench.measure.condition import CONTENDED
from fwbench.processes import session
from fwbench.records import files
from fwbench.records.facts import CaseFacts
from fwbench.records.session_facts import SessionFacts
from fwbench.records.stored import from_json as stored_run
from fwbench.records.table import DamagedFact
from fwbench.terms.names import product_precision, real_dtype
from fwbench.workloads import COPIES

#: The suite, eagerly: what is compiled computes its products with the same libraries. For the whole
#: of its time, because a ceiling is the fastest round of many.
_ARGUMENTS = (
    *("--fw-execution=eager", "--fw-timeout=120", "--fw-revisit=0", "-v"),
    *("--benchmark-max-time=0.5", "--fw-precision=off"),
    *("--fw-toggle=pinned=off,on", "--fw-toggle=tf32=off,on"),
)

_COPY, _CACHED = "copy", "cached_copy"

_BETWEEN = {copy_operation.name for copy_operation in COPIES}


def path_of(facts: CaseFacts) -> str:
    """Between which memory a case copies; empty where it does not go between host and GPU."""
    if facts.workload not in _BETWEEN:
        return ""
    pinned = (facts.toggles or {}).get("pinned") == "on"
    return f"{facts.workload}, pinned" if pinned else facts.workload


@dataclass(frozen=True)
class Ceiling:
    """Ceilings of one device; :class:`StoredCeiling` explains its rates."""

    flops_per_s: Mapping[str, float] = field(default_factory=dict)
    #: Read and written bytes together, of an array that no cache holds.
    bytes_per_s: float | None = None
    by: Mapping[str, str] = field(default_factory=dict)
    #: Each byte once.
    copied_per_s: Mapping[str, float] = field(default_factory=dict)
    #: Which copies a cache holds, their rates show.
    cached_per_s: Mapping[str, float] = field(default_factory=dict)
    undisturbed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def holds_for(self, framework: str) -> dict[str, float]:
        """The rates of products that a framework, with its version, cannot exceed by much.

        Its own product has been measured, and nothing disturbed it: what another framework reached,
        or this one beside busy processes, says nothing of what it can do.
        """
        rates = self.flops_per_s.items()
        return {dtype: r for dtype, r in rates if framework in self.undisturbed.get(dtype, ())}

    def least_s(self, facts: CaseFacts) -> float | None:
        """The least seconds that a case can take; None where that is not known."""
        if facts.flops is None or facts.bytes is None:
            return None
        if path := path_of(facts):
            rate = self.copied_per_s.get(path)
            return facts.bytes / rate if rate else None
        toggles = facts.toggles or {}
        moved_at = self._rate_of(facts.bytes) if toggles.get("l2") == "hot" else self.bytes_per_s
        precision = product_precision(facts.dtype, toggles)
        return dataclasses.replace(self, bytes_per_s=moved_at).attainable_s(
            facts.flops, facts.bytes, precision
        )

    def _rate_of(self, moved_bytes: float) -> float | None:
        """The best rate of copies of at least this size: a cache holds smaller ones, too."""
        rates = [rate for size, rate in self.cached_per_s.items() if float(size) >= moved_bytes]
        return max([*rates, self.bytes_per_s]) if self.bytes_per_s else None

    def attainable_s(self, flops: float, moved_bytes: float, dtype: str) -> float | None:
        """The least seconds for work in a dtype, or in ``tf32``; None where that is not known."""
        best = self.flops_per_s.get(real_dtype(dtype))
        if not self.bytes_per_s or (flops and not best):
            return None
        return max(flops / best if best else 0.0, moved_bytes / self.bytes_per_s)

    def with_result(self, facts: CaseFacts, seconds: float) -> Self:
        """This ceiling with one more result of the suite, if it is a better one.

        Args:
            seconds: of its fastest round; what the GPU itself needed counts, where its own clock
                measured that.
        """
        has_clock = facts.device_clock in DEVICE_CLOCKS and facts.device_s is not None
        if facts.workload == _CACHED and not has_clock:
            return self  # launches take longer than such copies
        if has_clock:
            seconds = min(seconds, facts.device_s or seconds)
        is_contended = facts.condition == CONTENDED
        framework = f"{facts.framework} {facts.framework_version}"
        by = f"{framework} ({CONTENDED})" if is_contended else framework
        if facts.workload == _COPY:
            rate = (facts.bytes or 0.0) / seconds
            if rate <= (self.bytes_per_s or 0.0):
                return self
            return dataclasses.replace(self, bytes_per_s=rate, by={**self.by, _COPY: by})
        table, place, work = _place(facts)
        known, rate = getattr(self, table), (work or 0.0) / seconds
        found: dict[str, Any] = {}
        if table == "flops_per_s" and not is_contended and facts.full_speed != 0:
            whole = [*self.undisturbed.get(place, ()), framework]
            found["undisturbed"] = {**self.undisturbed, place: whole}
        if rate > known.get(place, 0.0):
            found[table] = {**known, place: rate}
            found["by"] = {**self.by, _CACHED if facts.workload == _CACHED else place: by}
        return dataclasses.replace(self, **found)


def _place(facts: CaseFacts) -> tuple[str, str, float | None]:
    """Where the rate of a result belongs: in which of the tables of a ceiling, and at what place.

    The third is the work of a call.
    """
    if path := path_of(facts):
        return "copied_per_s", path, facts.bytes
    if facts.workload == _CACHED:
        return "cached_per_s", str(int(facts.bytes or 0)), facts.bytes
    return "flops_per_s", product_precision(facts.dtype, facts.toggles or {}), facts.flops


def measure(threads: int, watching: session.Watching = nullcontext) -> dict[str, Ceiling]:
    """Measure the ceilings of every device, by device name; takes a minute or two."""
    arguments = [*_ARGUMENTS, f"--fw-threads={threads}"]
    # Where a framework's product fails, or takes minutes, another one's counts.
    results = session.measure_suite(
        "fwbench.ceilings.suite", arguments, watching, all_must_pass=False
    )
    ceilings: dict[str, Ceiling] = {}
    for record in stored_run("ceilings", results).records:
        device = str(record.facts.device_name)
        ceiling = ceilings.get(device, Ceiling())
        ceilings[device] = ceiling.with_result(record.facts, record.smallest_s)
    return ceilings


class Ceilings:
    """The stored ceilings of a machine."""

    def __init__(self, root: Path, machine: Mapping[str, Any], threads: int) -> None:
        names = ("cpu", "cpus", "physical_cores", "usable_cpus", "gpu_driver")
        facts = [*(machine.get(name) for name in names), threads]
        fingerprint = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
        self.path = project.own_folder(root, "ceilings") / f"{fingerprint}.json"

    def load(self) -> dict[str, Ceiling]:
        """The ceilings by device name; empty if they were not measured, or are out of date."""
        try:
            return from_json(loads(files.read(self.path)))
        except (StorageError, ValueError):
            return {}

    def prepare(self) -> None:
        """Find out, before anything is measured, whether they can be kept."""
        try:
            project.make_own_folder(self.path.parent)
        except OSError as error:
            where = self.path.parent
            raise StorageError(f"cannot write under {where}: {error.strerror}") from error
        files.check_writable(self.path)

    def store(self, ceilings: Mapping[str, Ceiling]) -> None:
        """Write the ceilings of this machine, in place of earlier ones."""
        self.prepare()
        files.write_atomically(self.path, json.dumps(to_json(ceilings), indent=2) + "\n")


def to_json(ceilings: Mapping[str, Ceiling]) -> dict[str, Any]:
    """Ceilings by device as JSON's own types."""
    return {device: dataclasses.asdict(ceiling) for device, ceiling in ceilings.items()}


def from_json(values: Any) -> dict[str, Ceiling]:
    """Ceilings by device, from what :func:`to_json` returned."""
    return of_session(SessionFacts.checked({"ceilings": values}))


def of_run(output_json: Mapping[str, Any]) -> dict[str, Ceiling]:
    """The ceilings stored with a run; empty if they cannot be read."""
    session = output_json.get("fwbench")
    try:
        return from_json(session.get("ceilings")) if isinstance(session, dict) else {}
    except DamagedFact:
        return {}


def of_session(session: SessionFacts) -> dict[str, Ceiling]:
    """The ceilings stored with a session."""
    return {
        device: Ceiling(
            stored.flops_per_s or {},
            stored.bytes_per_s,
            stored.by or {},
            stored.copied_per_s or {},
            {size: r for size, r in (stored.cached_per_s or {}).items() if size.isdecimal()},
            stored.undisturbed or {},
        )
        for device, stored in (session.ceilings or {}).items()
    }


def annotate(entries: Iterable[Mapping[str, Any]], ceilings: Mapping[str, Ceiling]) -> None:
    """Write into records what was attainable, and which share of that was reached.

    ``attainable_s`` are the least seconds of a call; ``attainable_share`` is that over its median
    time, which reports show: that of launches is the median of their medians. More than 1 is
    possible where a cache holds the data.
    """
    for entry in entries:
        facts = CaseFacts.unchecked(entry.get("extra_info", {}).get("fwbench", {}))
        ceiling = ceilings.get(facts.device_name or "")
        if ceiling is None or facts.result_is_view:
            continue
        seconds = ceiling.least_s(facts)
        medians_s = [launch.median_s for launch in facts.launches or () if launch.median_s]
        median_s = statistics.median(medians_s) if medians_s else entry["stats"].get("median")
        if seconds and median_s:
            share = seconds / median_s
            best = CaseFacts(attainable_s=seconds, attainable_share=share)
            entry["extra_info"]["fwbench"].update(best)
