"""Against the real frameworks: every implementation is right, and records say what was measured.

A framework that is not installed is skipped; nothing of one is imported into this process.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fwbench.machine import thread_variables
from support.projects import Project

_ROOT = Path(__file__).parents[2]

_FLOATS = ("float32", "float64", "float16", "bfloat16")

#: By framework: its executions but torch's compile, the dtypes it has, and the gaps that it names.
_OFFERED = {
    "numpy": (1, 3, 0),
    "mxnet": (2, 3, 8),
    "tensorflow": (3, 4, 0),
    "torch": (1, 4, 0),
}

#: Operations of Benchmark A and noop; of these, what is only created, and what has a gradient.
_OPERATIONS, _CREATIONS, _DIFFERENTIABLE = 12, 2, 9


def _installed(framework: str) -> Any:
    missing = importlib.util.find_spec(framework) is None
    mark = pytest.mark.skipif(missing, reason=f"{framework} is not installed")
    return pytest.param(framework, marks=mark)


each_framework = pytest.mark.parametrize("framework", [_installed(name) for name in _OFFERED])


def _expected(framework: str) -> int:
    """How many cases a framework fills in every execution, dtype and direction."""
    executions, dtypes, gaps = _OFFERED[framework]
    forward = _CREATIONS + executions * (_OPERATIONS - _CREATIONS)
    backward = 0 if framework == "numpy" else executions * _DIFFERENTIABLE
    return dtypes * (forward + backward) - gaps


def _verify(framework: str, tmp_path: Path, *arguments: str) -> tuple[int, str]:
    """Run the suite's operations as users do, to verify alone; returns exit status and output."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "benchmarks", "--benchmark-disable", "-rfE"),
            "--ignore=benchmarks/test_training.py",  # see test_training_frameworks.py
            *("-o", f"cache_dir={tmp_path}", f"--fw={framework}", *arguments),
        ],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@each_framework
def test_every_implementation_is_verified(framework: str, tmp_path: Path) -> None:
    """Every operation is right in every execution, dtype and direction, and none is left out."""
    status, output = _verify(
        framework, tmp_path, "--fw-device=cpu", f"--fw-dtype={','.join(_FLOATS)}"
    )
    assert status == pytest.ExitCode.OK, output
    assert f"{_expected(framework)} passed" in output, output


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("framework", [_installed("torch")])
def test_compile(framework: str, tmp_path: Path) -> None:
    """PyTorch's compile, asked for by name, is right for an activation and a product's gradient."""
    status, output = _verify(
        framework,
        tmp_path,
        *(
            "--fw-device=cpu",
            "--fw-execution=compile",
            "-k",
            "softsign and forward or gemm and backward",
        ),
    )
    assert status == pytest.ExitCode.OK, output
    assert "2 passed" in output, output


#: Fills each gap of a framework by force and prints those that turn out to be none.
_FORCE_GAPS = """
import json, sys
from fwbench import workloads
from fwbench.case import bind
from fwbench.frameworks import load
from fwbench.grid import Cell

framework = load(sys.argv[1], 1)
operations = {operation.name: operation for operation in workloads.OPERATIONS}
tried, closed = 0, []
for name, dtype, kind in framework.gaps:
    device = next((d.name for d in framework.devices("") if d.name.startswith(kind)), None)
    if device is None:
        continue
    for execution in sorted({*framework.executions} - framework.on_request):
        cell = Cell(operations[name], framework.name, device, execution, "forward", dtype, 8)
        tried += 1
        try:
            with framework.scope(device, "float32"):
                work = bind(cell, framework)
                work.verify(work.run())
        except Exception:
            continue
        closed.append(cell.id)
print(json.dumps([tried, closed]))
"""


@pytest.mark.parametrize("framework", [_installed(name) for name in _OFFERED if _OFFERED[name][2]])
def test_gaps_are_strict(framework: str) -> None:
    """What a framework says it does not offer it really does not: a closed gap shows itself."""
    done = subprocess.run(
        [sys.executable, "-c", _FORCE_GAPS, framework],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **thread_variables(1)},
    )
    tried, closed = json.loads(done.stdout.splitlines()[-1])
    assert closed == []
    # Each gap is one in the other direction, too.
    assert tried == _OFFERED[framework][2] / 2


