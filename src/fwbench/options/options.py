"""Selection and settings from any source: values that have been parsed and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fwbench.errors import UsageError
from fwbench.machine import usable_cpus
from fwbench.options import values
from fwbench.terms import toggles
from fwbench.terms.names import DEFAULT_DTYPE, EVERY_DTYPE
from fwbench.terms.presets import PRESETS, Schedule

#: Default of the suite's own tests: some operations of every family, unless tests are requested in
#: particular.
REPRESENTATIVES = "representatives"


@dataclass(frozen=True)
class Selection:
    """Which cells of the grid to measure; None for the defaults that :data:`SELECTORS` name.

    Attributes:
        directions: default: forward; with ``--benchmark-disable`` forward and backward.
        sizes: a preset or sizes (numbers, and texts of shapes); default: quick, of representatives
            its smallest and largest; with ``--benchmark-disable`` each operation's smallest.
        families: names of families, ``all`` or ``representatives``; default: all.
    """

    frameworks: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    executions: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    directions: tuple[str, ...] | None = None
    sizes: tuple[int | str, ...] | str | None = None
    families: tuple[str, ...] | None = None

    def over(self, other: Selection) -> Selection:
        """This selection, with the fields that it leaves open taken from another."""
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        return replace(other, **chosen)


@dataclass(frozen=True)
class Options:
    """Options of a session; :data:`SETTINGS` explains those that are not here.

    Attributes:
        requested: what the command line selects; it wins over markers.
        configured: what the ini file selects; markers win over it.
        timeout_s: per case, its bind, verification and warm-up included; of a training loop, per
            epoch.
        precision: of rounds, as a share of their median; 0 for never. A marker may ask for another.
        toggles: the requested values, by toggle.
        gate: the smallest changes to fail for, as shares, by what is judged; None for no gate.
        threads_asked: whether the number of threads was given.
    """

    requested: Selection
    configured: Selection
    threads: int
    isolation: str
    timeout_s: float
    warmup_s: float
    precision: float
    epochs: int | None
    warmup_epochs: int | None
    repetitions: int | None
    steps: int | None
    toggles: toggles.Values
    profile: bool
    traces: Path | None
    memory: bool
    data: Path | None
    record_host: bool
    tables: bool
    launches: int | None
    revisit: int | None
    budget_s: float | None
    race: bool
    threshold: float
    seed: int | None
    first_call: str
    gate: Mapping[str, float] | None
    fail_on: tuple[str, ...]
    allow_different: tuple[str, ...]
    engine: str = "local"
    places: Path | None = None
    scaling: str = "strong"
    threads_asked: bool = False

    @property
    def probing(self) -> str:
        """The option for which cases are run again, each in a process of its own; or nothing."""
        return "--fw-profile" if self.profile else "--fw-memory" if self.memory else ""

    @property
    def is_adaptive(self) -> bool:
        """True if results decide what is launched next."""
        return self.race or self.budget_s is not None

    def selection(self, marker: Selection) -> Selection:
        """Selection of a test with this marker."""
        return self.requested.over(marker.over(self.configured))

    def schedule(self, preset: Schedule) -> Schedule:
        """Schedule of a training: the requested one, or else the preset's.

        A number of epochs asks for whole ones, even if the preset has few steps.
        """
        given = {
            "epochs": self.epochs,
            "warmup_epochs": self.warmup_epochs,
            "repetitions": self.repetitions,
            "steps": self.steps,
        }
        if self.epochs is not None:
            preset = replace(preset, steps=None)
        schedule = replace(preset, **{n: v for n, v in given.items() if v is not None})
        if schedule.warmup_epochs >= schedule.epochs:
            raise UsageError(
                f"of {schedule.epochs} epochs {schedule.warmup_epochs} are for warm-up, which "
                "leaves none to measure; give more --fw-epochs, fewer --fw-warmup-epochs"
            )
        return schedule


@dataclass(frozen=True)
class Option:
    """An option: its flag, parser and explanation; the ini setting follows from it."""

    flag: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    default: Callable[[], Any] = lambda: None
    repeated: bool = False  # given several times, or in an ini file several in a row
    switch: bool = False  # a flag without a value; in an ini file true or false
    alone: str | None = None  # what is meant where the flag has no value; None: it needs one

    @property
    def dest(self) -> str:
        """The name of the option in pytest's configuration, and of its ini setting."""
        return self.flag.removeprefix("--").replace("-", "_")


