"""Facts of a session as a whole: every key of ``fwbench`` in its JSON, declared once."""

from __future__ import annotations

from typing import Any

from fwbench.records.table import (
    ABOVE_MINUS_1,
    ANY,
    FRACTION,
    NOT_NEGATIVE,
    POSITIVE,
    Table,
    fact,
    one_of,
)
from fwbench.records.units import BYTES, COUNT, NATS, NONE, PER_SECOND, SECONDS, SHARE

#: Why a case is missing that was still to be measured when its session ended.
NOT_REACHED = "not reached before the session ended"

#: Prefix of the reason of a benchmark that was skipped.
SKIPPED = "skipped: "

_NOT_COMPARED = "where nothing was compared"
_NO_BOUND = "where so few launches exclude nothing"


class MachineFacts(Table):
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
    """Attainable rates of a device."""

    strict = True

    flops_per_s: dict[str, float] | None = fact(
        "floating-point operations a second in matrix products, by dtype, and in `tf32`", PER_SECOND
    )
    bytes_per_s: float | None = fact(
        "bytes a second in copies", PER_SECOND, null="where none could be measured"
    )
    copied_per_s: dict[str, float] | None = fact(
        "bytes a second of copies between host and GPU, by direction, and `, pinned` of "
        "page-locked memory",
        PER_SECOND,
    )
    cached_per_s: dict[str, float] | None = fact(
        "bytes a second of copies that a GPU's cache may hold, by the bytes that they move",
        PER_SECOND,
    )
    by: dict[str, str] | None = fact(
        "framework that was best, by dtype, `copy`, `cached_copy`, and the keys of `copied_per_s`"
    )


class StoredPlan(Table):
    """Number of launches of every case."""

    launches: int = fact(
        "fresh processes for each case; the fewest with a race or a budget", COUNT, POSITIVE
    )
    seed: int = fact("seed of the order of cases", COUNT)


class StoredManifest(Table):
    """A framework that was used, as far as it is read; see ``fwbench.terms.manifest.Manifest``."""

    version: str | None = fact("version of the framework")
    build: dict[str, Any] | None = fact("how it was built")

    def is_known(self, name: str) -> bool:
        """Other facts of a framework are not read from stored runs."""
        return True


class NotMeasured(Table):
    """A benchmark that was not measured."""

    nodeid: str = fact("node id of its test")
    framework: str = fact("framework of the case; empty for a benchmark that is not fwbench's")
    params: dict[str, Any] | None = fact(
        "parts of the case's id, as in `params` of a measured one; of skipped cases alone"
    )
    why: str = fact("reason: deselected, skipped, failed, not reached")


class SessionOutcome(Table):
    """Number of failed tests, and whether the session was interrupted."""

    failed: int = fact("tests that failed", COUNT)
    interrupted: bool = fact("whether it was interrupted, or broke down")


class StoredJudgement(Table):
    """The verdict on one metric of one case."""

    key: str = fact("what the case has in common with the same case elsewhere")
    name: str = fact("name of the case")
    framework: str = fact("framework of the case; empty for a benchmark that is not fwbench's")
    verdict: str = fact("the verdict")
    reason: str | None = fact("why, where that does not follow from the figures")
    metric: str | None = fact("what was compared; empty if nothing was")
    ratio: float | None = fact(
        "the contender's figure over the base's", NONE, POSITIVE, null=_NOT_COMPARED
    )
    low: float | None = fact("lower bound of the ratio", NONE, POSITIVE, null=_NO_BOUND)
    high: float | None = fact("upper bound of the ratio", NONE, POSITIVE, null=_NO_BOUND)
    p: float | None = fact(
        "probability that chance alone looks like that", NONE, FRACTION,
        null="where launches are in pairs",
    )  # fmt: skip
    visible: float | None = fact(
        "smallest slow-down that would have shown", SHARE, ABOVE_MINUS_1, null="if none would"
    )
    threshold: float | None = fact(
        "smallest change that is worth a verdict", SHARE, null=_NOT_COMPARED
    )
    base: list[float] | None = fact("the base's figure of each launch", NONE, NOT_NEGATIVE)
    contender: list[float] | None = fact("the contender's", NONE, NOT_NEGATIVE)
    cycles_ratio: float | None = fact(
        "`ratio` of times in cycles of a GPU's clock", NONE, POSITIVE,
        null="where the clock is not known, and on a CPU",
    )  # fmt: skip


class StoredRules(Table):
    """The numbers that a comparison was decided by, as far as they are read."""

    confidence: float = fact("of each bound of an interval", NONE, FRACTION)

    def is_known(self, name: str) -> bool:
        """The others are shown as they are."""
        return True


class StoredComparison(Table):
    """A comparison with a base: what `--json` of `fwbench gate` and `fwbench ab` writes."""

    base: str = fact("name of the base")
    contender: str = fact("name of the contender")
    judgements: list[StoredJudgement] = fact("those of every metric of every case")
    rules: StoredRules = fact("what it was decided by")
    notes: list[str] = fact("what else a reader must know")
    interrupted: bool | None = fact("whether more was to be measured")
    verdicts: dict[str, int] | None = fact("cases by verdict", COUNT)
    means: dict[str, float] | None = fact(
        "geometric mean of the ratios of times, by framework", NONE, POSITIVE
    )


class StoredGate(Table):
    """The verdicts of ``--fw-gate``, and its comparison."""

    base: str | None = fact("name of the baseline")
    verdicts: dict[str, int] | None = fact("cases by verdict", COUNT)
    comparison: StoredComparison | None = fact("the figures")
    problem: str | None = fact("why nothing could be compared")