_MEASURED = """
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


def _facts(records: dict[str, Any], start: str) -> dict[str, Any]:
    """What the one record whose case id begins so says."""
    (name,) = (name for name in records if name.startswith(start))
    facts: dict[str, Any] = records[name]["extra_info"]["fwbench"]
    return facts


def _assert_sane(facts: dict[str, Any], framework: str, threads: int) -> None:
    """A record says what was measured, where, and how well it is known."""
    assert facts["framework"] == framework
    assert facts["framework_version"][0].isdigit()
    assert facts["device_name"]
    assert facts["dtype"] == "float32"
    assert facts["threads"] == threads
    assert isinstance(facts["toggles"], dict)
    assert 0 < facts["dispatch_s"] <= facts["completion_s"]
    assert facts["first_call_s"] > 0
    assert facts["warmup_calls"] == facts["warmup_s"] == 0
    assert facts["steady"] is None
    if facts["workload"] == "swish":
        assert facts["flops"] is facts["bytes"] is None
    else:
        assert facts["flops"] >= 0
        assert facts["bytes"] > 0
    assert 0 <= facts["max_relative_error"] <= facts["tolerance"]


@pytest.mark.parametrize("threads", [1, 2])
def test_records(project: Project, threads: int) -> None:
    """In one session of all frameworks, each computes with the threads asked for and says so.

    The parent imports none of them, and a user's own operation is measured in all of them.
    """
    frameworks = [name for name in _OFFERED if importlib.util.find_spec(name)]
    project.write("test_it.py", _MEASURED)
    result, records = project.measure(
        *(f"--fw-threads={threads}", "--fw-device=cpu", "-p", "parent_facts"),
        fw=",".join(frameworks),
    )
    assert result.ret == pytest.ExitCode.OK
    for entry in records.values():
        _assert_sane(entry["extra_info"]["fwbench"], entry["params"]["framework"], threads)
    for framework in frameworks:
        gemm = _facts(records, f"gemm-{framework}-cpu-eager-")
        assert (gemm["workload"], gemm["device"], gemm["size"]) == ("gemm", "cpu", 1024)
        assert gemm["direction"] == "forward"
        assert gemm["flops"] == 2 * 1024**3
        assert gemm["bytes"] == 3 * 1024**2 * 4
        if framework == "mxnet":
            assert gemm["dispatch_s"] < gemm["completion_s"], "calls return before they are done"
        else:
            assert gemm["dispatch_s"] == gemm["completion_s"], "calls return when they are done"
        for creation in ("from_numpy", "from_list"):
            facts = _facts(records, f"{creation}-{framework}-")
            assert facts["result_is_view"] is False
        assert _facts(records, f"flatten-{framework}-cpu-eager-")["result_is_view"] in (True, False)
        backward = [name for name in records if name.startswith(f"swish-{framework}-cpu-eager-b")]
        assert len(backward) == (framework != "numpy")
    parent = project.parent()
    assert not {*parent["modules"]} & {"mxnet", "tensorflow", "torch"}
    assert len(parent["workers"]) == 2 * len(frameworks), "one to describe, one to measure"


# On a GPU


@pytest.fixture(scope="module")
def cuda() -> None:
    """Skips where PyTorch has no CUDA device; asked in a process of its own."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    probe = "import torch; raise SystemExit(0 if torch.cuda.is_available() else 1)"
    if subprocess.run([sys.executable, "-c", probe], check=False, cwd="/").returncode:
        pytest.skip("torch sees no CUDA device")


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_every_implementation_is_verified_on_a_gpu(tmp_path: Path) -> None:
    """On a GPU, too, every operation of PyTorch's is right in every dtype and direction."""
    status, output = _verify(
        "torch", tmp_path, "--fw-device=gpu", f"--fw-dtype={','.join(_FLOATS)}"
    )
    assert status == pytest.ExitCode.OK, output
    assert f"{_expected('torch')} passed" in output, output


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_records_on_a_gpu(project: Project) -> None:
    """On a GPU a call returns before its work is done, and the record names the device."""
    project.write("test_it.py", _MEASURED.replace("1024", "4096"))
    result, records = project.measure("--fw-device=gpu", "--fw-threads=1", fw="torch")
    assert result.ret == pytest.ExitCode.OK
    for entry in records.values():
        _assert_sane(entry["extra_info"]["fwbench"], "torch", 1)
    gemm = _facts(records, "gemm-torch-gpu:0-eager-")
    assert "NVIDIA" in gemm["device_name"] or "Tesla" in gemm["device_name"]
    assert gemm["dispatch_s"] < gemm["completion_s"]


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_default_devices(project: Project) -> None:
    """Without --fw-device every device is measured, the CPU and the GPU apart."""
    project.write("test_it.py", _MEASURED)
    result, records = project.measure("-k", "flatten", fw="torch")
    assert result.ret == pytest.ExitCode.OK
    assert {entry["params"]["device"] for entry in records.values()} >= {"cpu", "gpu:0"}
    assert {entry["group"].split()[1] for entry in records.values()} >= {"cpu", "gpu:0"}
