"""A framework from another package adds a toggle through the entry point that it has anyway."""

import pytest

from fwbench.machine import allowed_cpus
from support.projects import Project, measuring
from support.tables import tabled

#: The framework of pool_framework.py, with a toggle: one attribute is all that it takes.
_FLUX = """
import os
from dataclasses import replace
from fwbench.terms.toggles import Toggle, variable
from pool_framework import Pool

FLUX = os.environ.get(variable("flux"))

class Flux(Pool):
    name = "flux_pool"
    capabilities = replace(Pool.capabilities, own_toggles=(Toggle({toggle}),))

    def toggles(self):
        return {{"flux_at_import": FLUX}}
"""

_TOGGLE = '"flux", ("low", "high"), "", "how much flows", process=True'

_TANH = measuring("tanh, sizes=(64,)", "from fwbench.workloads import tanh")


@pytest.fixture
def flux(project: Project) -> Project:
    """A project with that framework, and a case of it."""
    return installed(project)


def installed(project: Project, toggle: str = _TOGGLE) -> Project:
    """A project with a framework that has this toggle."""
    project.install_pool()
    project.install("flux_pool", "flux_framework:Flux", _FLUX.format(toggle=toggle))
    project.write("test_it.py", _TANH)
    return project


def test_each_value_is_a_case(flux: Project) -> None:
    """With a worker of its own, whose framework reads the value when it is imported."""
    result, records = flux.measure("--fw-toggle=flux=low,high", fw="flux_pool")
    result.assert_outcomes(passed=2)
    for value in ("low", "high"):
        entry = records[f"tanh-flux_pool-cpu-eager-forward-float32-64-flux:{value}"]
        assert entry["params"]["flux"] == value
        facts = entry["extra_info"]["fwbench"]
        assert facts["toggles"]["flux"] == facts["toggles"]["flux_at_import"] == value


def test_without_it_the_framework_does_as_it_likes(flux: Project) -> None:
    """No value is set that nobody asked for."""
    _, records = flux.measure(fw="flux_pool")
    (entry,) = records.values()
    toggles = entry["extra_info"]["fwbench"]["toggles"]
    assert toggles["flux_at_import"] is None
    assert "flux" not in toggles


def test_other_frameworks_do_not_have_it(flux: Project) -> None:
    """Their cells are gaps with the reason, as for every toggle of a process."""
    result = flux.run("--fw-toggle=flux=low", fw="flux_pool,numpy")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["skipped 1 case: numpy has no toggle flux"])


def test_it_may_be_in_the_ini_file(flux: Project) -> None:
    flux.write("pytest.ini", "[pytest]\nfw_toggle = flux=low onednn=off\n")
    result = flux.run("-rs", fw="flux_pool")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*flux_pool has no toggle onednn*"])


@tabled
def test_what_is_not_there_is_a_usage_error(flux: Project, requested: str, message: str) -> None:
    """Before anything runs, with the names and values that are there."""
    result = flux.run(f"--fw-toggle={requested}", fw="flux_pool")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in str(result.stderr)
    assert "Traceback" not in str(result.stderr)


def test_a_toggle_that_is_declared_wrongly(project: Project) -> None:
    """The framework cannot be used, and says why; others go on."""
    installed(project, '"sparse", ("a", "b"), "", "m", process=True')
    result = project.run("-rs", fw="flux_pool,numpy")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    message = str(result.stderr)
    assert "fwbench has a toggle sparse; name the framework's own differently" in message
    assert "fix own_toggles of flux_framework" in message
    assert project.run(fw="numpy").ret == pytest.ExitCode.OK


def test_it_needs_a_process(flux: Project) -> None:
    """Where frameworks share this process it cannot be set before they are imported."""
    result = flux.run("--fw-isolation=none", "--fw-toggle=flux=low", fw="flux_pool")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the toggle flux is set before a framework is imported" in str(result.stderr)


def test_every_framework_can_be_pinned(project: Project) -> None:
    """To one CPU, before it is imported; two threads there would tell of nothing."""
    project.write("test_it.py", _TANH.replace("import pytest", "import os, pytest") + _CPUS)
    result, records = project.measure("--fw-toggle=pin=off,on", "--fw-threads=1", fw="numpy")
    result.assert_outcomes(passed=2)
    assert {entry["extra_info"]["fwbench"]["toggles"]["pin"] for entry in records.values()} == {
        "off",
        "on",
    }
    result = project.run("--fw-toggle=pin=on", "--fw-threads=2", "-rs", fw="numpy")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*pin=on puts all on one CPU, here 1 x 2 threads (*)"])


_CPUS = f"""
    cpus = 1 if "pin:on" in case.cell.id else {allowed_cpus()}
    assert len(os.sched_getaffinity(0)) == cpus
"""
