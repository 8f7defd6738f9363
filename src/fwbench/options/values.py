"""From text to values: what follows a flag, stands in an ini file, or comes with a marker.

Each function raises UsageError for a text that is something else; ``what`` begins its message.
"""

import math
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from fwbench.errors import UsageError, unknown
from fwbench.terms.presets import PRESETS, is_shape

DIRECTIONS = ("forward", "backward")

#: The entry-point group of what starts the processes of a case that several do together
#: (:mod:`fwbench.gangs.launch`), and the engine that is always there.
ENGINES = "fwbench.engines"
LOCAL = "local"
_EXTRA_ENGINES = ("mpi", "ray")

#: Instead of a precision: rounds do not end early.
OFF = "off"

#: Verdicts that a comparison can fail on, and what may differ between its sides if that is allowed.
FAIL_ON = ("different-results", "regressed", "missing", "inconclusive", "all-inconclusive")
FACTS = (
    *("cpu", "gpu", "driver", "threads", "framework", "toggles", "data", "schedule", "precision"),
    *("engine", "network", "places"),
)

#: What a threshold without a name is of.
TIME = "time"

#: More is a slip, or switches a threshold off without a word.
_MOST_GROWTH = 1000

#: Of the largest whole number; records have none that is larger.
_DIGITS = 18

