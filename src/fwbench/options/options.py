"""What to measure and how: from the command line, the ini file and markers, checked.

Every option of the group ``fwbench`` is also an ini setting (``--fw-size`` is ``fw_size``). The
command line wins over a test's marker, a marker over the ini file.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fwbench import toggles
from fwbench.errors import UsageError, unknown
from fwbench.machine import usable_cpus
from fwbench.presets import PRESETS

if TYPE_CHECKING:
    from fwbench.presets import Schedule

DIRECTIONS = ("forward", "backward")
ISOLATIONS = ("process", "none")

#: The dtypes that fwbench can verify; a framework that lacks one gets a skip that says so.
DTYPES = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Selection:
    """Which cells of the grid to measure. None stands for the default of each field.

    Attributes:
        frameworks: names; default: all that are installed.
        devices: ``cpu``, ``gpu:N``; default: all there are.
        executions: default: all but those that run on request only.
        dtypes: default: float32.
        directions: default: forward; with ``--benchmark-disable`` forward and backward.
        sizes: a preset or sizes; default: quick; with ``--benchmark-disable`` each operation's
            smallest quick one.
    """

    frameworks: tuple[str, ...] | None = None
    devices: tuple[str, ...] | None = None
    executions: tuple[str, ...] | None = None
    dtypes: tuple[str, ...] | None = None
    directions: tuple[str, ...] | None = None
    sizes: tuple[int, ...] | str | None = None

    def over(self, other: Selection) -> Selection:
        """This selection, with the fields that it leaves open taken from another."""
        ours = {name: value for name, value in vars(self).items() if value is not None}
        return replace(other, **ours)


@dataclass(frozen=True)
class Options:
    """All of fwbench's options.

    Attributes:
        asked: what the command line selects; it wins over markers.
        configured: what the ini file selects; markers win over it.
        threads: per framework.
        isolation: ``process`` or ``none``.
        timeout_s: per case, its bind, verification and warm-up included; of a training loop, per
            epoch.
        warmup_s: the longest warm-up of a case.
        epochs: of a training loop; None for the preset's.
        warmup_epochs: how many of them are not in the statistics; None for the preset's.
        repetitions: of a training loop; None for the preset's.
        steps: at most so many batches an epoch; None for the preset's.
        toggles: the values asked for, by toggle.
        data: a folder to look for data sets in first.
        launches: fresh processes for every case; None for one, in which cases keep their order.
        seed: of the order of launches and cases; None for a new one each time.
        gate: the smallest change to fail for, as a share; None for no gate.
        fail_on: the verdicts of the gate that fail the session.
        allow_different: the facts that may differ from the baseline's.
    """

    asked: Selection
    configured: Selection
    threads: int
    isolation: str
    timeout_s: float
    warmup_s: float
    epochs: int | None
    warmup_epochs: int | None
    repetitions: int | None
    steps: int | None
    toggles: toggles.Values
    data: Path | None
    launches: int | None
    seed: int | None
    gate: float | None
    fail_on: tuple[str, ...]
    allow_different: tuple[str, ...]

    @classmethod
    def of(cls, config: pytest.Config) -> Options:
        """From the command line and the ini file.

        Raises:
            UsageError: a value has the wrong form, or two do not go together; whether what is
                named exists is seen later.
        """
        options = cls(
            asked=Selection(**{n: config.getoption(_DEST[n]) for n in _SELECTORS}),
            configured=Selection(**{n: _ini(config, n) for n in _SELECTORS}),
            **{
                **{n: _setting(config, n) for n in _SETTINGS},
                "toggles": _united(_setting(config, "toggles")),
            },
        )
        if options.launches is not None and options.isolation == "none":
            raise UsageError(
                "--fw-launches measures in fresh processes, and --fw-isolation=none in this one: "
                "leave out one of them"
            )
        return options

    def selection(self, marker: Selection) -> Selection:
        """What a test with this marker is to measure."""
        return self.asked.over(marker.over(self.configured))

    def schedule(self, preset: Schedule) -> Schedule:
        """How long to train: what is asked for, and else the preset.

        A number of epochs asks for whole ones, however few steps the preset has.

        Raises:
            UsageError: every epoch would be a warm-up epoch.
        """
        asked = {
            "epochs": self.epochs,
            "warmup_epochs": self.warmup_epochs,
            "repetitions": self.repetitions,
            "steps": self.steps,
        }
        if self.epochs is not None:
            preset = replace(preset, steps=None)
        schedule = replace(preset, **{n: v for n, v in asked.items() if v is not None})
        if schedule.warmup_epochs >= schedule.epochs:
            raise UsageError(
                f"of {schedule.epochs} epochs {schedule.warmup_epochs} are for warm-up, which "
                "leaves none to measure; give more --fw-epochs, fewer --fw-warmup-epochs"
            )
        return schedule


def names(text: str) -> tuple[str, ...]:
    """``"a, b"`` as ``("a", "b")``.

    Raises:
        UsageError: no name, or an empty one.
    """
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise UsageError(f"{text!r} has an empty name; give names separated by commas")
    return tuple(dict.fromkeys(parts))


def devices(text: str) -> tuple[str, ...]:
    """Device names; ``gpu`` is the first one, ``gpu:0``.

    Raises:
        UsageError: something that no device is called.
    """
    for name in names(text):
        if not re.fullmatch(r"cpu|gpu(:\d+)?", name):
            raise unknown("device", name, ("cpu", "gpu", "gpu:N"))
    return tuple(dict.fromkeys("gpu:0" if name == "gpu" else name for name in names(text)))


def directions(text: str) -> tuple[str, ...]:
    """Directions.

    Raises:
        UsageError: an unknown one.
    """
    return tuple(_known("direction", name, DIRECTIONS) for name in names(text))


def sizes(text: str) -> tuple[int, ...] | str:
    """A preset, or sizes.

    Raises:
        UsageError: neither.
    """
    parts = names(text)
    if not any(part.lstrip("+-").isdigit() for part in parts):
        if len(parts) > 1:
            raise UsageError(f"size {text!r}: give one preset ({', '.join(PRESETS)}) or sizes")
        return _known("size or preset", parts[0], (*PRESETS, "positive whole numbers"))
    return tuple(dict.fromkeys(positive(part, "size") for part in parts))


def positive(text: str, what: str) -> int:
    """A positive whole number.

    Raises:
        UsageError: something else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{what} {text!r} is not a positive whole number")
    return int(text)


