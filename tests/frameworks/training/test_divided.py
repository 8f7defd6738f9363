"""Layers on two devices of the CPU, with the real frameworks: their losses, and where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from fwbench.cases.verify import placement
from fwbench.errors import WrongTraining
from support.real_training import if_installed, verify_suite

pytestmark = pytest.mark.usefixtures("started")


@pytest.mark.parametrize(
    ("framework", "executions"),
    [if_installed("mxnet", ["eager", "hybridize"]), if_installed("tensorflow", ["eager", "graph"])],
)
def test_divided_lstms_train_the_same(
    framework: str, executions: list[str], suite_cache: Path
) -> None:
    """Losses are the reference's, and parameters are half on each device; XLA has a gap."""
    status, output = verify_suite(
        "test_models.py",
        suite_cache,
        *(f"--fw={framework}", "-k", "word_lm_step", "--fw-size=b4t16l2u64v500"),
        *("--fw-toggle=model_parallel=2", "-rs"),
    )
    assert status == pytest.ExitCode.OK, output
    assert f" {len(executions)} passed" in output, output
    if framework == "tensorflow":
        assert "XLA compiles a program for one device" in " ".join(output.split())


def test_layers_that_are_elsewhere_are_wrong() -> None:
    placement({"cpu:0": 3, "cpu:1": 5}, {"cpu:1": 5, "cpu:0": 3})
    with pytest.raises(WrongTraining, match=r"8 on cpu:0 are .*, and 3 on cpu:0, 5 on cpu:1 must"):
        placement({"cpu:0": 8}, {"cpu:0": 3, "cpu:1": 5})
