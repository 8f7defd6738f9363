"""Selection and settings from any source: values that have been parsed and checked one by one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from fwbench.errors import UsageError
from fwbench.machine import usable_cpus
from fwbench.options import values
from fwbench.packaged import read_table
from fwbench.terms import toggles
from fwbench.terms.names import DEFAULT_DTYPE, EVERY_DTYPE
from fwbench.terms.presets import PRESETS, Schedule

#: Default of the suite's own tests: some operations of every family, unless tests are requested in
#: particular.
REPRESENTATIVES = "representatives"


@dataclass(frozen=True)
class Selection:
    """Which cells of the grid to measure; None for the defaults that :data:`SELECTORS` name."""

    frameworks: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    executions: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    #: Default: forward; with ``--benchmark-disable`` forward and backward.
    directions: tuple[str, ...] | None = None
    #: A preset or sizes (numbers, and texts of shapes); default: quick, of representatives its
    #: smallest and largest; with ``--benchmark-disable`` each operation's smallest.
    sizes: tuple[int | str, ...] | str | None = None
    #: Names of families, ``all`` or ``representatives``; default: all.
    families: tuple[str, ...] | None = None

    def over(self, other: Self) -> Self:
        """This selection, with the fields that it leaves open taken from another."""
        chosen = {name: value for name, value in vars(self).items() if value is not None}
        return replace(other, **chosen)


@dataclass(frozen=True)
class Options:
    """Options of a session; :data:`SETTINGS` explains those that are not here."""

    #: What the command line selects; it wins over markers.
    requested: Selection
    #: What the ini file selects; markers win over it.
    configured: Selection
    threads: int
    isolation: str
    #: Per case, its bind, verification and warm-up included; of a training loop, per epoch.
    timeout_s: float
    warmup_s: float
    #: Of rounds, as a share of their median; 0 for never. A marker may ask for another.
    precision: float
    epochs: int | None
    warmup_epochs: int | None
    repetitions: int | None
    steps: int | None
    #: The requested values, by toggle.
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
    #: The smallest changes to fail for, as shares, by what is judged; None for no gate.
    gate: Mapping[str, float] | None
    fail_on: tuple[str, ...]
    allow_different: tuple[str, ...]
    engine: str = "local"
    places: Path | None = None
    scaling: str = "strong"
    #: Whether the number of threads was given.
    threads_asked: bool = False
    cannot_tell: str = "skip"
    wait: bool = True
    resume: bool = False

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
        names = ("epochs", "warmup_epochs", "repetitions", "steps")
        given = {name: getattr(self, name) for name in names}
        if self.epochs is not None:
            preset = replace(preset, steps=None)
        schedule = replace(preset, **{n: v for n, v in given.items() if v is not None})
        if schedule.warmup_epochs >= schedule.epochs:
            raise UsageError(
                f"epochs={schedule.epochs} and warmup-epochs={schedule.warmup_epochs} leave none "
                "to measure; give --fw-train more epochs, or fewer warmup-epochs"
            )
        return schedule


#: The parts of the options in pytest's help.
PARTS = ("what is measured", "how long", "judged by")


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
    about: str = ""  # all that there is to know; the help is one line
    ini: bool = False  # without a flag: a setting of ini files, and of -o
    plain: bool = False  # plain tests of pytest-benchmark heed it, too
    part: str = PARTS[0]

    @property
    def dest(self) -> str:
        """The name of the option in pytest's configuration, and of its ini setting."""
        return self.flag.removeprefix("--").replace("-", "_")


_FILE = read_table(__package__, "options.toml")

#: What reads texts, by the names in ``options.toml``.
_PARSERS: Mapping[str, Callable[..., Any]] = {**vars(values), "toggle": toggles.parse}

#: The lists in texts of help.
_LISTS = {
    "dtypes": ", ".join(EVERY_DTYPE),
    "dtype": DEFAULT_DTYPE,
    "presets": ", ".join(PRESETS),
    "toggles": ", ".join(toggles.TOGGLES),
    "verdicts": ", ".join(values.FAIL_ON),
    "facts": ", ".join(values.FACTS),
}


def _option(row: Mapping[str, Any]) -> Option:
    switch = row.get("switch", False)
    name, *given = row.get("parse", ["switch"])
    parse = _PARSERS[name]
    default = row.get("default", False if switch else None)
    kept = tuple(default) if isinstance(default, list) else default
    return Option(
        row["flag"],
        (lambda text: parse(text, *given)) if given else parse,
        row.get("metavar", ""),
        row["help"],
        lambda: kept,
        row.get("repeated", False),
        switch,
        row.get("alone"),
        " ".join(row.get("about", row["help"]).format(**_LISTS).split()),
        row.get("ini", False),
        row.get("plain", False),
        row.get("part", PARTS[0]),
    )


SELECTORS: Mapping[str, Option] = {name: _option(row) for name, row in _FILE["selectors"].items()}

#: The toggles of gangs, which have settings of their own; and flags, those that all gangs need.
GANG_TOGGLES = tuple(name for name, toggle in toggles.TOGGLES.items() if toggle.gang)
_WITH_FLAGS = {
    "replicas": "train with so many processes together",
    "network": "limit the network between replicas: 1gbit",
}


def _toggle_option(toggle: toggles.Toggle) -> Option:
    def parse(text: str) -> Any:
        return toggles.parse(f"{toggle.name}={text}")

    same = f"as --fw-toggle {toggle.name}="
    return Option(
        f"--fw-{toggle.name}",
        parse,
        toggle.metavar,
        _WITH_FLAGS.get(toggle.name, same),
        about=f"{toggle.meaning}; {same} (default: {toggle.default})",
        ini=toggle.name not in _WITH_FLAGS,
    )


def _settings() -> Iterator[tuple[str, Option]]:
    """The settings by name, the toggles of gangs behind the option of all toggles."""
    for name, row in _FILE["settings"].items():
        option = _option(row)
        yield name, replace(option, default=usable_cpus) if name == "threads" else option
        if name == "toggles":
            yield from ((gang, _toggle_option(toggles.TOGGLES[gang])) for gang in GANG_TOGGLES)


SETTINGS: Mapping[str, Option] = dict(_settings())

DEST = {name: option.dest for name, option in {**SELECTORS, **SETTINGS}.items()}
