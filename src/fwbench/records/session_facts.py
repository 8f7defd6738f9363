"""What is recorded of a session as a whole: every key of ``fwbench`` in its JSON, declared once."""

from __future__ import annotations

from typing import Any

from fwbench.records.table import NOT_NEGATIVE, POSITIVE, Table, fact
from fwbench.records.units import BYTES, COUNT, NATS, NONE, SECONDS, Unit

#: Why a case is missing that was still to be measured when its session ended.
NOT_REACHED = "not reached before the session ended"

_A_SECOND = Unit("1/s")


class Machine(Table):
    """The machine that a session ran on."""

    cpu: str | None = fact("model of the CPU")
    cpus: int | None = fact("CPUs of the system", COUNT, POSITIVE, null="where it does not tell")
    physical_cores: int | None = fact("cores", COUNT, POSITIVE, null="where it does not tell")
    usable_cpus: int | None = fact("CPUs that this process may use", COUNT, POSITIVE)
    memory_bytes: int | None = fact("memory", BYTES, POSITIVE)
    os: str | None = fact("operating system")
    python: str | None = fact("version of Python")
    gpu_driver: str | None = fact("version of NVIDIA's driver", null="where there is none")


class StoredCeiling(Table):
    """What a device can do at most."""

    strict = True

    flops_per_s: dict[str, float] | None = fact(
        "floating-point operations a second in matrix products, by dtype", _A_SECOND, NOT_NEGATIVE
    )
    bytes_per_s: float | None = fact(
        "bytes a second in copies", _A_SECOND, NOT_NEGATIVE, null="where none could be measured"
    )
    by: dict[str, str] | None = fact("framework that was best, by dtype and `copy`")


class StoredPlan(Table):
    """How often every case was measured."""

    launches: int = fact("fresh processes for each case", COUNT, POSITIVE)
    seed: int = fact("seed of the order of cases", COUNT)


class StoredManifest(Table):
    """A framework that was used, as far as it is read; see ``fwbench.manifest.Manifest``."""

    version: str | None = fact("version of the framework")
    build: dict[str, Any] | None = fact("how it was built")

    def is_known(self, name: str) -> bool:
        """Whatever else a framework says of itself is not read from stored runs."""
        return True


class NotMeasured(Table):
    """A benchmark that was not measured."""

    nodeid: str = fact("node id of its test")
    framework: str = fact("framework of the case; empty for a benchmark that is not fwbench's")
    why: str = fact("reason: deselected, skipped, failed, not reached")


class Outcome(Table):
    """How many tests failed, and whether the session was interrupted."""

    failed: int = fact("tests that failed", COUNT, NOT_NEGATIVE)
    interrupted: bool = fact("whether it was interrupted, or broke down")


class StoredGate(Table):
    """The verdicts of ``--fw-gate``, and its comparison."""

    base: str | None = fact("name of the baseline")
    verdicts: dict[str, int] | None = fact("cases by verdict", COUNT, NOT_NEGATIVE)
    comparison: dict[str, Any] | None = fact("all figures, as `fwbench gate --json` writes them")
    problem: str | None = fact("why nothing could be compared")


class LossCurves(Table):
    """How far loss curves of the same work lie apart."""

    group: str = fact("the work")
    max_deviation: float = fact("largest difference between two curves", NATS)
    epoch: int = fact("epoch in which it is, from 1", COUNT, POSITIVE)
    between: list[str] = fact("the two trainings")


class BreakEven(Table):
    """When an execution that compiles is ahead of ``eager``."""

    group: str = fact("the work")
    name: str = fact("framework and execution")
    compile_s: float = fact("what compiling took", SECONDS, NOT_NEGATIVE)
    steps: int | None = fact("steps until it is ahead", COUNT, NOT_NEGATIVE, null="if it never is")


class SessionFacts(Table):
    """What fwbench records of a session; empty if it did not write the run."""

    version: str | None = fact("version of fwbench")
    schema: int | None = fact("version of this layout", COUNT, POSITIVE)
    machine: Machine | None = fact("the machine")
    ceilings: dict[str, StoredCeiling] | None = fact("what its devices can do at most, by model")
    threads: int | None = fact("threads of every framework", COUNT, POSITIVE)
    isolation: str | None = fact("`process`, or `none`")
    arguments: list[str] | None = fact("command line of pytest")
    launches: StoredPlan | None = fact("plan of launches", null="where cases were measured once")
    frameworks: dict[str, StoredManifest] | None = fact("frameworks that were used, by name")
    absent: dict[str, str] | None = fact("why other frameworks could not be used, by name")
    planned: int | None = fact("benchmarks that were to be measured", COUNT, NOT_NEGATIVE)
    missing: list[NotMeasured] | None = fact("benchmarks that were not measured")
    outcome: Outcome | None = fact("how it ended", null="where it is not known")
    gate: StoredGate | None = fact("what its gate said", null="without one")
    loss_curves: list[LossCurves] | None = fact("how far loss curves lie apart", NONE)
    break_even: list[BreakEven] | None = fact("when compiling breaks even", NONE)
