"""Reads options: from the command line, the ini file and markers.

Every option of the group ``fwbench`` is also an ini setting (``--fw-size`` is ``fw_size``). The
command line wins over a test's marker, a marker over the ini file.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from fwbench import suite
from fwbench.errors import UsageError, unknown
from fwbench.options import values
from fwbench.options.options import (
    DEST,
    GANG_TOGGLES,
    PARTS,
    SELECTORS,
    SETTINGS,
    Option,
    Options,
    Selection,
)
from fwbench.terms import toggles

if TYPE_CHECKING:
    from fwbench.workloads.grid import Cell

#: What needs the items of a session in its own process: flags, and their options.
_NEED_ITEMS = {
    "--pdb": "usepdb",
    "--trace": "trace",
    "--setup-plan": "setupplan",  # before --setup-only, which it implies
    "--setup-only": "setuponly",
}


def debugger_flag(config: pytest.Config) -> str:
    """The flag for which a session measures without isolation; empty if there is none."""
    flag = next((flag for flag, name in _NEED_ITEMS.items() if config.getoption(name, False)), "")
    if flag and config.getoption(DEST["isolation"]) == "process":
        raise UsageError(
            f"{flag} needs the frameworks in this process, where the terminal is, and "
            "--fw-isolation=process starts others: leave out one of them"
        )
    return flag


def add_to(parser: pytest.Parser) -> None:
    """Add the groups of fwbench to pytest's options, and each as an ini setting."""
    groups = {part: parser.getgroup(f"fwbench {part}", f"fwbench: {part}") for part in PARTS}
    for option in (*SELECTORS.values(), *SETTINGS.values()):
        parser.addini(option.dest, option.help if option.ini else f"as {option.flag}", default=None)
        if not option.ini:
            text = option.help.replace("%", "%%")  # which argparse formats, and ini settings not
            group = groups[option.part]
            group.addoption(option.flag, dest=option.dest, help=text, **_form(option))


def _form(option: Option) -> dict[str, Any]:
    if option.switch:
        return {"action": "store_const", "const": True}
    return {
        "type": checked(option.parse),
        "action": "append" if option.repeated else "store",
        "nargs": None if option.alone is None else "?",
        "const": option.alone,
        "metavar": option.metavar,
    }


def checked(parse: Callable[..., Any], *given: Any) -> Callable[[str], Any]:
    """A type for argparse, which shows the messages of its own errors only."""

    def convert(text: str) -> Any:
        try:
            return parse(text, *given)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _ini(config: pytest.Config, name: str) -> Any:
    option = {**SELECTORS, **SETTINGS}[name]
    try:
        text = _raw(config, option.dest)
        if text in (None, ""):
            return None
        if isinstance(text, list):  # of TOML
            raise UsageError(f"{text} is a list; give a text, with commas between values")
        if not isinstance(text, str):
            raise UsageError(f"{text!r} is neither a text nor a number; give a text, in quotes")
        if option.repeated:
            return [option.parse(part) for part in re.split(r"\s+(?=[\w-]+\s*=)", text.strip())]
        if option.parse in values.PATHS and config.inipath:
            # Relative to the file that says so, wherever pytest is started.
            text = str(config.inipath.parent / values.path(text))
        return option.parse(text)
    except (UsageError, pytest.UsageError) as error:
        raise UsageError(f"ini setting {option.dest}: {error}") from None


def _raw(config: pytest.Config, dest: str) -> Any:
    """The value of an ini setting, numbers and booleans of TOML as texts."""
    try:
        return config.getini(dest)
    except (TypeError, pytest.UsageError):  # of [tool.pytest], where pytest takes texts alone
        if config.inipath is None or config.inipath.suffix != ".toml":
            raise
        tables = tomllib.loads(config.inipath.read_text("utf-8"))
        given = tables.get("tool", tables)["pytest"][dest]
    return str(given) if isinstance(given, int | float) else given


