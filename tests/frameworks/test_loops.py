"""Loops of Python's, which compilers unroll, in place of a framework's operator for loops."""

from pathlib import Path

import pytest

from fwbench.frameworks.declared import manifests
from support.verification import FLOAT32, installed, verify

_DIRECTIONS = 2


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param("mxnet", marks=installed("mxnet")),
        pytest.param("tensorflow", marks=[installed("tensorflow"), pytest.mark.nightly]),
    ],
)
def test_an_unrolled_loop_computes_the_same(framework: str, suite_cache: Path) -> None:
    """Forward and backward, in every execution; the operators are verified as all others are."""
    executions = FLOAT32.executions(manifests()[framework])
    status, output = verify(
        framework, FLOAT32, suite_cache, "-k", "dynamic_rnn", "--fw-toggle=loop=python"
    )
    assert status == pytest.ExitCode.OK, output
    assert f" {_DIRECTIONS * len(executions)} passed" in output, output


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_where_the_native_loop_is_pythons_there_is_no_other(framework: str) -> None:
    """A gap says so, in every execution."""
    manifest = manifests()[framework]
    for execution in manifest.executions:
        gap = manifest.toggle_gap(execution, "loop", "python")
        assert gap is not None
        assert gap.endswith("(--fw-toggle loop=native)")
        assert manifest.toggle_gap(execution, "loop", "native") is None