#: Seconds of each unit of a duration, from long to short; each may be left out.
_UNITS_S = {"h": 3600.0, "m(?:in)?": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DURATION = re.compile(
    r"\s*".join(rf"(?:(\d+(?:\.\d+)?)\s*{unit})?" for unit in _UNITS_S), re.ASCII
)

#: What an ini file may call true and false, as pytest takes them.
_ON, _OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def names(text: str) -> tuple[str, ...]:
    """``"a, b"`` as ``("a", "b")``."""
    parts = tuple(part.strip() for part in text.split(","))
    if not all(parts):
        raise UsageError(f"{text!r} has an empty name; give names separated by commas")
    return tuple(dict.fromkeys(parts))


def among(text: str, kind: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names that a text lists, each of which is known."""
    return tuple(one_of(name, kind, known) for name in names(text))


def devices(text: str) -> tuple[str, ...]:
    """Device names; ``gpu`` is the first one, ``gpu:0``."""
    for name in names(text):
        if not re.fullmatch(r"cpu|gpu(:\d+)?", name):
            raise unknown("device", name, ("cpu", "gpu", "gpu:N"))
    return tuple(dict.fromkeys("gpu:0" if name == "gpu" else name for name in names(text)))


def directions(text: str) -> tuple[str, ...]:
    """The directions that a text such as ``"forward, backward"`` lists."""
    return among(text, "direction", DIRECTIONS)


def fail_on(text: str) -> tuple[str, ...]:
    """Verdicts that a comparison can fail on."""
    return among(text, "verdict to fail on", FAIL_ON)


def fact(text: str) -> str:
    """A fact that may differ between the sides of a comparison."""
    return one_of(text, "fact that may differ", FACTS)


def facts(text: str) -> tuple[str, ...]:
    """Several such facts."""
    return tuple(map(fact, names(text)))


def sizes(text: str) -> tuple[int | str, ...] | str:
    """The name of a preset, or sizes: whole numbers, and texts that may be shapes."""
    parts = names(text)
    if not any(part.lstrip("+-").isdigit() or is_shape(part) for part in parts):
        if len(parts) > 1:
            raise UsageError(f"size {text!r}: give one preset ({', '.join(PRESETS)}) or sizes")
        known = (*PRESETS, "positive whole numbers", "shapes such as 64x64x64 (fwbench list)")
        return one_of(parts[0], "size or preset", known)
    return tuple(
        dict.fromkeys(part if is_shape(part) else positive(part, "size") for part in parts)
    )


def positive(text: str, what: str) -> int:
    """The positive whole number that a text writes out."""
    if not (_is_whole(text) and int(text)):
        raise UsageError(
            f"{what} {text!r} is not a positive whole number of up to {_DIGITS} digits"
        )
    return int(text)


def natural(text: str, what: str) -> int:
    """The whole number from 0 that a text writes out."""
    if not _is_whole(text):
        raise UsageError(f"{what} {text!r} is not a whole number from 0 of up to {_DIGITS} digits")
    return int(text)


def schedule(text: str) -> tuple[tuple[str, int], ...]:
    """``"epochs=5,steps=20"`` as the numbers of a training's schedule, by their settings."""
    parts = (part.partition("=") for part in names(text))
    return tuple(_scheduled(name.strip(), value.strip()) for name, _, value in parts)


#: What reads each number of a schedule, and what it is of.
SCHEDULE = {
    "epochs": (positive, "number of epochs"),
    "warmup_epochs": (natural, "number of warm-up epochs"),
    "repetitions": (positive, "number of repetitions"),
    "steps": (positive, "number of steps"),
}


def _scheduled(name: str, value: str) -> tuple[str, int]:
    setting = name.replace("-", "_")
    if setting not in SCHEDULE:
        known = [f"{known.replace('_', '-')}=N" for known in SCHEDULE]
        raise unknown("number of a schedule", name, known)
    read, what = SCHEDULE[setting]
    return setting, read(value, what)


def _is_whole(text: str) -> bool:
    """True for a number in ASCII: other scripts have digits, too, which nobody gives on purpose."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def path(text: str) -> Path:
    """A path; an empty text, as of a variable that is not set, is none."""
    if not text.strip():
        raise UsageError("an empty name is given; name a file or a folder")
    try:
        named = Path(text).expanduser()
        named.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a user without a home, a NUL
        raise UsageError(f"not a usable name of a file or a folder: {error}") from None
    return named


def folder(text: str) -> Path:
    """The absolute path of a directory that exists."""
    if not path(text).is_dir():
        raise UsageError(f"{text!r} is not a directory; name the one that holds the data sets")
    return path(text).absolute()


def file(text: str) -> Path:
    """The absolute path of a file that exists."""
    if not path(text).is_file():
        raise UsageError(f"{text!r} is not a file; name one that is there")
    return path(text).absolute()


def output_folder(text: str) -> Path:
    """The absolute path of a directory to write to, which need not exist."""
    if path(text).exists() and not path(text).is_dir():
        raise UsageError(f"{text!r} is a file; name a directory to write to")
    return path(text).absolute()


#: Of the options that name a file or a directory.
PATHS = (folder, file, output_folder)


def duration(text: str, what: str, least_s: float | None = None) -> float:
    """Seconds of a duration: ``"90s"``, ``"1h30min"``, ``"2ms"``; without a unit it is seconds.

    Args:
        least_s: the shortest; None for any above 0.
    """
    given = _DURATION.fullmatch(text.strip()) if text.strip() else None
    parts = map(float, given.groups(default="0")) if given else ()
    named_s = sum(part * unit_s for part, unit_s in zip(parts, _UNITS_S.values(), strict=False))
    value = named_s if given else _number(text)
    is_long_enough = value > 0 if least_s is None else value >= least_s
    if not (is_long_enough and value < math.inf):  # NaN is neither
        least = "above 0" if least_s is None else f"of {least_s:g} s or more"
        raise UsageError(
            f"{what} {text!r} is not a duration {least}; give 90s, 5min, 1h30min, 20ms, or seconds"
        )
    return value


def share(text: str, what: str = "share") -> float:
    """A fraction between 0 and 1: ``"3%"`` or ``"0.03"``."""
    value = _fraction(text)
    if not 0 < value < 1:  # NaN is not, either
        raise UsageError(f"{what} {text!r} is not a fraction between 0 and 1; give 5% or 0.05")
    return value


def precision(text: str) -> float:
    """The width of an interval as a share of its median: ``"2%"``, ``"0.02"``; 0 for ``"off"``."""
    if text.strip() == OFF:
        return 0.0
    value = _fraction(text)
    if not 0 < value < 1:
        raise UsageError(
            f"precision {text!r} is not a fraction between 0 and 1; give 2% or 0.02, or {OFF} to "
            "measure for the whole of --benchmark-max-time"
        )
    return value


def thresholds(text: str) -> Mapping[str, float]:
    """``"5%,memory=100%"`` as ``{"time": 0.05, "memory": 1.0}``: what is not named is the time."""
    shares: dict[str, float] = {}
    for part in names(text):
        name, equals, value = part.partition("=")
        name = name.strip() if equals else TIME
        if name in shares:
            raise UsageError(f"{text!r} has two thresholds of {name}; give one")
        if name == TIME:
            shares[name] = share(value if equals else part, "threshold")
        else:
            shares[name] = growth(value, f"threshold of {name}")
    return shares


def growth(text: str, what: str) -> float:
    """A share of an earlier value, maybe more than all of it: ``"200%"``, ``"2"``."""
    value = _fraction(text)
    if not 0 < value <= _MOST_GROWTH:
        raise UsageError(
            f"{what} {text!r} is not a positive share up to {_MOST_GROWTH:,} (times as much); give "
            "50%, 0.5 or 200%"
        )
    return value


def _fraction(text: str) -> float:
    """The number that a text writes out, with or without a per cent sign; NaN if it is none."""
    number = text.strip()
    return _number(number.removesuffix("%")) / (100 if number.endswith("%") else 1)


def _number(text: str) -> float:
    """The number that a text writes out in ASCII; NaN if it is none."""
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan


def switch(text: str) -> bool:
    """The value of an ini setting that stands for a flag."""
    given = text.strip().lower()
    if given not in (*_ON, *_OFF):
        raise UsageError(f"{text!r} is neither true nor false")
    return given in _ON


def engine(text: str) -> str:
    """The name of an engine that an installed package has."""
    known = list(dict.fromkeys([LOCAL, *sorted(metadata.entry_points(group=ENGINES).names)]))
    if text in _EXTRA_ENGINES and text not in known:
        raise UsageError(
            f"the engine {text} comes with fwbench-extras, which is not installed here: install it "
            f"(docs/installing.md), or use -o fw_engine={LOCAL}"
        )
    return one_of(text, "engine", known)


def one_of(name: str, kind: str, known: Sequence[str]) -> str:
    """A name that must be one of those that are known."""
    if name not in known:
        raise unknown(kind, name, known)
    return name