SELECTORS: Mapping[str, Option] = {
    "frameworks": Option(
        "--fw", values.names, "NAMES", "frameworks (default: all that are installed)"
    ),
    "devices": Option(
        "--fw-device",
        values.devices,
        "NAMES",
        "devices: cpu, gpu, gpu:N (default: the CPU and the first GPU of each model)",
    ),
    "executions": Option(
        "--fw-execution",
        values.names,
        "NAMES",
        "executions: eager, graph, xla, hybridize, compile ... "
        "(default: all but those that run on request only, such as compile)",
    ),
    "dtypes": Option(
        "--fw-dtype",
        values.names,
        "NAMES",
        f"dtypes: {', '.join(EVERY_DTYPE)} (default: {DEFAULT_DTYPE}, or the operation's own)",
    ),
    "directions": Option(
        "--fw-direction",
        values.directions,
        "NAMES",
        "directions: forward, backward (the forward pass and the gradient; default: forward)",
    ),
    "sizes": Option(
        "--fw-size",
        values.sizes,
        "SIZES",
        f"sizes (whole numbers, or shapes such as 64x64x64: fwbench list), or a preset: "
        f"{', '.join(PRESETS)} (default: quick; of representatives its smallest and largest)",
    ),
    "families": Option(
        "--fw-family",
        values.names,
        "NAMES",
        "families of operations, or all (default: the representatives of every family; all that "
        "-k, -m, --lf, or a file or test that is named selects)",
    ),
}

#: The toggles of gangs, which have flags of their own.
GANG_TOGGLES = tuple(name for name, toggle in toggles.TOGGLES.items() if toggle.gang)


def _toggle_option(toggle: toggles.Toggle) -> Option:
    """The flag of a toggle."""

    def parse(text: str) -> Any:
        return toggles.parse(f"{toggle.name}={text}")

    return Option(
        f"--fw-{toggle.name}",
        parse,
        toggle.metavar,
        f"{toggle.meaning}; as --fw-toggle {toggle.name}= (default: {toggle.default})",
    )


def _switch(flag: str, explanation: str) -> Option:
    """A flag without a value, off by default."""
    return Option(flag, values.switch, "", explanation, lambda: False, switch=True)


