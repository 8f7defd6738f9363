"""Facts of a session as a whole: every key of ``fwbench`` in its JSON, declared once."""

from typing import Any

from fwbench.records.table import Table, fact

#: Why a case is missing that was still to be measured when its session ended.
NOT_REACHED = "not reached before the session ended"

#: Why one is missing that was left out by ``-k``, ``-m``, ``--deselect`` or a plugin.
DESELECTED = "deselected"

#: Why one is missing that failed.
FAILED = ("setup failed", "call failed")

#: Prefix of the reason of a benchmark that was skipped.
SKIPPED = "skipped: "

#: Prefixes of the reasons of benchmarks that were left out on purpose; an expected failure is
#: ``skipped`` without a reason.
LEFT_OUT = (DESELECTED, "skipped")


class MachineFacts(Table):
    """The machine that a session ran on."""

    cpu: str | None = fact()
    cpus: int | None = fact()
    physical_cores: int | None = fact()
    usable_cpus: int | None = fact()
    memory_bytes: int | None = fact()
    os: str | None = fact()
    python: str | None = fact()
    gpu_driver: str | None = fact()
    numa_nodes: int | None = fact()
    huge_pages: str | None = fact()


class StoredCeiling(Table):
    """Attainable rates of a device."""

    strict = True

    flops_per_s: dict[str, float] | None = fact()
    bytes_per_s: float | None = fact()
    copied_per_s: dict[str, float] | None = fact()
    cached_per_s: dict[str, float] | None = fact()
    by: dict[str, str] | None = fact()
    undisturbed: dict[str, list[str]] | None = fact()


class StoredPlan(Table):
    """Number of launches of every case."""

    launches: int = fact()
    seed: int = fact()


class StoredManifest(Table):
    """A framework that was used, as far as it is read; see ``fwbench.terms.manifest.Manifest``."""

    version: str | None = fact()
    build: dict[str, Any] | None = fact()

    def is_known(self, name: str) -> bool:
        """Other facts of a framework are not read from stored runs."""
        return True


class NotMeasured(Table):
    """A benchmark that was not measured."""

    nodeid: str = fact()
    framework: str = fact()
    params: dict[str, Any] | None = fact()
    why: str = fact()


class SessionOutcome(Table):
    """Number of failed tests, and whether the session was interrupted."""

    failed: int = fact()
    interrupted: bool = fact()


class LaunchTimes(Table):
    """Time of a launch of a comparison, by what it was spent on."""

    start_s: float = fact()
    collection_s: float = fact()
    fixtures_s: float = fact()
    calls_s: float = fact()


class StoredJudgement(Table):
    """The verdict on one metric of one case."""

    key: str = fact()
    name: str = fact()
    framework: str = fact()
    verdict: str = fact()
    reason: str | None = fact()
    metric: str | None = fact()
    ratio: float | None = fact()
    low: float | None = fact()
    high: float | None = fact()
    p: float | None = fact()
    visible: float | None = fact()
    threshold: float | None = fact()
    base: list[float] | None = fact()
    contender: list[float] | None = fact()
    cycles_ratio: float | None = fact()


class StoredRules(Table):
    """The numbers that a comparison was decided by, as far as they are read."""

    confidence: float = fact()

    def is_known(self, name: str) -> bool:
        """The others are shown as they are."""
        return True


class StoredVersion(Table):
    """A package of which two builds have different versions."""

    name: str = fact()
    base: str | None = fact()
    contender: str | None = fact()


class StoredCause(Table):
    """A difference between both sides that was found beside that of their times."""

    kind: str = fact()
    words: str = fact()
    time_s: float | None = fact()
    base_s: float | None = fact()
    contender_s: float | None = fact()


class StoredExplanation(Table):
    """The causes of one case's change."""

    key: str = fact()
    name: str = fact()
    verdict: str = fact()
    reason: str | None = fact()
    base_s: float = fact()
    contender_s: float = fact()
    causes: list[StoredCause] = fact()
    gaps: list[str] = fact()
    unexplained_s: float | None = fact()
    nothing_above: float | None = fact()


class StoredComparison(Table):
    """A comparison with a base: what `--json` of `fwbench gate` and `fwbench ab` writes."""

    base: str = fact()
    contender: str = fact()
    judgements: list[StoredJudgement] = fact()
    rules: StoredRules = fact()
    notes: list[str] = fact()
    interrupted: bool | None = fact()
    versions: list[StoredVersion] | None = fact()
    verdicts: dict[str, int] | None = fact()
    means: dict[str, float] | None = fact()
    explanations: list[StoredExplanation] | None = fact()


