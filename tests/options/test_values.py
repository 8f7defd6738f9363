"""Values are read from text and checked, and an error says what would have been understood."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import UsageError
from fwbench.options import values
from fwbench.options.options import SETTINGS

# Parsers

isolation = SETTINGS["isolation"].parse


def timeout(text: str) -> float:
    return values.seconds(text, "timeout", zero=False)


def warm_up(text: str) -> float:
    return values.seconds(text, "warm-up", zero=True)


def threads(text: str) -> int:
    return values.positive(text, "number of threads")


def warmup_epochs(text: str) -> int:
    return values.natural(text, "number of warm-up epochs")


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (values.names, "torch", ("torch",)),
        (values.names, " torch , numpy ", ("torch", "numpy")),
        (values.names, "torch,numpy,torch", ("torch", "numpy")),
        (values.devices, "cpu", ("cpu",)),
        (values.devices, "gpu", ("gpu:0",)),
        (values.devices, "gpu:1,cpu,gpu", ("gpu:1", "cpu", "gpu:0")),
        (values.devices, "gpu,gpu:0", ("gpu:0",)),
        (values.directions, "backward, forward", ("backward", "forward")),
        (values.sizes, "quick", "quick"),
        (values.sizes, "paper", "paper"),
        (values.sizes, " full ", "full"),
        (values.sizes, "64", (64,)),
        (values.sizes, "64, 8", (64, 8)),
        (values.sizes, "8,8", (8,)),
        (values.sizes, "8,08", (8,)),
        (values.sizes, "convnet", "convnet"),
        (values.sizes, "1760x16x1760", ("1760x16x1760",)),
        (values.sizes, "8, n8h28w28c16,64,n8h28w28c16", (8, "n8h28w28c16", 64)),
        (threads, "1", 1),
        (threads, "16", 16),
        (warmup_epochs, "0", 0),
        (warmup_epochs, "3", 3),
        (values.folder, "/", Path("/")),
        (timeout, "0.5", 0.5),
        (timeout, "1e3", 1000.0),
        (warm_up, "0", 0.0),
        (warm_up, "2", 2.0),
        (isolation, "process", "process"),
        (isolation, "none", "none"),
    ],
)
def test_good_values_are_read(parse: Callable[[str], Any], text: str, expected: Any) -> None:
    """Every form that an option takes is read, in the order given, each value once."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (values.names, "", "'' has an empty name"),
        (values.names, "torch,,numpy", "'torch,,numpy' has an empty name"),
        (values.names, "torch,", "give names separated by commas"),
        (values.devices, " ,cpu", "empty name"),
        (values.directions, "forwards", "unknown direction 'forwards'; .* 'forward'?"),
        (values.directions, "both", "known: forward, backward.$"),
        (values.sizes, "", "empty name"),
        (values.sizes, "0", "size '0' is not a positive whole number"),
        (values.sizes, "-8", "size '-8' is not a positive whole number"),
        (values.sizes, "8,+16", r"size '\+16' is not"),
        (values.sizes, "8" * 5000, "of up to 18 digits"),
        (values.sizes, "8,quick", "size 'quick' is not a positive whole number"),
        (values.sizes, "quick,full", "give one preset .quick, paper, full, .*. or sizes"),
        (values.sizes, "quick,8x8", "size 'quick' is not a positive whole number"),
        (values.sizes, "8x08", "unknown size or preset '8x08'; .* shapes such as 64x64x64"),
        (values.sizes, "8X8", "unknown size or preset '8X8'"),
        (values.sizes, "x", "unknown size or preset 'x'"),
        (values.sizes, "quik", "unknown size or preset 'quik'; .* Did you mean 'quick'?"),
        (values.sizes, "1.5", "unknown size or preset '1.5'; .* positive whole numbers"),
        (values.sizes, "8²", "size or preset|positive whole number"),
        (threads, "0", "number of threads '0' is not a positive whole number"),
        (threads, "two", "number of threads 'two'"),
        (threads, "1.0", "positive whole number"),
        (threads, "", "positive whole number"),
        (warmup_epochs, "-1", "number of warm-up epochs '-1' is not a whole number from 0"),
        (warmup_epochs, "one", "number of warm-up epochs 'one' is not a whole number from 0"),
        (warmup_epochs, "0.5", "from 0"),
        (warmup_epochs, "", "from 0"),
        (warmup_epochs, "1" * 19, "of up to 18 digits"),
        (warmup_epochs, "1" * 5000, "of up to 18 digits"),
        (values.folder, "not/there", "'not/there' is not a directory; name the one that holds"),
        (values.folder, __file__, "test_values.py' is not a directory"),
        (timeout, "0", "timeout '0' is not a number of seconds above 0"),
        (timeout, "-1", "above 0"),
        (timeout, "inf", "above 0"),
        (timeout, "nan", "above 0"),
        (timeout, "5min", "timeout '5min' is not a number of seconds above 0"),
        (warm_up, "-0.1", "warm-up '-0.1' is not a number of seconds from 0"),
        (warm_up, "nan", "from 0"),
        (warm_up, "1e999", "from 0"),
        (isolation, "proces", "unknown isolation 'proces'; .* Did you mean 'process'?"),
        (isolation, "", "known: process, none"),
    ],
)
def test_bad_values_are_refused(parse: Callable[[str], Any], text: str, message: str) -> None:
    """Every other form is refused, with what was given and what would be understood."""
    with pytest.raises(UsageError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("5min", 300),
        ("5 m", 300),
        ("1h30min", 5400),
        ("1.5h", 5400),
        (" 1min 5s ", 65),
    ],
)
def test_a_duration_has_units(text: str, seconds: float) -> None:
    assert values.duration(text, "budget") == seconds


