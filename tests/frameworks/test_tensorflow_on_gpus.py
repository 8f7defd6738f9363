"""TensorFlow's build for GPUs, in an environment of its own: its kernels are known without a GPU.

It needs the network, and has 600 MB.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from fwbench.workers.environments import Environments
from support import programs
from support.tensorflow_kernels import traceable
from support.verification import installed

pytestmark = [pytest.mark.nightly, installed("tensorflow")]


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


def test_operations_without_a_kernel_on_gpus_are_gaps(found: Any) -> None:
    """And no others: a kernel that a release brings announces itself."""
    assert found["built_for_gpus"]
    cells = traceable()
    assert found["traced"] == len(cells)
    assert {*found["lacking"]} == {name for name, (_, is_gap) in cells.items() if is_gap}
