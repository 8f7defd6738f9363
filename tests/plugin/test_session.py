"""What the options ask of cells beside a selection."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwbench.errors import UsageError
from fwbench.plugin.session import Session
from fwbench.terms.presets import Schedule
from fwbench.workloads import grid, lenet
from fwbench.workloads.data import generated


def asked(pytester: pytest.Pytester, *arguments: str) -> grid.GridRequest:
    """What a session with this command line asks for."""
    return Session(pytester.parseconfigure(*arguments))._request()


@pytest.fixture(autouse=True)
def _no_data(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's data sets nor their folders."""
    monkeypatch.delenv("FWBENCH_DATA", raising=False)
    for name in ("KERAS_HOME", "MXNET_HOME"):
        monkeypatch.setenv(name, str(pytester.path / "empty"))


def test_schedule_and_toggles_are_the_options(pytester: pytest.Pytester) -> None:
    """What is asked goes over the preset; data is looked for and else generated."""
    found = asked(pytester, "--fw-epochs=7", "--fw-toggle=workers=0,2")
    assert found.schedule(lenet.schedules["quick"]) == Schedule(epochs=7)
    assert found.toggles == {"workers": ("0", "2")}
    assert found.find("mnist") == generated("mnist")
    assert found.verify_only is False


def test_data_is_looked_for_where_the_option_says(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """In the folder of --fw-data first."""
    (tmp_path / "mnist.npz").touch()
    found = asked(pytester, f"--fw-data={tmp_path}").find("mnist")
    assert (found.source, found.origin) == ("real", "mnist.npz")


def test_verifying_alone_trains_two_steps_on_generated_data(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """However much is asked for: nothing is timed. Toggles change the work, so they stay."""
    (tmp_path / "mnist.npz").touch()
    arguments = ("--fw-epochs=7", "--fw-repetitions=2", "--fw-toggle=sparse=on")
    found = asked(pytester, "--benchmark-disable", *arguments, f"--fw-data={tmp_path}")
    assert found.schedule(lenet.schedules["paper"]) == Schedule(1, warmup_epochs=0, steps=2)
    assert found.find("mnist") == generated("mnist")
    assert found.toggles == {"sparse": ("on",)}
    assert found.verify_only is True


def test_a_toggle_of_the_process_needs_one(pytester: pytest.Pytester) -> None:
    """Where frameworks share this process it is refused; other toggles are not."""
    with pytest.raises(UsageError, match=r"the toggle onednn is set before .* --fw-isolation=none"):
        asked(pytester, "--fw-isolation=none", "--fw-toggle=onednn=on")
    assert asked(pytester, "--fw-isolation=none", "--fw-toggle=sparse=on").toggles
    assert asked(pytester, "--fw-toggle=onednn=on").toggles


@pytest.mark.parametrize("ini", ["", "[pytest]\nfw_toggle = wrokers=2"], ids=["option", "ini"])
def test_a_toggle_that_no_framework_has_is_refused(pytester: pytest.Pytester, ini: str) -> None:
    """Not before the frameworks are known, which may have toggles of their own."""
    if ini:
        pytester.makeini(ini)
    arguments = () if ini else ("--fw-toggle=wrokers=2",)
    with pytest.raises(UsageError, match=r"unknown toggle 'wrokers'; .* Did you mean 'workers'\?"):
        asked(pytester, *arguments)
