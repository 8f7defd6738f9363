"""TensorFlow on GPUs, without one: its profiler's traces, and the kernels of its build for GPUs.

That build is in an environment of its own, needs the network, and has 600 MB.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from fwbench.workers.environments import Environments
from support import programs
from support.tensorflow_kernels import traceable
from support.verification import installed


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Kernels that the build lacks, of the version that the tests have."""
    version = programs.output("-c", "import tensorflow; print(tensorflow.__version__)").split()[-1]
    project = tmp_path_factory.mktemp("project")
    (project / "pytest.ini").write_text("", encoding="utf-8")
    package = f"tensorflow=={version}"
    programs.output("-m", "fwbench", "env", "add", "tensorflow@gpu", package, cwd=project)
    return programs.result(
        *("-m", "support.tensorflow_kernels"),
        interpreter=Environments(project).all()["tensorflow@gpu"].interpreter,
        variables={
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *_inherited()]),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
    )


def _inherited() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)


@pytest.mark.nightly
@installed("tensorflow")
def test_operations_without_a_kernel_on_gpus_are_gaps(found: Any) -> None:
    """And no others: a kernel that a release brings announces itself."""
    assert found["built_for_gpus"]
    cells = traceable()
    assert found["traced"] == len(cells)
    assert {*found["lacking"]} == {name for name, (_, is_gap) in cells.items() if is_gap}


@installed("tensorflow")
def test_operators_on_a_gpu_have_the_time_of_their_kernels(tmp_path: Path) -> None:
    """Not of their launches, nor twice, nor of another GPU's; copies and fills move data.

    An optimiser's kernels are those that were launched in its range on the host.
    """
    found = _traced("gpu:0", tmp_path)
    assert found["operators"] == {
        "MatMul": ["matmul", 5000],
        "Conv2D": ["convolution", 3000],
        "AssignSubVariableOp": ["optimiser", 500],
        "add_fusion": ["fused", 700],
        "void unannotated<float>()": ["other", 100],
        "MemcpyH2D": ["data movement", 2000],
        "Memset 3": ["data movement", 200],
    }
    assert "ampere_sgemm_128x64_nn" in found["named"], "a trace has the kernels' own names"


@installed("tensorflow")
def test_operators_of_a_cpu_are_those_of_its_host(tmp_path: Path) -> None:
    found = _traced("cpu", tmp_path)
    assert found["operators"] == {
        "MatMul": ["matmul", 4000],
        "Conv2D": ["convolution", 1000],
        "AssignSubVariableOp": ["optimiser", 2000],
    }


def _traced(device: str, folder: Path) -> Any:
    return programs.result(
        *("-m", "support.tensorflow_trace", device, folder),
        variables={
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *_inherited()]),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
    )