SETTINGS: Mapping[str, Option] = {
    "threads": Option(
        "--fw-threads",
        lambda text: values.positive(text, "number of threads"),
        "N",
        "threads of every framework, set and checked (default: the CPUs this process may use)",
        usable_cpus,
    ),
    "isolation": Option(
        "--fw-isolation",
        lambda text: values.one_of("isolation", text, values.ISOLATIONS),
        "KIND",
        "process: each framework in a worker process of its own; none: all in this process, for "
        "debugging (default: process; with --pdb and --trace: none)",
        lambda: "process",
    ),
    "timeout_s": Option(
        "--fw-timeout",
        lambda text: values.seconds(text, "timeout", 0.001),
        "SECONDS",
        "how long a case may take before its worker is ended; there is none without isolation "
        "(default: 300)",
        lambda: 300.0,
    ),
    "warmup_s": Option(
        "--fw-warmup",
        lambda text: values.seconds(text, "warm-up"),
        "SECONDS",
        "how long a case is warmed up at most, until its times are steady; 0: not at all "
        "(default: 0.2)",
        lambda: 0.2,
    ),
    "precision": Option(
        "--fw-precision",
        values.precision,
        "SHARE",
        "a case's rounds end when the 99% interval of their median is narrower than this share of "
        "it, after 20 rounds and 20 ms at least and --benchmark-max-time at most; it says nothing "
        "of other processes; off: at --benchmark-max-time only (default: 2%)",
        lambda: 0.02,
    ),
    "epochs": Option(
        "--fw-epochs",
        lambda text: values.positive(text, "number of epochs"),
        "N",
        "whole epochs of every training loop, warm-up epochs included (default: the preset's; "
        "quick has a few steps only)",
    ),
    "warmup_epochs": Option(
        "--fw-warmup-epochs",
        lambda text: values.natural(text, "number of warm-up epochs"),
        "N",
        "how many of them are kept outside the statistics (default: 1)",
    ),
    "repetitions": Option(
        "--fw-repetitions",
        lambda text: values.positive(text, "number of repetitions"),
        "N",
        "trainings of every loop, each from the initial weights on (default: the preset's)",
    ),
    "steps": Option(
        "--fw-steps",
        lambda text: values.positive(text, "number of steps"),
        "N",
        "batches of an epoch at most (default: the preset's)",
    ),
    "toggles": Option(
        "--fw-toggle",
        toggles.parse,
        "NAME=VALUES",
        f"switches in addition to the execution, each value a case: {', '.join(toggles.TOGGLES)}; "
        "may be given several times",
        tuple,
        repeated=True,
    ),
    **{name: _toggle_option(toggles.TOGGLES[name]) for name in GANG_TOGGLES},
    "scaling": Option(
        "--fw-scaling",
        lambda text: values.one_of("scaling", text, values.SCALINGS),
        "KIND",
        "strong: replicas share the batch of a case; weak: each of them has one of that size "
        "(default: strong)",
        lambda: "strong",
    ),
    "engine": Option(
        "--fw-engine",
        values.engine,
        "NAME",
        "what starts replicas: local, child processes on this machine; mpi, an mpiexec; ray, a Ray "
        "cluster; or an engine of an installed package (default: local)",
        lambda: "local",
    ),
    "places": Option(
        "--fw-places",
        values.file,
        "FILE",
        "TOML file that says where replicas run, and how they reach this machine (default: here)",
    ),
    "profile": _switch(
        "--fw-profile",
        "after a case was timed, run a few calls of it under its framework's own profiler, in a "
        "process of their own, and record where the time goes by class of operators",
    ),
    "traces": Option(
        "--fw-traces",
        values.output_folder,
        "FOLDER",
        "where --fw-profile writes a trace of each case for https://ui.perfetto.dev (default: "
        ".fwbench/traces)",
    ),
    "memory": _switch(
        "--fw-memory",
        "after a case was timed, measure the peak memory of a few calls of it in a process of "
        "their own; of training, of the forward pass alone in another one",
    ),
    "data": Option(
        "--fw-data",
        values.folder,
        "FOLDER",
        "where data sets are (default: FWBENCH_DATA, then the frameworks' own folders)",
    ),
    "record_host": _switch(
        "--fw-record-host",
        "keep the machine's name and absolute paths in records (default: left out)",
    ),
    "tables": _switch(
        "--fw-tables",
        "show pytest-benchmark's tables of cases, too (default: with -v, and with options of "
        "pytest-benchmark that are about them, such as --benchmark-compare)",
    ),
    "launches": Option(
        "--fw-launches",
        lambda text: values.positive(text, "number of launches"),
        "N",
        "measure every case in N fresh processes, in shuffled order (default: in one, in order)",
    ),
    "revisit": Option(
        "--fw-revisit",
        lambda text: values.natural(text, "number of cases"),
        "N",
        "at the end measure N cases again, in fresh processes and within 20 s, to find out how far "
        "medians repeat; 0: none; launches show it by themselves (default: 12, within a tenth of "
        "the time of a session that takes a minute or more)",
    ),
    "budget_s": Option(
        "--fw-budget",
        lambda text: values.duration(text, "budget"),
        "DURATION",
        "spend this time (90s, 5min, 1h) on launches: first of all cases, then of those whose time "
        "is least certain, until each is known to --fw-threshold",
    ),
    "race": _switch(
        "--fw-race",
        "find out who is fastest at the same work: after each launch clear losers are dropped, "
        "and the others launched again, until it is decided or --fw-budget (default: 10min) is "
        "over",
    ),
    "threshold": Option(
        "--fw-threshold",
        lambda text: values.share(text, "threshold"),
        "SHARE",
        "the smallest difference that matters to --fw-race, and how well --fw-budget is to know "
        "each time (default: 3%)",
        lambda: 0.03,
    ),
    "seed": Option(
        "--fw-seed",
        lambda text: values.natural(text, "seed"),
        "N",
        "of the order of cases within launches (default: a new one, which is printed)",
    ),
    "first_call": Option(
        "--fw-first-call",
        lambda text: values.one_of("kind of first call", text, values.FIRST_CALLS),
        "KIND",
        "fresh: in the first launch every case has a process of its own, where its first call is "
        "the first of all; that takes a start of the framework for each case (default: shared)",
        lambda: "shared",
    ),
    "gate": Option(
        "--fw-gate",
        values.thresholds,
        "THRESHOLDS",
        "fail if cases have become slower than in the baseline (--benchmark-compare FILE, or else "
        "what fwbench baseline set), by the threshold or more (default: 3%), or if something else "
        "has grown: 5%,memory=100%,dispatch=...,first-call=...,compilation=...; needs "
        "a baseline of two sessions or more",
        alone="3%",
    ),
    "fail_on": Option(
        "--fw-fail-on",
        lambda text: values.among("verdict to fail on", values.FAIL_ON, text),
        "VERDICTS",
        f"verdicts of the gate that fail the session: {', '.join(values.FAIL_ON)} (default: "
        "regressed,missing,all-inconclusive)",
        lambda: ("regressed", "missing", "all-inconclusive"),
    ),
    "allow_different": Option(
        "--fw-allow-different",
        lambda text: values.among("fact that may differ", values.FACTS, text),
        "FACTS",
        f"what may differ from the gate's baseline: {', '.join(values.FACTS)} (default: nothing)",
        tuple,
    ),
}

DEST = {name: option.dest for name, option in {**SELECTORS, **SETTINGS}.items()}
