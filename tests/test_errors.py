"""The tree of exceptions is as it is drawn, and unknown names are met with help."""

import inspect
import re

import pytest

from fwbench import errors
from fwbench.errors import FrameworkMissing, FwbenchError, UsageError, unknown
from fwbench.terms.manifest import Absent
from support.tables import tabled


def drawn() -> dict[str, str]:
    """The base of every class that the module's docstring draws."""
    bases = {}
    branch: list[str] = []
    indent = 0
    for line in (errors.__doc__ or "").splitlines():
        result = re.match(r"(?P<edge>[ │├└─]+)(?P<name>[A-Z]\w+)", line)
        if result is None:
            continue
        indent = indent or len(result["edge"])
        depth = (len(result["edge"]) - indent) // len(" ├─ ")
        branch[depth:] = [result["name"]]
        bases[result["name"]] = branch[depth - 1] if depth else "Exception"
    return bases


def test_the_tree_is_as_drawn() -> None:
    classes = {
        name: value.__bases__[0].__name__
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert drawn() == classes


def test_everything_is_one_family() -> None:
    assert drawn()["FwbenchError"] == "Exception"
    assert all(issubclass(getattr(errors, name), FwbenchError) for name in drawn())


@tabled
def test_unknown_names_are_met_with_the_known_ones(requested: str, hint: str) -> None:
    error = unknown("framework", requested, iter(["tensorflow", "torch", "numpy", "torch"]))
    assert isinstance(error, UsageError)
    expected = f"unknown framework {requested!r}; known: tensorflow, torch, numpy.{hint}"
    assert str(error) == expected


def test_unknown_names_where_nothing_is_known() -> None:
    assert str(unknown("execution", "xla", [])) == "unknown execution 'xla'; known: none."


@pytest.mark.parametrize(
    ("remedy", "text"), [("install it", "not there; install it"), ("", "not there")]
)
def test_an_unavailable_framework_says_reason_and_remedy(remedy: str, text: str) -> None:
    """The error and what is kept of it read alike, with a remedy only where there is one."""
    error = FrameworkMissing("not there", remedy)
    assert str(error) == text
    absent = Absent.because("torch", error)
    assert (absent.name, absent.reason, absent.remedy) == ("torch", "not there", remedy)
    assert str(absent) == text
