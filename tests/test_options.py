"""Options are read, checked and explained; each of their sources has its place."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from fwbench import options
from fwbench.errors import UsageError
from fwbench.options import Options, Selection, from_marker

# Parsers


def timeout(text: str) -> float:
    """A number of seconds that cannot be zero."""
    return options.seconds(text, "timeout", zero=False)


def warm_up(text: str) -> float:
    """A number of seconds that may be zero."""
    return options.seconds(text, "warm-up", zero=True)


def threads(text: str) -> int:
    """A positive whole number."""
    return options.positive(text, "number of threads")


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (options.names, "torch", ("torch",)),
        (options.names, " torch , numpy ", ("torch", "numpy")),
        (options.names, "torch,numpy,torch", ("torch", "numpy")),
        (options.devices, "cpu", ("cpu",)),
        (options.devices, "gpu", ("gpu:0",)),
        (options.devices, "gpu:1,cpu,gpu", ("gpu:1", "cpu", "gpu:0")),
        (options.devices, "gpu,gpu:0", ("gpu:0",)),
        (options.directions, "backward, forward", ("backward", "forward")),
        (options.sizes, "quick", "quick"),
        (options.sizes, "paper", "paper"),
        (options.sizes, " full ", "full"),
        (options.sizes, "64", (64,)),
        (options.sizes, "64, 8", (64, 8)),
        (options.sizes, "8,8", (8,)),
        (options.sizes, "8,08", (8,)),
        (threads, "1", 1),
        (threads, "16", 16),
        (timeout, "0.5", 0.5),
        (timeout, "1e3", 1000.0),
        (warm_up, "0", 0.0),
        (warm_up, "2", 2.0),
        (options.isolation, "process", "process"),
        (options.isolation, "none", "none"),
    ],
)
def test_good_values_are_read(parse: Callable[[str], Any], text: str, expected: Any) -> None:
    """Every form that an option takes is read, in the order given, each value once."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (options.names, "", "'' has an empty name"),
        (options.names, "torch,,numpy", "'torch,,numpy' has an empty name"),
        (options.names, "torch,", "give names separated by commas"),
        (options.devices, " ,cpu", "empty name"),
        (options.directions, "forwards", "unknown direction 'forwards'; .* 'forward'?"),
        (options.directions, "both", "known: forward, backward.$"),
        (options.sizes, "", "empty name"),
        (options.sizes, "0", "size '0' is not a positive whole number"),
        (options.sizes, "-8", "size '-8' is not a positive whole number"),
        (options.sizes, "8,+16", r"size '\+16' is not"),
        (options.sizes, "8,quick", "size 'quick' is not a positive whole number"),
        (options.sizes, "quick,full", "give one preset .quick, paper, full. or sizes"),
        (options.sizes, "quik", "unknown size or preset 'quik'; .* Did you mean 'quick'?"),
        (options.sizes, "1.5", "unknown size or preset '1.5'; .* positive whole numbers"),
        (options.sizes, "8²", "size or preset|positive whole number"),
        (threads, "0", "number of threads '0' is not a positive whole number"),
        (threads, "two", "number of threads 'two'"),
        (threads, "1.0", "positive whole number"),
        (threads, "", "positive whole number"),
        (timeout, "0", "timeout '0' is not a number of seconds above 0"),
        (timeout, "-1", "above 0"),
        (timeout, "inf", "above 0"),
        (timeout, "nan", "above 0"),
        (timeout, "5min", "timeout '5min' is not a number of seconds above 0"),
        (warm_up, "-0.1", "warm-up '-0.1' is not a number of seconds from 0"),
        (warm_up, "nan", "from 0"),
        (warm_up, "1e999", "from 0"),
        (options.isolation, "proces", "unknown isolation 'proces'; .* Did you mean 'process'?"),
        (options.isolation, "", "known: process, none"),
    ],
)
def test_bad_values_are_refused(parse: Callable[[str], Any], text: str, message: str) -> None:
    """Every other form is refused, with what was given and what would be understood."""
    with pytest.raises(UsageError, match=message):
        parse(text)


# Selections


def test_a_selection_goes_over_another_field_by_field() -> None:
    """What a selection leaves open is taken from the other, what it says stays."""
    over = Selection(frameworks=("torch",), sizes=(8,))
    under = Selection(frameworks=("numpy",), dtypes=("float64",))
    expected = Selection(frameworks=("torch",), sizes=(8,), dtypes=("float64",))
    assert over.over(under) == expected


# Sources


def of(pytester: pytest.Pytester, *arguments: str, ini: str = "") -> Options:
    """The options of a session with this command line and these ini settings."""
    pytester.makeini(f"[pytest]\n{ini}")
    return Options.of(pytester.parseconfig(*arguments))