class StoredStep(Table):
    """A step of a row of versions, from one that was measured to a later one."""

    after: str = fact()
    since: str = fact()
    verdict: str | None = fact()
    ratio: float | None = fact()
    bounds: list[float] = fact()
    launches: int = fact()
    reason: str | None = fact()


class StoredRowCase(Table):
    """A case in the versions of a row."""

    times_s: dict[str, float] = fact()
    steps: list[StoredStep] = fact()
    changes: list[StoredStep] = fact()
    missing: dict[str, str] = fact()


class StoredRow(Table):
    """A row of versions: what `--json` of `fwbench since` writes."""

    row: str = fact()
    versions: list[str] = fact()
    gaps: dict[str, str] = fact()
    cases: dict[str, StoredRowCase] = fact()
    apart: dict[str, str] | None = fact()
    rules: dict[str, Any] = fact()
    explanations: list[StoredExplanation] | None = fact()
    interrupted: bool = fact()
    launches: int = fact()
    sessions: int = fact()
    reused: int = fact()
    took_s: float = fact()


class StoredGate(Table):
    """The verdicts of ``--fw-gate``, and its comparison."""

    base: str | None = fact()
    verdicts: dict[str, int] | None = fact()
    comparison: StoredComparison | None = fact()
    problem: str | None = fact()


class StoredContestant(Table):
    """A contestant of a race."""

    case: str = fact()
    name: str = fact()
    standing: str = fact()
    launches: int = fact()
    contended: int = fact()
    time_s: float | None = fact()
    behind: float | None = fact()
    why: str | None = fact()
    disturbed: bool | None = fact()


class StoredGroup(Table):
    """A group of contestants that do the same work."""

    title: str = fact()
    verdict: str = fact()
    threshold: float = fact()
    contestants: list[StoredContestant] = fact()
    more_launches: int | None = fact()
    more_s: float | None = fact()
    more_than: int | None = fact()


class StoredRace(Table):
    """The verdicts of ``--fw-race``."""

    level: float = fact()
    groups: list[StoredGroup] = fact()


class StoredUnsettled(Table):
    """A case whose time is not known well enough."""

    case: str = fact()
    name: str = fact()
    uncertainty: float | None = fact()


class StoredBudget(Table):
    """Result of ``--fw-budget``."""

    budget_s: float = fact()
    took_s: float = fact()
    launches: int = fact()
    cases: int = fact()
    launch_s: float | None = fact()
    resolution: float | None = fact()
    unsettled: list[StoredUnsettled] | None = fact()


class StoredRevisits(Table):
    """Cases of a framework that were measured twice, in different processes."""

    cases: int = fact()
    sd: float = fact()
    pairs: dict[str, list[float]] = fact()
    earlier: bool | None = fact()
    contended: int | None = fact()
    late: int | None = fact()


class LossCurves(Table):
    """Difference of loss curves of the same work."""

    group: str = fact()
    max_deviation: float = fact()
    epoch: int = fact()
    between: list[str] = fact()


class BreakEven(Table):
    """When an execution that compiles is ahead of ``eager``."""

    group: str = fact()
    name: str = fact()
    compile_s: float = fact()
    steps: int | None = fact()


class SessionFacts(Table):
    """Facts of a session; empty if fwbench did not write the run."""

    version: str | None = fact()
    schema: int | None = fact()
    machine: MachineFacts | None = fact()
    ceilings: dict[str, StoredCeiling] | None = fact()
    threads: int | None = fact()
    variables: dict[str, str] | None = fact()
    libraries: dict[str, str] | None = fact()
    isolation: str | None = fact()
    arguments: list[str] | None = fact()
    launches: StoredPlan | None = fact()
    frameworks: dict[str, StoredManifest] | None = fact()
    absent: dict[str, str] | None = fact()
    planned: int | None = fact()
    missing: list[NotMeasured] | None = fact()
    outcome: SessionOutcome | None = fact()
    took: LaunchTimes | None = fact()
    gate: StoredGate | None = fact()
    budget: StoredBudget | None = fact()
    race: StoredRace | None = fact()
    revisits: dict[str, StoredRevisits] | None = fact()
    fastest: dict[str, str] | None = fact()
    loss_curves: list[LossCurves] | None = fact()
    break_even: list[BreakEven] | None = fact()
