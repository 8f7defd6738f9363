"""Declarations of frameworks are read without them, and nothing remains of the stand-ins."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.declared import Stub, manifests, stubbed
from fwbench.frameworks.gpus import DEVICE_CLOCKS
from fwbench.frameworks.registry import registered
from fwbench.terms.manifest import Gap
from fwbench.workloads import from_list, gaps, gemm
from support.fakes import operation


def test_every_framework_declares_itself() -> None:
    declared = manifests()
    assert [*declared] == ["jax", "mxnet", "numpy", "onnxruntime", "tensorflow", "torch"]
    assert declared["tensorflow"].executions == ("eager", "graph", "xla")
    assert declared["torch"].on_request == (
        *("compile", "cuda_graph", "max_autotune", "reduce_overhead"),
    )
    assert not declared["numpy"].differentiable
    assert all("gemm" in manifest.operations for manifest in declared.values())


def test_memory_and_clock_of_gpus_are_declared_as_they_are_implemented() -> None:
    """Nothing else reads the one or the other of an adapter's class."""
    points = [point for name, point in registered().items() if name in manifests()]
    with stubbed({point.name for point in points}):
        for adapter in (point.load() for point in points):
            can = adapter.capabilities
            assert can.gpu_memory == (adapter.watch_memory is not Framework.watch_memory)
            assert can.gpu_clock in ("", *DEVICE_CLOCKS)
            assert can.gpu_clock or adapter.device_clock is Framework.device_clock


_MODULE = """
import os
import absent_package.part as part
from absent_package import decorated

os.environ["FWBENCH_TEST_STAND_IN"] = "set"

@decorated(1)
def function():
    pass

class Derived(part.Base):
    pass

VERSION, CALLED = part.__version__, part.deep.er(2, keyword=3)
"""


def test_a_package_is_stood_in_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has everything while the context lasts; then it is as absent as before."""
    (tmp_path / "declares_something.py").write_text(_MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with stubbed({"absent_package"}):
        import declares_something  # type: ignore[import-not-found]

        assert isinstance(declares_something.function, Stub)
        assert isinstance(declares_something.CALLED, Stub)
        assert declares_something.Derived.__bases__ == (object,)
    del sys.modules["declares_something"]
    assert "FWBENCH_TEST_STAND_IN" not in os.environ
    assert not any(name.startswith("absent_package") for name in sys.modules)
    with pytest.raises(ModuleNotFoundError):
        import absent_package  # noqa: F401


def test_what_is_imported_already_is_not_stood_in_for() -> None:
    with stubbed({"json"}):
        import json

        assert json.loads("[1]") == [1]


def test_a_whole_gap_is_the_only_one() -> None:
    numpy = manifests()["numpy"]
    part, whole = Gap("a part", "gemm", dtype="float16"), Gap("all of it", "gemm")
    assert gaps.of_operation(replace(numpy, gaps=(part,)), gemm) == (part,)
    assert gaps.of_operation(replace(numpy, gaps=(part, whole)), gemm) == (whole,)
    assert gaps.of_operation(replace(numpy, gaps=()), from_list) == ()
    (unwritten,) = gaps.of_operation(numpy, operation())
    assert (unwritten.reason, unwritten.whole) == (
        "fwbench has no numpy implementation of double",
        True,
    )
