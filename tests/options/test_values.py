"""Values are read from text and checked, and an error says what would have been understood."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fwbench.errors import UsageError
from fwbench.options import values
from fwbench.options.options import SETTINGS

isolation = SETTINGS["isolation"].parse
fail_on = SETTINGS["fail_on"].parse
allow_different = SETTINGS["allow_different"].parse

#: Verdicts that nobody fails on.
_NOT = ("improved", "new", "unchanged")


def timeout(text: str) -> float:
    return values.seconds(text, "timeout", 0.001)


def warm_up(text: str) -> float:
    return values.seconds(text, "warm-up")


def threads(text: str) -> int:
    return values.positive(text, "number of threads")


def warmup_epochs(text: str) -> int:
    return values.natural(text, "number of warm-up epochs")


def budget(text: str) -> float:
    return values.duration(text, "budget")


def share(text: str) -> float:
    return values.share(text, "threshold")


def growth(text: str) -> float:
    return values.growth(text, "threshold of memory")


_TIMES = ("0", "0s", "5", "", "-3s", "5s 1min", "1e3s", "soon", "9" * 400 + "h")
_IS_NO_SHARE = r"is not a fraction between 0 and 1; give 5% or 0\.05"


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
        *((budget, text, 90) for text in ("90s", "1.5min", "1 m 30s")),
        *((budget, text, 5400) for text in ("1h30min", "1.5h")),
        *((budget, text, 300) for text in ("5min", "5 m", " 4min 60s ")),
        *((growth, text, 0.5) for text in ("50%", "0.5")),
        *((growth, text, factor) for text, factor in (("200%", 2), ("3", 3), (" 10 % ", 0.1))),
        (values.thresholds, "5%", {"time": 0.05}),
        (values.thresholds, "memory=100%", {"memory": 1.0}),
        (values.thresholds, "5%, first-call = 2", {"time": 0.05, "first-call": 2.0}),
        (values.thresholds, "time=0.1,memory=50%", {"time": 0.1, "memory": 0.5}),
        (values.precision, "2%", 0.02),
        (values.precision, "0.005", 0.005),
        (values.precision, "99%", 0.99),
        (values.precision, " off ", 0.0),
    ],
)
def test_good_values_are_read(parse: Callable[[str], Any], text: str, expected: Any) -> None:
    """Every form that an option takes is read, in the order given, each value once."""
    assert parse(text) == pytest.approx(expected)


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
        (timeout, "1e-300", "from 0.001"),
        (timeout, "\u0661", "from 0.001"),
        (threads, "\u0661", "positive whole number"),
        (warmup_epochs, "\u0661", "from 0"),
        (budget, "\u0661s", "is not a duration above 0"),
        (growth, "\u0661", "positive share"),
        (growth, "9" * 23, r"positive share up to 1,000 \(times as much\)"),
        (values.path, " ", "an empty name is given; name a file or a folder"),
        (values.file, "9" * 5000, "not a usable name of a file or a folder: .*too long"),
        (values.output_folder, "~nobody-here/x", "not a usable name .*home"),
        *((fail_on, name, "regressed, missing, inconclusive, all-inconclusive") for name in _NOT),
        (fail_on, "missing,regresed", "verdict to fail on 'regresed'.*Did you mean 'regressed'?"),
        (allow_different, "tread", "fact that may differ 'tread'.*Did you mean 'threads'?"),
        (timeout, "0", "timeout '0' is not a number of seconds from 0.001"),
        (timeout, "-1", "from 0.001"),
        (timeout, "inf", "from 0.001"),
        (timeout, "nan", "from 0.001"),
        (timeout, "5min", "timeout '5min' is not a number of seconds from 0.001"),
        (warm_up, "-0.1", "warm-up '-0.1' is not a number of seconds from 0"),
        (warm_up, "nan", "from 0"),
        (warm_up, "1e999", "from 0"),
        (isolation, "proces", "unknown isolation 'proces'; .* Did you mean 'process'?"),
        (isolation, "", "known: process, none"),
        # A bare number might be seconds or minutes.
        *(
            (budget, text, "is not a duration above 0; give 90s, 5min or 1h30min")
            for text in _TIMES
        ),
        # Five is neither 5 % nor 500 %.
        *((share, text, _IS_NO_SHARE) for text in ("0", "100%", "-1%", "abc", "", "nan", "5")),
        *(
            (growth, text, r"threshold of memory .* positive share up to 1,000 .*; give 50%")
            for text in ("0", "-5%", "nan", "inf", "much", "")
        ),
        # Also 0, which no interval reaches.
        *(
            (values.precision, text, "not a fraction between 0 and 1; give 2%.*, or off to")
            for text in ("0", "0%", "200%", "100%", "1", "-2%", "nan", "none", "")
        ),
        (values.thresholds, "5%,6%", "two thresholds of time"),
        (values.thresholds, "memory=1,memory=2", "two thresholds of memory"),
        (values.thresholds, "memory=", "threshold of memory '' is not a positive share"),
        (values.thresholds, "time=150%", f"threshold '150%' {_IS_NO_SHARE}"),
        (values.thresholds, "5%,", "has an empty name"),
    ],
)
def test_bad_values_are_refused(parse: Callable[[str], Any], text: str, message: str) -> None:
    """Every other form is refused, with what was given and what would be understood."""
    with pytest.raises(UsageError, match=message):
        parse(text)
