"""Toggles are read, checked and explained; see also the texts in tests/options/values.toml."""

import dataclasses
import json

import pytest

from fwbench.errors import UsageError
from fwbench.terms import toggles
from fwbench.terms.replicas import ALLREDUCE, LOOPBACK, NO_STRAGGLER, WITH_SERVERS
from fwbench.terms.toggles import TOGGLES, Toggle, checked, known, parse, problem, variable
from support.tables import tabled

#: A framework's own.
FLUX = Toggle("flux", ("low", "high"), "", "how much flows", process=True)


@pytest.mark.parametrize("toggle", TOGGLES.values(), ids=TOGGLES)
def test_every_toggle_takes_its_own_default(toggle: toggles.Toggle) -> None:
    assert toggle.process or toggle.default
    if toggle.default:
        assert parse(f"{toggle.name}={toggle.default}") == (toggle.name, (toggle.default,))


def test_values_have_the_names_that_code_knows() -> None:
    """Rows are data, and what acts on a value compares it with a constant."""
    assert TOGGLES["strategy"].values == (ALLREDUCE, *WITH_SERVERS)
    defaults = {"strategy": ALLREDUCE, "network": LOOPBACK, "straggler": NO_STRAGGLER}
    assert {name: TOGGLES[name].default for name in defaults} == defaults
    assert {toggles.PIN, *toggles.PARALLEL} <= {*TOGGLES}


def test_frameworks_learn_of_toggles_by_a_variable() -> None:
    """Its name is fwbench's own, since a worker inherits the user's environment."""
    assert variable("onednn") == "FWBENCH_ONEDNN"


def test_a_name_that_is_not_known_yet_is_read() -> None:
    """It may be a framework's toggle; whose it is turns out when the frameworks are known."""
    assert parse("flux= low , high,low") == ("flux", ("low", "high"))
    with pytest.raises(UsageError, match=r"^toggle 'flux' has no value; give flux=VALUE$"):
        parse("flux=")


def test_values_of_a_framework_s_own_toggle_are_checked() -> None:
    """By the definition that the framework gives; the message has what is known."""
    assert checked({"flux": ("low",), "workers": ("2",)}, [FLUX]) == {
        "flux": ("low",),
        "workers": ("2",),
    }
    with pytest.raises(UsageError, match=r"unknown value of the toggle flux 'hgih'; .* 'high'"):
        checked({"flux": ("hgih",)}, [FLUX])
    message = r"unknown toggle 'fluxx'; known: workers, .* normalization, flux. .* 'flux'"
    with pytest.raises(UsageError, match=message):
        checked({"fluxx": ("low",)}, [FLUX])


def test_what_one_version_of_a_framework_takes_can_be_asked_for() -> None:
    newer = Toggle("flux", ("low", "extreme"), "", "how much flows", process=True)
    assert checked({"flux": ("high", "extreme")}, [FLUX, newer]) == {"flux": ("high", "extreme")}
    with pytest.raises(UsageError, match=r"unknown value of the toggle flux 'none'"):
        checked({"flux": ("none",)}, [FLUX, newer])


def test_whole_numbers_of_a_framework_s_own_toggle_are_written_alike() -> None:
    """So that the same value is the same case, in the parent and in the worker."""
    depth = Toggle("depth", None, "", "of the tree", process=True)
    assert checked({"depth": ("02", "2", "3")}, [depth]) == {"depth": ("2", "3")}


def test_a_worker_takes_what_it_does_not_know_as_it_is() -> None:
    """The toggles of other frameworks, which the parent has checked."""
    requested = {"flux": ("low",), "depth": ("7",)}
    assert checked(requested, [FLUX], strict=False) == requested


def test_known_toggles_are_in_the_order_of_ids() -> None:
    """fwbench's first, then the frameworks'; of two with one name the first."""
    other = Toggle("flux", None, "", "something else", process=True)
    assert [*known([FLUX, other])] == [*TOGGLES, "flux"]
    assert known([FLUX, other])["flux"] is FLUX


@tabled
def test_a_toggle_that_cannot_work_is_refused(
    name: str, values: tuple[str, ...] | None, process: bool, message: str
) -> None:
    """Where a framework is loaded, with what to do about it."""
    toggle = Toggle(name, values, "", "m", process=process)
    assert (problem(toggle) or "").startswith(message)


def test_a_toggle_that_works_has_no_problem() -> None:
    assert problem(FLUX) is None


@pytest.mark.parametrize("toggle", [*TOGGLES.values(), FLUX], ids=lambda toggle: toggle.name)
def test_toggles_travel_as_json(toggle: Toggle) -> None:
    """From a worker to the parent, and in the cache."""
    assert Toggle.from_json(json.loads(json.dumps(dataclasses.asdict(toggle)))) == toggle


@tabled
def test_a_toggle_of_gpus_and_a_dtype(value: str, device: str, dtype: str, gap: str | None) -> None:
    """It is a gap anywhere else, unless it asks for what is there anyway."""
    assert TOGGLES["tf32"].gap(value, device, dtype) == gap


@pytest.mark.parametrize(("set_to", "expected"), [(None, False), ("off", False), ("on", True)])
def test_a_toggle_of_a_process_is_on(
    monkeypatch: pytest.MonkeyPatch, set_to: str | None, *, expected: bool
) -> None:
    if set_to:
        monkeypatch.setenv(variable("tf32"), set_to)
    assert toggles.is_on("tf32") is expected