def test_defaults(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any source every selection is open, and settings are what the help says."""
    spec = options._SETTINGS["threads"]
    monkeypatch.setitem(
        options._SETTINGS,  # type: ignore[arg-type]
        "threads",
        options._Option(spec.flag, spec.parse, spec.metavar, spec.help, lambda: 5),
    )
    assert of(pytester) == Options(
        asked=Selection(),
        configured=Selection(),
        threads=5,
        isolation="process",
        timeout_s=300.0,
        warmup_s=0.5,
    )


GIVEN = [
    ("--fw=torch,numpy", "fw = torch,numpy", "frameworks", ("torch", "numpy")),
    ("--fw-device=gpu", "fw_device = gpu", "devices", ("gpu:0",)),
    ("--fw-execution=xla", "fw_execution = xla", "executions", ("xla",)),
    ("--fw-dtype=float16", "fw_dtype = float16", "dtypes", ("float16",)),
    ("--fw-direction=backward", "fw_direction = backward", "directions", ("backward",)),
    ("--fw-size=8,64", "fw_size = 8,64", "sizes", (8, 64)),
    ("--fw-threads=3", "fw_threads = 3", "threads", 3),
    ("--fw-isolation=none", "fw_isolation = none", "isolation", "none"),
    ("--fw-timeout=9.5", "fw_timeout = 9.5", "timeout_s", 9.5),
    ("--fw-warmup=0", "fw_warmup = 0", "warmup_s", 0.0),
]


@pytest.mark.parametrize(
    ("argument", "setting", "name", "value"), GIVEN, ids=[name for _, _, name, _ in GIVEN]
)
@pytest.mark.parametrize("source", ["command line", "ini"])
def test_each_option_is_read_from_either_source(
    pytester: pytest.Pytester, argument: str, setting: str, name: str, value: Any, source: str
) -> None:
    """Each option is understood on the command line and as a setting of the ini file."""
    if source == "ini":
        found = of(pytester, ini=setting)
        selection = found.configured
    else:
        found = of(pytester, argument)
        selection = found.asked
    where = selection if name in vars(selection) else found
    assert getattr(where, name) == value


def test_every_option_is_among_those_tested() -> None:
    """No option was added without a line in the table above."""
    assert {name for _, _, name, _ in GIVEN} == {*options._SELECTORS, *options._SETTINGS}


def test_an_empty_setting_is_the_default(pytester: pytest.Pytester) -> None:
    """A setting without a value leaves the default as it is."""
    found = of(pytester, ini="fw =\nfw_timeout =\n")
    assert found.configured == Selection()
    assert found.timeout_s == 300.0


def test_the_command_line_wins_over_a_setting(pytester: pytest.Pytester) -> None:
    """A setting given twice is what the command line says."""
    found = of(pytester, "--fw-threads=3", "--fw-warmup=0", ini="fw_threads = 4\nfw_warmup = 9")
    assert (found.threads, found.warmup_s) == (3, 0.0)


def test_command_line_over_marker_over_ini_over_default(pytester: pytest.Pytester) -> None:
    """Each field of a selection is from the first source that says something about it."""
    ini = "fw = from_ini\nfw_dtype = from_ini\nfw_execution = from_ini"
    found = of(pytester, "--fw=from_command_line", ini=ini)
    marker = Selection(frameworks=("from_marker",), dtypes=("from_marker",))
    assert found.selection(marker) == Selection(
        frameworks=("from_command_line",),
        dtypes=("from_marker",),
        executions=("from_ini",),
        devices=None,
    )


def test_a_bad_setting_is_refused_by_name(pytester: pytest.Pytester) -> None:
    """What is wrong in the ini file is said to be wrong there."""
    with pytest.raises(UsageError, match="ini setting fw_size: size '0' is not a positive"):
        of(pytester, ini="fw_size = 0")


def test_a_bad_argument_is_refused_by_name(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong on the command line is refused by pytest itself, with the option's name."""
    with pytest.raises((pytest.UsageError, SystemExit, argparse.ArgumentError)) as caught:
        of(pytester, "--fw-size=0")
    said = f"{caught.value}{capsys.readouterr().err}"
    assert "argument --fw-size: size '0' is not a positive whole number" in said


# Markers


def marked(**keywords: Any) -> pytest.Mark:
    """The marker with these keywords."""
    return pytest.mark.fwbench(**keywords).mark


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({}, Selection()),
        ({"sizes": (8, 64)}, Selection(sizes=(8, 64))),
        ({"sizes": [8]}, Selection(sizes=(8,))),
        ({"sizes": 8}, Selection(sizes=(8,))),
        ({"sizes": "8, 64"}, Selection(sizes=(8, 64))),
        ({"sizes": "full"}, Selection(sizes="full")),
        ({"frameworks": "torch"}, Selection(frameworks=("torch",))),
        ({"devices": ("gpu",)}, Selection(devices=("gpu:0",))),
        (
            {"executions": ["eager"], "dtypes": ("float16", "float32"), "directions": "backward"},
            Selection(
                executions=("eager",), dtypes=("float16", "float32"), directions=("backward",)
            ),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "read",
)
def test_markers_take_names_and_numbers(keywords: dict[str, Any], expected: Selection) -> None:
    """A marker's keywords are read from text, from one value and from sequences alike."""
    assert from_marker(marked(**keywords)) == expected


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"size": 8}, "unknown keyword of the marker fwbench 'size'; .* Did you mean 'sizes'?"),
        ({"threads": 2}, "unknown keyword of the marker fwbench 'threads'"),
        ({"sizes": (0,)}, "size '0' is not a positive whole number"),
        ({"sizes": ()}, "empty name"),
        ({"sizes": None}, "size"),
        ({"directions": ("sideways",)}, "unknown direction 'sideways'"),
    ],
    ids=str,
)
def test_bad_markers_are_refused(keywords: dict[str, Any], message: str) -> None:
    """Unknown keywords and bad values of a marker are refused as those of the command line are."""
    with pytest.raises(UsageError, match=message):
        from_marker(marked(**keywords))