def from_config(config: pytest.Config) -> Options:
    """The options of a session, from the command line and the ini file."""
    debugging = debugger_flag(config)
    settings = {n: _setting(config, n) for n in SETTINGS}
    settings |= dict.fromkeys(values.SCHEDULE) | dict(itertools.chain(*settings.pop("train")))
    settings |= {n: SETTINGS[n].default() for n in ignored(config)}
    given = [toggle for name in GANG_TOGGLES if (toggle := settings.pop(name))]
    settings["toggles"] = _united([*settings["toggles"], *given])
    if debugging:
        settings["isolation"] = "none"
    options = Options(
        requested=Selection(**{n: config.getoption(DEST[n]) for n in SELECTORS}),
        configured=Selection(**{n: _ini(config, n) for n in SELECTORS}),
        **settings,
        threads_asked=_given(config, "threads") is not None,
    )
    launching = {
        "--fw-race": options.race,
        "--fw-budget": options.budget_s is not None,
        "--fw-launches": options.launches is not None,
    }
    flag = next((flag for flag, given in launching.items() if given), None)
    if flag is not None and options.isolation == "none":
        raise UsageError(
            f"{flag} measures in fresh processes, and {debugging or '--fw-isolation=none'} in this "
            "one: leave out one of them"
        )
    if options.probing and options.isolation == "none":
        raise UsageError(
            f"{options.probing} runs each case again in a process of its own, and "
            f"{debugging or '--fw-isolation=none'} has one process for all: leave out one of them"
        )
    if options.resume and options.is_adaptive:
        raise UsageError(
            f"--fw-resume continues a fixed number of launches, and with {flag} the number depends "
            "on their results: leave out one of them"
        )
    if options.first_call == "fresh" and flag is None:
        raise UsageError(
            "fw_first_call=fresh measures first calls in the first launch, and there are no "
            "launches: add --fw-launches 5, or leave it out"
        )
    return options


#: pytest-benchmark's options that change what a time means.
_OF_ROUNDS = (
    *("timer", "min_time", "max_time", "min_rounds", "calibration_precision"),
    *("precision", "confidence", "warmup", "warmup_iterations", "disable_gc"),
)


def asked_for(config: pytest.Config, options: Options) -> dict[str, str]:
    """Options that decide how a session measures, equal in one that goes on with it.

    It may select other tests, and write other files.
    """
    from fwbench.workloads.data import VARIABLE

    rounds = {f"--benchmark-{name.replace('_', '-')}": f"benchmark_{name}" for name in _OF_ROUNDS}
    asked = {flag: str(config.getoption(name, None)) for flag, name in rounds.items()}
    settings = {**vars(options)}
    requested, configured = settings.pop("requested"), settings.pop("configured")
    asked |= {SELECTORS[name].flag: str(value) for name, value in vars(requested).items()}
    asked |= {DEST[name]: str(value) for name, value in vars(configured).items()}
    if not settings.pop("threads_asked"):
        settings["threads"] = f"{options.threads} by default"
    del settings["resume"]
    flags = {name: option.flag for name, option in SETTINGS.items()}
    asked |= {flags.get(name, name): str(value) for name, value in settings.items()}
    return {**asked, VARIABLE: str(os.environ.get(VARIABLE))}


#: What measures in fresh processes, or needs what was measured so.
_LAUNCHING = ("launches", "budget_s", "race", "first_call", "gate")


def ignored(config: pytest.Config) -> list[str]:
    """The settings of the ini file that a session ignores whose command line has no isolation.

    They are those of launches. On the command line they are refused.
    """
    if not debugger_flag(config) and config.getoption(DEST["isolation"]) != "none":
        return []
    configured = [name for name in _LAUNCHING if config.getoption(DEST[name], None) is None]
    return [n for n in configured if _ini(config, n) not in (None, SETTINGS[n].default())]


def has_gate(config: pytest.Config) -> bool:
    """True if there is a gate; without a look at any other option."""
    dest = DEST["gate"]
    return config.getoption(dest) is not None or bool(_raw(config, dest))


def names_suite_alone(config: pytest.Config) -> bool:
    """True if the tests of a session are those of fwbench's suite, and no others."""
    named = ((suite.path(name) or name).partition("::")[0] for name in config.args)
    files = (config.invocation_params.dir / name for name in named)
    return all(file.resolve().is_relative_to(suite.folder()) for file in files)


def resumes_by_ini(config: pytest.Config) -> bool:
    """True if that is set in the ini file alone, and so for first sessions as well."""
    dest = DEST["resume"]
    overrides = (text.partition("=")[0].strip() for text in config.option.override_ini or ())
    return config.getoption(dest) is None and dest not in overrides