class StoredContestant(Table):
    """A contestant of a race."""

    case: str = fact("node id of its test")
    name: str = fact("framework, execution and the requested toggles")
    standing: str = fact(
        "`fastest`, `tied`, `slower`, `open` or `lost`",
        check=one_of("fastest", "tied", "slower", "open", "lost"),
    )
    launches: int = fact("launches that measured it", COUNT)
    contended: int = fact("those in which it had to share its processors", COUNT)
    time_s: float | None = fact(
        "median time over launches", SECONDS, POSITIVE, null="where it was not measured"
    )
    behind: float | None = fact(
        "median over launches of its time over that of the leader, minus 1", SHARE, ABOVE_MINUS_1,
        null="of the leader, and without a launch that counts for both",
    )  # fmt: skip
    why: str | None = fact("why it has no time, or does not race any more")


class StoredGroup(Table):
    """A group of contestants that do the same work."""

    title: str = fact("the work")
    verdict: str = fact(
        "`fastest`, `tie` or `undecided`", check=one_of("fastest", "tie", "undecided")
    )
    threshold: float = fact("smallest difference that matters", SHARE)
    contestants: list[StoredContestant] = fact("those that did the work, the leader first")
    more_launches: int | None = fact(
        "further launches that would have decided it, as a rule", COUNT, POSITIVE,
        null="of a decided group, after too few launches to say, and with `more_than`",
    )  # fmt: skip
    more_s: float | None = fact(
        "what these would have taken", SECONDS, null="without `more_launches`"
    )
    more_than: int | None = fact(
        "further launches that would not have decided it, as a rule", COUNT, POSITIVE,
        null="of a decided group, after too few launches to say, and with `more_launches`",
    )  # fmt: skip


class StoredRace(Table):
    """The verdicts of ``--fw-race``."""

    level: float = fact("probability that the verdict of a group is wrong, at most", NONE, FRACTION)
    groups: list[StoredGroup] = fact("every group of at least two contestants")


class StoredUnsettled(Table):
    """A case whose time is not known well enough."""

    case: str = fact("node id of its test")
    name: str = fact("id of the case")
    uncertainty: float | None = fact(
        "half the width of the 95 % interval of its time", SHARE, null="after a single launch"
    )


class StoredBudget(Table):
    """Result of ``--fw-budget``."""

    budget_s: float = fact("time that launches could take", SECONDS, POSITIVE)
    took_s: float = fact("time that they took", SECONDS)
    launches: int = fact("launches that ended", COUNT)
    cases: int = fact("cases that were measured", COUNT)
    launch_s: float | None = fact("time of a launch of all cases", SECONDS, null="where none ended")
    resolution: float | None = fact("how well each time was to be known", SHARE, null="of a race")
    unsettled: list[StoredUnsettled] | None = fact("cases whose time is not known so well")


class StoredRevisits(Table):
    """Cases of a framework that were measured a second time, in fresh processes."""

    cases: int = fact("number of them", COUNT, POSITIVE)
    sd: float = fact("standard deviation of a median's logarithm", NONE, NOT_NEGATIVE)
    pairs: dict[str, list[float]] = fact("both medians, by node id", SECONDS, ANY)


class LossCurves(Table):
    """Difference of loss curves of the same work."""

    group: str = fact("the work")
    max_deviation: float = fact("largest difference between two curves", NATS)
    epoch: int = fact("epoch in which it is, from 1", COUNT, POSITIVE)
    between: list[str] = fact("the two trainings")


class BreakEven(Table):
    """When an execution that compiles is ahead of ``eager``."""

    group: str = fact("the work")
    name: str = fact("framework and execution")
    compile_s: float = fact("what compiling took", SECONDS)
    steps: int | None = fact("steps until it is ahead", COUNT, null="if it never is")


class SessionFacts(Table):
    """Facts of a session; empty if fwbench did not write the run."""

    version: str | None = fact("version of fwbench")
    schema: int | None = fact("version of this layout", COUNT, POSITIVE)
    machine: MachineFacts | None = fact("the machine")
    ceilings: dict[str, StoredCeiling] | None = fact("what its devices can do at most, by model")
    threads: int | None = fact("threads of every framework", COUNT, POSITIVE)
    isolation: str | None = fact("`process`, or `none`")
    arguments: list[str] | None = fact("command line of pytest, as far as it is harmless")
    launches: StoredPlan | None = fact("plan of launches", null="where cases were measured once")
    frameworks: dict[str, StoredManifest] | None = fact("frameworks that were used, by name")
    absent: dict[str, str] | None = fact("why other frameworks could not be used, by name")
    planned: int | None = fact("benchmarks that were to be measured", COUNT)
    missing: list[NotMeasured] | None = fact("benchmarks that were not measured")
    outcome: SessionOutcome | None = fact("how it ended", null="where it is not known")
    gate: StoredGate | None = fact("what its gate said", null="without one")
    budget: StoredBudget | None = fact("what became of its budget", null="without one")
    race: StoredRace | None = fact("who is fastest at the same work", null="without a race")
    revisits: dict[str, StoredRevisits] | None = fact("how far medians repeat, by framework")
    fastest: dict[str, str] | None = fact("which frameworks are fastest, by kind of work")
    loss_curves: list[LossCurves] | None = fact("how far loss curves are apart", NONE)
    break_even: list[BreakEven] | None = fact("when compiling breaks even", NONE)
