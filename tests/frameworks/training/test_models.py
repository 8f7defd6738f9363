"""The networks that people know, with the real frameworks: the same first losses everywhere."""

from pathlib import Path

import pytest

from fwbench.workloads import MODELS
from support.real_training import if_installed, verify_suite

pytestmark = pytest.mark.usefixtures("started")


@pytest.mark.parametrize(
    ("framework", "executions"),
    [
        if_installed("torch", ["eager"]),
        if_installed("mxnet", ["eager", "hybridize"]),
        if_installed("tensorflow", ["graph"]),
    ],
)
def test_every_network_is_verified(
    framework: str, executions: list[str], suite_cache: Path
) -> None:
    """Parameters and first losses at the smallest size, and that every update is made.

    Not in TensorFlow's eager execution and XLA, which take minutes: they have the same layers.
    """
    asked = (f"--fw={framework}", "--fw-device=cpu", f"--fw-execution={','.join(executions)}")
    status, output = verify_suite("test_models.py", suite_cache, *asked)
    assert status == pytest.ExitCode.OK, output
    assert f"{len(MODELS) * len(executions)} passed" in output, output


def test_no_network_is_in_a_session_that_asks_for_none(suite_cache: Path) -> None:
    """Neither in one that names nothing, nor published sizes, nor all families."""
    for asked in ("--fw-size=quick", "--fw-size=paper", "--fw-family=all"):
        status, output = verify_suite("", suite_cache, "--fw=numpy", "--collect-only", "-q", asked)
        assert status == pytest.ExitCode.OK, output
        assert "gemm-" in output
        assert [step.name for step in MODELS if f"[{step.name}-" in output] == []