def resumes(config: pytest.Config) -> bool:
    """True if an interrupted session is to be gone on with, likewise."""
    try:
        return bool(_setting(config, "resume"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def skips_what_cannot_be_told(config: pytest.Config) -> bool:
    """True if claims that are neither shown nor refuted skip their tests.

    Raises:
        pytest.UsageError: the ini file has something else.
    """
    try:
        return bool(_setting(config, "cannot_tell") == SETTINGS["cannot_tell"].default())
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def launches_again(config: pytest.Config) -> bool:
    """True if plain benchmarks of this session are measured in further launches."""
    if config.option.collectonly or config.getoption("benchmark_disable", False):
        return False
    try:
        budget_s, launches = (_given(config, name) for name in ("budget_s", "launches"))
    except UsageError:
        return False  # whoever begins the session tells
    is_apart = hasattr(config, "workerinput") or config.getoption(DEST["isolation"]) == "none"
    return not is_apart and (budget_s is not None or (launches or 1) > 1)


def _setting(config: pytest.Config, name: str) -> Any:
    given = _given(config, name)
    return SETTINGS[name].default() if given is None else given


def _given(config: pytest.Config, name: str) -> Any:
    """Value on the command line, or else in the ini file; None where there is none."""
    given = config.getoption(DEST[name], None)  # not of a setting without a flag
    return _ini(config, name) if given is None else given


def _united(given: Sequence[tuple[str, tuple[str, ...]]]) -> toggles.Values:
    """The values of each toggle, wherever they were given."""
    united: dict[str, tuple[str, ...]] = {}
    for name, more in given:
        united[name] = tuple(dict.fromkeys((*united.get(name, ()), *more)))
    return united


#: The marker's keywords that select nothing, and all that it has.
_THRESHOLD, _PRECISION = "threshold", "precision"
_OTHERS = (_PRECISION, _THRESHOLD)
MARKER_KEYWORDS = (*SELECTORS, *_OTHERS)

#: The marker of plain tests that says whether their results are waited for.
WAIT_MARKER = "fwbench_wait"


def from_marker(mark: pytest.Mark) -> Selection:
    """Selection of ``@pytest.mark.fwbench(..., sizes=(8, 64))`` for its test."""
    given = {name: value for name, value in mark.kwargs.items() if name not in _OTHERS}
    for name in given:
        if name not in SELECTORS:
            raise unknown("keyword of the marker fwbench", name, MARKER_KEYWORDS)
    return Selection(
        **{name: SELECTORS[name].parse(_as_text(value)) for name, value in given.items()}
    )


def waits(item: pytest.Item) -> bool:
    """True if the results of a plain test are waited for: by its marker, or else by the options."""
    mark = item.get_closest_marker(WAIT_MARKER)
    if mark is not None and mark.args:
        return bool(mark.args[0])
    try:
        return bool(_setting(item.config, "wait"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def unheeded(config: pytest.Config, cells: Sequence[Cell], *, has_plain: bool) -> str:
    """The flags of the command line that change nothing in the tests of a session, as a sentence.

    Args:
        cells: of its cases, gaps included.
        has_plain: whether it has plain benchmarks, which heed few flags.
    """
    flags = ", ".join(_unheeded(config, cells, has_plain=has_plain))
    return f"without effect on these tests: {flags}" if flags and (cells or has_plain) else ""


def _unheeded(config: pytest.Config, cells: Sequence[Cell], *, has_plain: bool) -> Iterator[str]:
    toggled = {name for cell in cells for name, _ in cell.toggles}
    heeded = {"train": any(cell.schedule for cell in cells)}
    heeded |= {name: name in toggled for name in GANG_TOGGLES}
    for name, option in {**SELECTORS, **SETTINGS}.items():
        given = None if option.ini else config.getoption(option.dest)
        if not given or (has_plain and option.plain):
            continue
        if name == "toggles":
            yield from (f"{option.flag} {each}" for each, _ in given if each not in toggled)
        elif not heeded.get(name, cells):
            yield option.flag


def profiles(config: pytest.Config) -> bool:
    """True if what plain tests have timed is profiled, too."""
    try:
        return bool(_setting(config, "profile"))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def threshold_of(mark: pytest.Mark) -> float | None:
    """The smallest change that a gate is to care for in the tests of a marker, as a share."""
    given = mark.kwargs.get(_THRESHOLD)
    return None if given is None else values.share(str(given), _THRESHOLD)


def precision_of(config: pytest.Config, mark: pytest.Mark) -> float:
    """Precision of a test's medians (:attr:`Options.precision`): command line, marker, ini file."""
    given = mark.kwargs.get(_PRECISION)
    marked = None if given is None else values.precision(str(given))
    if marked is None or config.getoption(DEST[_PRECISION]) is not None:
        return float(_setting(config, _PRECISION))
    return marked


def _as_text(value: Any) -> str:
    """A marker's names or sizes, one or several, as the command line would have them."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
