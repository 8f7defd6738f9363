"""Toggles are read, checked and explained."""

from __future__ import annotations

import pytest

from fwbench import toggles
from fwbench.errors import UsageError
from fwbench.toggles import TOGGLES, parse, variable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sparse=on", ("sparse", ("on",))),
        ("sparse=off,on", ("sparse", ("off", "on"))),
        ("onednn=on,off", ("onednn", ("on", "off"))),
        ("decay=on", ("decay", ("on",))),
        ("workers=0", ("workers", ("0",))),
        ("workers=4,0,2", ("workers", ("4", "0", "2"))),
        ("workers=16", ("workers", ("16",))),
        (" workers = 0 , 2 ", ("workers", ("0", "2"))),
        ("sparse=on,off,on", ("sparse", ("on", "off"))),
        ("workers=2,02,2", ("workers", ("2",))),
    ],
)
def test_values_are_read(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    """One value or several, in the order given, each once, with whitespace wherever it is."""
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wrokers=2", "unknown toggle 'wrokers'; known: workers, .*Did you mean 'workers'?"),
        ("workers=257", "toggle workers: '257' is not a whole number from 0 to 256"),
        ("threads=2", "unknown toggle 'threads'; known: workers, sparse, decay, onednn.$"),
        ("=2", "unknown toggle ''"),
        ("", "unknown toggle ''"),
        ("sparse", "toggle 'sparse' has no value; give sparse=off|on"),
        ("sparse=", "toggle 'sparse' has no value"),
        ("workers= ", "toggle 'workers' has no value; give workers=a whole number"),
        ("sparse=onn", "unknown value of the toggle sparse 'onn'; known: off, on. .* 'on'?"),
        ("sparse=1", "unknown value of the toggle sparse '1'; known: off, on.$"),
        ("sparse=on,", "unknown value of the toggle sparse ''"),
        ("sparse=on=off", "unknown value of the toggle sparse 'on=off'"),
        (
            "workers=-1",
            "toggle workers: '-1' is not a whole number from 0 to 256 .processes that load",
        ),
        ("workers=two", "toggle workers: 'two' is not a whole number from 0"),
        ("workers=1.5", "toggle workers: '1.5' is not a whole number from 0"),
        ("workers=0,,2", "toggle workers: '' is not a whole number from 0"),
        ("workers=8²", "toggle workers: '8²' is not a whole number from 0"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, message: str) -> None:
    """The message has what was given, what would be understood, and the near miss if any."""
    with pytest.raises(UsageError, match=message.replace("|", r"\|")):
        parse(text)


@pytest.mark.parametrize("toggle", TOGGLES.values(), ids=TOGGLES)
def test_every_toggle_takes_its_own_default(toggle: toggles.Toggle) -> None:
    """What holds when nothing is asked for can be asked for; empty is for the framework's own."""
    assert toggle.process is (toggle.default == "")
    if toggle.default:
        assert parse(f"{toggle.name}={toggle.default}") == (toggle.name, (toggle.default,))


def test_frameworks_learn_of_toggles_by_a_variable() -> None:
    """Its name is fwbench's own, since a worker inherits the user's environment."""
    assert variable("onednn") == "FWBENCH_ONEDNN"
