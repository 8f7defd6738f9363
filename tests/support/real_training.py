"""Training with the frameworks that are installed, on real data where there is any."""

import functools
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fwbench.workloads import data
from fwbench.workloads.data import Found
from support import programs
from support.projects import measuring


@functools.cache
def is_there(framework: str) -> bool:
    return importlib.util.find_spec(framework) is not None


def all_of(*names: str, least: int = 1) -> str:
    """The installed frameworks, as --fw takes them; skips the test where there are too few."""
    there = [name for name in names if is_there(name)]
    if len(there) < least:
        pytest.skip(f"not installed: {', '.join({*names} - {*there})}")
    return ",".join(there)


def one_of(*names: str) -> str:
    """The first of them that is installed: those that are imported sooner come first."""
    return all_of(*names).split(",")[0]


def if_installed(framework: str, *values: Any, nightly: bool = False) -> Any:
    marks = [pytest.mark.skipif(not is_there(framework), reason=f"{framework} is not installed")]
    marks += [pytest.mark.nightly] * nightly
    return pytest.param(framework, *values, marks=marks, id=framework)


def verify_suite(file: str, cache: Path, *arguments: str) -> tuple[int, str]:
    """Verify a file of the suite as users do; as :func:`run_suite`, without any timing."""
    return run_suite(file, cache, "--benchmark-disable", *arguments)


def run_suite(file: str, cache: Path, *arguments: str) -> tuple[int, str]:
    """Run a file of the suite as users do; returns the exit status and the output.

    Args:
        file: in ``benchmarks``.
        cache: what frameworks have, so that none is asked twice.
    """
    done = programs.run(
        *("-m", "pytest", f"benchmarks/{file}", "-rfEs"),
        # One thread, as the processes that workers are forked from.
        *("-o", f"cache_dir={cache}", "--fw-threads=1", *arguments),
        cwd=Path(__file__).parents[2],
        # Beside other tests pytest-benchmark would time nothing.
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST_")},
    )
    return done.returncode, done.stdout + done.stderr


def facts_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = entry["extra_info"]["fwbench"]
    return facts


MLP = measuring("mlp", "from fwbench.workloads import mlp")


#: Two trainings of three epochs, the first of each a warm-up epoch.
SCHEDULE = (
    "--fw-train=steps=5",
    "--fw-train=epochs=3",
    "--fw-train=warmup-epochs=1",
    "--fw-train=repetitions=2",
)


_BESIDE = Path(__file__).parents[3] / "shared" / "data"

#: A list of folders, as ``FWBENCH_DATA`` names them; empty where there are none.
REAL = os.environ.get(data.VARIABLE) or (str(_BESIDE) if _BESIDE.is_dir() else "")


def find_real(name: str) -> Found:
    """Where a real data set is; skips the test where there is none."""
    for folder in filter(None, REAL.split(os.pathsep)):
        data_set = data.find(name, Path(folder))
        if data_set.source == "real":
            return data_set
    pytest.skip(f"no real {name} here: name its folder in {data.VARIABLE}")


#: Operations of fwbench, and one of a user's own in every framework but ONNX Runtime.
MEASURED = """
import numpy as np
import pytest
from fwbench import Operation
from fwbench.workloads import dot, flatten, from_list, from_numpy, gemm

swish = Operation(
    name="swish",
    inputs=lambda size, rng: (rng.standard_normal(size),),
    reference=lambda x: x / (1 + np.exp(-x)),
    sizes=(64,),
)
swish.implement("jax")(lambda jax: jax.nn.silu)
swish.implement("mxnet")(lambda F: lambda x: x * F.sigmoid(x))
swish.implement("numpy")(lambda np: lambda x: x / (1 + np.exp(-x)))
swish.implement("tensorflow")(lambda tf: tf.nn.silu)
swish.implement("torch")(lambda torch: torch.nn.functional.silu)

@pytest.mark.fwbench(flatten, from_list, from_numpy, sizes=(64,))
def test_small(case):
    case.measure()

@pytest.mark.fwbench(gemm, sizes=(1024,), executions="eager")
def test_large(case):
    case.measure()

@pytest.mark.fwbench(swish, directions=("forward", "backward"))
def test_own(case):
    case.measure()
"""