def natural(text: str, what: str) -> int:
    """A whole number from 0.

    Raises:
        UsageError: something else.
    """
    if not text.isdecimal():
        raise UsageError(f"{what} {text!r} is not a whole number from 0")
    return int(text)


def folder(text: str) -> Path:
    """A folder that is there.

    Raises:
        UsageError: it is not.
    """
    path = Path(text).expanduser()
    if not path.is_dir():
        raise UsageError(f"{text!r} is no folder; name the one that holds the data sets")
    return path.absolute()


def seconds(text: str, what: str, *, zero: bool) -> float:
    """A finite number of seconds, positive or (where allowed) zero.

    Raises:
        UsageError: something else.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise UsageError(
            f"{what} {text!r} is not a number of seconds {'from' if zero else 'above'} 0"
        )
    return value


def share(text: str, what: str = "share") -> float:
    """A share between 0 and 1: ``"3%"`` or ``"0.03"``.

    Raises:
        UsageError: something else.
    """
    number = text.strip()
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:  # NaN is not, either
        raise UsageError(f"{what} {text!r} is no share between 0 and 1; give 5% or 0.05")
    return value


def isolation(text: str) -> str:
    """An isolation.

    Raises:
        UsageError: an unknown one.
    """
    return _known("isolation", text, ISOLATIONS)


def _known(kind: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise unknown(kind, name, known)
    return name


@dataclass(frozen=True)
class _Option:
    """One option: how it is spelled, read and explained; the ini setting follows from it."""

    flag: str
    parse: Callable[[str], Any]
    metavar: str
    help: str
    default: Callable[[], Any] = lambda: None
    repeated: bool = False  # given several times, or in an ini file several in a row
    alone: str | None = None  # what is meant where the flag has no value; None: it needs one

    @property
    def dest(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")


_SELECTORS: Mapping[str, _Option] = {
    "frameworks": _Option("--fw", names, "NAMES", "frameworks (default: all that are installed)"),
    "devices": _Option(
        "--fw-device", devices, "NAMES", "devices: cpu, gpu, gpu:N (default: all there are)"
    ),
    "executions": _Option(
        "--fw-execution",
        names,
        "NAMES",
        "executions: eager, graph, xla, hybridize, compile ... "
        "(default: all but those that run on request only, such as compile)",
    ),
    "dtypes": _Option(
        "--fw-dtype", names, "NAMES", f"dtypes: {', '.join(DTYPES)} (default: float32)"
    ),
    "directions": _Option(
        "--fw-direction",
        directions,
        "NAMES",
        "directions: forward, backward (the forward pass and the gradient; default: forward)",
    ),
    "sizes": _Option(
        "--fw-size", sizes, "SIZES", f"sizes, or a preset: {', '.join(PRESETS)} (default: quick)"
    ),
}

_SETTINGS: Mapping[str, _Option] = {
    "threads": _Option(
        "--fw-threads",
        lambda text: positive(text, "number of threads"),
        "N",
        "threads of every framework, set and checked (default: the CPUs this process may use)",
        usable_cpus,
    ),
    "isolation": _Option(
        "--fw-isolation",
        isolation,
        "KIND",
        "process: each framework in a worker process of its own; none: all in this process, for "
        "debuggers (default: process)",
        lambda: "process",
    ),
    "timeout_s": _Option(
        "--fw-timeout",
        lambda text: seconds(text, "timeout", zero=False),
        "SECONDS",
        "how long a case may take before its worker is ended; there is none without isolation "
        "(default: 300)",
        lambda: 300.0,
    ),
    "warmup_s": _Option(
        "--fw-warmup",
        lambda text: seconds(text, "warm-up", zero=True),
        "SECONDS",
        "how long a case is warmed up at most, until its times are steady; 0: not at all "
        "(default: 0.5)",
        lambda: 0.5,
    ),
    "epochs": _Option(
        "--fw-epochs",
        lambda text: positive(text, "number of epochs"),
        "N",
        "whole epochs of every training loop, warm-up epochs included (default: the preset's; "
        "quick has a few steps only)",
    ),
    "warmup_epochs": _Option(
        "--fw-warmup-epochs",
        lambda text: natural(text, "number of warm-up epochs"),
        "N",
        "how many of them are kept beside the statistics (default: 1)",
    ),
    "repetitions": _Option(
        "--fw-repetitions",
        lambda text: positive(text, "number of repetitions"),
        "N",
        "trainings of every loop, each from the initial weights on (default: the preset's)",
    ),
    "steps": _Option(
        "--fw-steps",
        lambda text: positive(text, "number of steps"),
        "N",
        "at most so many batches an epoch (default: the preset's)",
    ),
    "toggles": _Option(
        "--fw-toggle",
        toggles.parse,
        "NAME=VALUES",
        f"switches beside the execution, each value a case: {', '.join(toggles.TOGGLES)}; "
        "may be given several times",
        tuple,
        repeated=True,
    ),
    "data": _Option(
        "--fw-data",
        folder,
        "FOLDER",
        "where data sets are (default: FWBENCH_DATA, then the frameworks' own folders)",
    ),
    "launches": _Option(
        "--fw-launches",
        lambda text: positive(text, "number of launches"),
        "N",
        "measure every case in N fresh processes, in shuffled order (default: in one, in order)",
    ),
    "seed": _Option(
        "--fw-seed",
        lambda text: natural(text, "seed"),
        "N",
        "of the order of cases within launches (default: a new one, which is printed)",
    ),
    "gate": _Option(
        "--fw-gate",
        lambda text: share(text, "threshold"),
        "THRESHOLD",
        "fail if cases have become slower than in the baseline (--benchmark-compare FILE, or else "
        "what fwbench baseline set), by THRESHOLD or more (default: 3%%); needs --fw-launches 5",
        alone="3%",
    ),
    "fail_on": _Option(
        "--fw-fail-on",
        names,
        "VERDICTS",
        "verdicts of the gate that fail the session: regressed, missing, inconclusive "
        "(default: regressed,missing)",
        lambda: ("regressed", "missing"),
    ),
    "allow_different": _Option(
        "--fw-allow-different",
        names,
        "FACTS",
        "what may differ from the gate's baseline: cpu, gpu, driver, threads, framework, toggles, "
        "data, schedule (default: nothing)",
        tuple,
    ),
}

_DEST = {name: option.dest for name, option in {**_SELECTORS, **_SETTINGS}.items()}


def add_to(parser: pytest.Parser) -> None:
    """Add the group ``fwbench`` to pytest's options, and each as an ini setting."""
    group = parser.getgroup("fwbench", "benchmarks of deep-learning frameworks")
    for option in (*_SELECTORS.values(), *_SETTINGS.values()):
        group.addoption(
            option.flag,
            dest=option.dest,
            type=_refusing(option),
            action="append" if option.repeated else "store",
            nargs=None if option.alone is None else "?",
            const=option.alone,
            metavar=option.metavar,
            help=option.help,
        )
        parser.addini(option.dest, option.help, default=None)


