"""The conformance tests as an adapter's author runs them, each time in a process of its own."""

import pytest

from support.projects import Project
from support.real_training import if_installed
from support.tables import tabled
from support.verification import QUICK_XLA

_SUITE = ("--pyargs", "fwbench.testing.conformance", "--junitxml=junit.xml", "-rs")


@pytest.mark.parametrize(
    "framework",
    [*map(if_installed, ("numpy", "torch", "mxnet", "tensorflow", "jax", "onnxruntime"))],
)
def test_fwbenchs_own_frameworks_conform(
    framework: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every promise that they can make, they keep; and what is skipped they do not have.

    Of the operations one is checked: tests/frameworks/verified has all of them.
    """
    monkeypatch.setenv("XLA_FLAGS", QUICK_XLA)
    chosen = () if framework == "numpy" else ("-k", "not test_work_is_right or gemm")
    result = project.run_exactly(*_SUITE, f"--fw={framework}", "--fw-device=cpu", *chosen)
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    outcomes = project.outcomes()
    passed = {
        name.partition("[")[0] for name, outcome in outcomes.items() if outcome.kind == "passed"
    }
    all_tests = {name.partition("[")[0] for name in outcomes}
    lacks = {"test_undeclared_device_is_refused"}
    if framework in ("numpy", "onnxruntime"):
        lacks |= {"test_gradients_follow_variables", "test_undeclared_execution_is_refused"}
        lacks |= {"test_first_losses_are_right", "test_undeclared_training_is_refused"}
    # Of a machine with one processor nothing can be said about a second thread.
    assert lacks <= all_tests - passed <= {*lacks, "test_processor_time_fits_threads"}


def test_a_framework_from_another_package_conforms(project: Project) -> None:
    """One that returns before its work is done: a thread works off what calls have submitted."""
    project.install_pool()
    result = project.run_exactly(*_SUITE, "--fw=pool")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    waits = [name for name in project.outcomes() if name.startswith("test_waiting_waits")]
    assert waits == ["test_waiting_waits[sigmoid-pool-cpu-eager-forward-float32-100]"]


_BROKEN = """
    import numpy as np
    from pool_framework import Pool, _inline

    class Broken(Pool):
        name = "broken"

        {}
"""

_CREATION = "lambda self, device, dtype: lambda source: _inline(np.asarray, source, dtype)"

_CHANGES = {
    "waiter that does nothing": (
        "waiter = lambda self, device: lambda: None",
        "waiting_waits[sigmoid-broken-cpu-eager-forward-float32-100]",
        "after waiter had returned reading still took",
    ),
    "no waiter": (
        "waiter = lambda self, device: None",
        "waiting_waits[sigmoid-broken-cpu-eager-forward-float32-100]",
        "None is for frameworks whose calls return when it is",
    ),
    "views": (
        f"creator = {_CREATION}",
        "creation_copies[cpu-float32]",
        "use the framework's copying constructor",
    ),
}


@pytest.mark.serial
@pytest.mark.parametrize(("change", "failed", "text"), _CHANGES.values(), ids=_CHANGES)
def test_a_broken_adapter_fails(change: str, failed: str, text: str, project: Project) -> None:
    """In real time, and among others, the test of the broken promise says what to do."""
    project.install_pool()
    project.install("broken", "broken_framework:Broken", _BROKEN.format(change))
    chosen = "waiting_waits or creation_copies or devices_are_named"
    result = project.run_exactly(*_SUITE, "--fw=broken", "-k", chosen)
    assert result.ret == pytest.ExitCode.TESTS_FAILED, str(result.stdout)
    outcomes = project.outcomes()
    message = outcomes[f"test_{failed}"].text
    assert text in message
    assert "_whole_s" not in message, "the message alone, without fwbench's own frames"
    assert outcomes["test_devices_are_named"].kind == "passed"


@tabled
def test_what_cannot_be_checked_is_refused(
    arguments: tuple[str, ...], message: str, project: Project
) -> None:
    """Before anything runs, in one sentence, as pytest refuses a wrong option."""
    project.install_pool()
    project.install("missing", "missing_framework:Missing", "import no_such_package")
    project.install("renamed", "renamed_framework:Pool", "from pool_framework import Pool")
    result = project.run_exactly(*_SUITE, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR, str(result.stdout)
    (line,) = [line for line in result.stderr.lines if line.startswith("ERROR: ")]
    first, _, rest = message.partition("*")
    assert first in line
    assert rest in line
    assert "passed" not in str(result.stdout)


def test_options_narrow_it_down(project: Project) -> None:
    """An execution that runs on request, and a dtype, are checked on request."""
    project.install_pool()
    result = project.run_exactly(
        *_SUITE, "--fw=pool", "--fw-execution=inline", "--fw-dtype=float64"
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    names = {name for name in project.outcomes() if "[" in name}
    assert "test_values_survive[cpu-float64]" in names
    assert "test_work_is_right[sigmoid-pool-cpu-inline-backward-float64-100]" in names
    assert not [name for name in names if "float32" in name or "eager" in name]
