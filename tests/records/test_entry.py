"""Records survive their way to the parent."""

from typing import Any

import pytest

from fwbench.frameworks.variables import PLACEMENT, variables_of
from fwbench.jsontext import dumps
from fwbench.plugin import host
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation, recorded
from support.launched_runs import measured, sent


@pytest.mark.parametrize("cprofile", [False, True])
def test_a_restored_record_is_what_was_measured(cprofile: bool) -> None:
    case = case_of(cell(operation()), FakeFramework(), cprofile=cprofile)
    case.measure()
    here = case.benchmark.stats
    restored = host.restore(sent(case))
    assert restored.as_dict() == here.as_dict()
    assert restored.as_dict(flat=True, stats=False) == here.as_dict(flat=True, stats=False)
    assert restored["median"] == here["median"]
    assert restored.has_error is False
    assert bool(restored) is True


def test_a_profile_is_restored() -> None:
    restored = host.restore(measured(cprofile=True))
    assert any("fakes.py" in entry["function_name"] for entry in restored.as_dict()["cprofile"])
    assert "cprofile" not in host.restore(measured()).as_dict()


def test_a_record_has_what_surrounds_its_times() -> None:
    entry = measured()["entry"]
    assert entry["name"] == "test_fake[double-fake-cpu-eager-forward-float32-4]"
    assert entry["group"] == "double cpu forward float32 4"
    assert entry["param"] == "double-fake-cpu-eager-forward-float32-4"
    assert entry["params"]["framework"] == "fake"
    assert entry["stats"]["data"] == [2.0**-10 + 2.0**-4] * 16
    assert entry["extra_info"]["fwbench"]["workload"] == "double"


def test_a_record_says_what_its_rounds_were_like() -> None:
    facts = measured()["entry"]["extra_info"]["fwbench"]
    assert (facts["drift"], facts["spinning"]) == (0.0, False)
    assert facts["condition"] in ("clean", "contended")  # as the machine is while this test runs


def test_what_was_not_measured_has_no_record() -> None:
    disabled = case_of(cell(operation()), FakeFramework(), disabled=True)
    disabled.measure()
    assert host.record(disabled.benchmark) is None
    failed = case_of(cell(operation()), FakeFramework())
    failed.measure()
    failed.benchmark.has_error = True
    assert host.record(failed.benchmark) is None


def test_a_run_is_written_as_pytest_benchmark_does() -> None:
    """Values that JSON does not know are named rather than fatal."""
    assert dumps({"é": 1}, indent=4) == '{\n    "\\u00e9": 1\n}'
    assert "UNSERIALIZABLE" in dumps({"x": object()}, indent=4)


class Mute(FakeFramework):
    """Refuses to tell its switches, as PyTorch does of what was set in two ways at once."""

    def toggles(self) -> dict[str, Any]:
        raise RuntimeError("a mix of the legacy and new APIs\nsee the manual")


def test_a_switch_that_cannot_be_read_fails_no_case() -> None:
    case = case_of(cell(operation()), Mute())
    case.measure()
    toggles = case.benchmark.extra_info["fwbench"]["toggles"]
    assert toggles == {
        "unreadable": "RuntimeError: a mix of the legacy and new APIs",
        "inputs": "normal",
    }


def test_where_a_case_was_placed_is_no_toggle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables that decide which devices there are stand apart from those of speed."""
    for name in PLACEMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    case = case_of(cell(operation(), device="gpu:0"), Placed())
    facts = recorded(case)
    assert facts["placement"] == {"CUDA_VISIBLE_DEVICES": "3"}
    assert "CUDA_VISIBLE_DEVICES" not in facts["toggles"]


class Placed(FakeFramework):
    """Has all variables of CUDA that change speed."""

    variables = variables_of("cuda")