def _refusing(option: _Option) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return option.parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _ini(config: pytest.Config, name: str) -> Any:
    option = {**_SELECTORS, **_SETTINGS}[name]
    text = config.getini(option.dest)
    if text in (None, ""):
        return None
    try:
        if option.repeated:
            return [option.parse(part) for part in re.split(r"\s+(?=\w+\s*=)", text.strip())]
        if option.parse is folder and config.inipath:
            # Relative to the file that says so, wherever pytest is started.
            text = str(config.inipath.parent / Path(text).expanduser())
        return option.parse(str(text))
    except UsageError as error:
        raise UsageError(f"ini setting {option.dest}: {error}") from None


def has_gate(config: pytest.Config) -> bool:
    """Whether there is a gate; without a look at any other option."""
    dest = _DEST["gate"]
    return config.getoption(dest) is not None or bool(config.getini(dest))


def _setting(config: pytest.Config, name: str) -> Any:
    given = config.getoption(_DEST[name])
    if given is None:
        given = _ini(config, name)
    return _SETTINGS[name].default() if given is None else given


def _united(given: Sequence[tuple[str, tuple[str, ...]]]) -> toggles.Values:
    """The values of each toggle, wherever they were given."""
    values: dict[str, tuple[str, ...]] = {}
    for name, more in given:
        values[name] = tuple(dict.fromkeys((*values.get(name, ()), *more)))
    return values


#: The marker's keyword that selects nothing.
_THRESHOLD = "threshold"


def from_marker(mark: pytest.Mark) -> Selection:
    """What ``@pytest.mark.fwbench(..., sizes=(8, 64))`` selects for its test.

    Raises:
        UsageError: an unknown keyword.
    """
    given = {name: value for name, value in mark.kwargs.items() if name != _THRESHOLD}
    for name in given:
        if name not in _SELECTORS:
            raise unknown("keyword of the marker fwbench", name, (*_SELECTORS, _THRESHOLD))
    return Selection(
        **{name: _SELECTORS[name].parse(_as_text(value)) for name, value in given.items()}
    )


def threshold_of(mark: pytest.Mark) -> float | None:
    """The smallest change that a gate is to care for in the tests of a marker, as a share.

    Raises:
        UsageError: it is no share.
    """
    given = mark.kwargs.get(_THRESHOLD)
    return None if given is None else share(str(given), _THRESHOLD)


def _as_text(value: Any) -> str:
    """A marker's names or sizes, one or several, as the command line would have them."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