@pytest.mark.parametrize(
    "text", ["0", "0s", "5", "", "-3s", "5s 1min", "1e3s", "soon", "9" * 400 + "h"]
)
def test_a_duration_is_above_0(text: str) -> None:
    """A bare number might be seconds or minutes: it is refused, with what could be given."""
    with pytest.raises(UsageError, match="is not a duration above 0; give 90s, 5min or 1h30min"):
        values.duration(text, "budget")


@pytest.mark.parametrize("text", ["0", "100%", "-1%", "abc", "", "nan", "5"])
def test_a_share_lies_between_0_and_1(text: str) -> None:
    """Five is neither 5 % nor 500 %: it is refused, and both ways to write a share are named."""
    with pytest.raises(UsageError, match=r"is not a fraction between 0 and 1; give 5% or 0\.05"):
        values.share(text, "threshold")


@pytest.mark.parametrize(
    ("text", "share"), [("50%", 0.5), ("0.5", 0.5), ("200%", 2.0), ("3", 3.0), (" 10 % ", 0.1)]
)
def test_growth_may_be_more_than_all(text: str, share: float) -> None:
    assert values.growth(text, "threshold") == pytest.approx(share)


@pytest.mark.parametrize("text", ["0", "-5%", "nan", "inf", "much", ""])
def test_growth_is_positive(text: str) -> None:
    with pytest.raises(UsageError, match=r"threshold of memory .* positive share; give 50%"):
        values.growth(text, "threshold of memory")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("5%", {"time": 0.05}),
        ("memory=100%", {"memory": 1.0}),
        ("5%, first-call = 2", {"time": 0.05, "first-call": 2.0}),
        ("time=0.1,memory=50%", {"time": 0.1, "memory": 0.5}),
    ],
)
def test_thresholds_have_names(text: str, result: dict[str, float]) -> None:
    assert values.thresholds(text) == pytest.approx(result)


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("5%,6%", "two thresholds of time"),
        ("memory=1,memory=2", "two thresholds of memory"),
        ("memory=", "threshold of memory '' is not a positive share"),
        ("time=150%", "threshold '150%' is not a fraction between 0 and 1"),
        ("5%,", "has an empty name"),
    ],
)
def test_thresholds_are_shares(text: str, expected_text: str) -> None:
    """Each at most once, and that of the time less than 1."""
    with pytest.raises(UsageError, match=re.escape(expected_text)):
        values.thresholds(text)


@pytest.mark.parametrize(
    ("text", "precision"), [("2%", 0.02), ("0.005", 0.005), ("99%", 0.99), (" off ", 0.0)]
)
def test_a_precision_is_a_share_or_off(text: str, precision: float) -> None:
    assert values.precision(text) == pytest.approx(precision)


@pytest.mark.parametrize("text", ["0", "0%", "200%", "100%", "1", "-2%", "nan", "none", ""])
def test_a_precision_is_between_0_and_1(text: str) -> None:
    """Anything else is refused, with what could be given: 0 among it, which no interval reaches."""
    with pytest.raises(UsageError, match=r"not a fraction between 0 and 1; give 2%.*, or off to"):
        values.precision(text)
