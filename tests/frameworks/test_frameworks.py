"""Against the real frameworks: every implementation is right, and records say what was measured.

A framework that is not installed is skipped; nothing of one is imported into this process.
"""

import functools
import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from fwbench.machine import cpu_features, thread_variables
from fwbench.terms.manifest import Manifest
from fwbench.terms.toggles import variable
from fwbench.workloads import OPERATIONS
from support import programs
from support.projects import Project
from support.real_training import MEASURED
from support.verification import EVERYTHING, FLOAT32, counted, installed, kept, passes, verify

#: By framework: how many executions it has but torch's compile, and how many dtypes.
_OFFERED = {"numpy": (1, 5), "mxnet": (2, 3), "tensorflow": (3, 6), "torch": (1, 7)}

#: Benchmark A and noop, without creations: every framework computes all of them.
_IN_EVERY_FRAMEWORK = {
    *("sigmoid", "relu", "tanh", "softplus", "softsign"),
    *("dot", "gemm", "flatten", "l2_normalize", "noop"),
}


def _installed(framework: str) -> Any:
    return pytest.param(framework, marks=installed(framework))


each_framework = pytest.mark.parametrize("framework", [_installed(name) for name in _OFFERED])


#: Prints what a framework says of itself, what its gaps turn out to be when they are filled by
#: force, and what becomes of learners: in every execution that it declares, and in one that nobody
#: knows.
_PROBE = """
import json, sys
from fwbench import workloads
from fwbench.cases.case import bind
from fwbench.errors import DeclarationError
from fwbench.frameworks.learner import Job
from fwbench.frameworks.registry import load
from fwbench.machine import cpu_features
from fwbench.workloads.grid import Cell

framework = load(sys.argv[1], 1)
manifest = framework.manifest("")
operations = {operation.name: operation for operation in workloads.OPERATIONS}
tried, closed = [], []
for gap in framework.gaps:
    if (gap.toggle or "") != sys.argv[2] or not gap.holds_with(cpu_features()):
        continue
    devices = [d.name for d in manifest.devices if d.name.startswith(gap.device or "")]
    can = framework.capabilities
    named = {gap.execution} & {*can.executions}
    for execution in sorted({*can.executions} - {*can.on_request} | named):
        if gap.workload not in operations or not devices or gap.execution not in (None, execution):
            continue
        operation, dtype = operations[gap.workload], gap.dtype or "float32"
        direction = gap.direction or "forward"
        size = operation.smallest
        if gap.terms_above is not None:
            size = max(operation.by_preset.quick, key=operation.terms)
        cell = Cell(operation, framework.name, devices[0], execution, direction, dtype, size)
        tried.append(operation.name)
        try:
            with framework.scope(devices[0], dtype):
                work = bind(cell, framework)
                work.verify(work.run())
        except Exception:
            continue
        closed.append(cell.id)

def learner(execution):
    return framework.learner(Job(workloads.mlp, "cpu", execution, "float32", 8))

named, refused = [], ""
if framework.capabilities.training_executions:
    with framework.scope("cpu", "float32"):
        for execution in framework.capabilities.training_executions:
            named.append(execution in learner(execution).executions)
        try:
            learner("inference")
        except DeclarationError as error:
            refused = str(error)
facts = {"tried": tried, "closed": closed, "named": named, "refused": refused}
print(json.dumps({"manifest": manifest.to_json(), **facts}))
"""


@functools.cache
def _probed(framework: str, toggle: str = "") -> dict[str, Any]:
    """The output of :data:`_PROBE` in a process that has one thread, and a toggle."""
    name, _, value = toggle.partition("=")
    variables = {**thread_variables(1), variable(name): value}
    figures: dict[str, Any] = programs.result("-c", _PROBE, framework, toggle, variables=variables)
    return figures


def _manifest(framework: str) -> Manifest:
    return Manifest.from_json(_probed(framework)["manifest"])


@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("framework", [_installed("torch")])
def test_compile(framework: str, suite_cache: Path) -> None:
    """PyTorch's compile is right for an activation, a product's gradient and a step of Adam."""
    cells = "[softsign-torch and forward or [gemm-torch and backward or [adam-torch"
    arguments = ("--fw-device=cpu", "--fw-execution=compile", "-k", cells)
    alone = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # no processes that import PyTorch to compile
    status, output = verify(framework, FLOAT32, suite_cache, *arguments, **alone)
    assert status == pytest.ExitCode.OK, output
    assert "3 passed" in output, output


@each_framework
def test_gaps_are_strict(framework: str) -> None:
    """Each declared gap is one: a framework that closes it fails here.

    Those of GPUs are tried where there is one.
    """
    operations = {operation.name for operation in OPERATIONS}
    manifest = _manifest(framework)
    kinds = {"", *(device.name.partition(":")[0] for device in manifest.devices)}
    here = (gap for gap in manifest.gaps if gap.holds_with(cpu_features()))
    gaps = [gap for gap in here if (gap.device or "") in kinds]
    for toggle in {gap.toggle or "" for gap in gaps}:
        declared = {gap.workload for gap in gaps if (gap.toggle or "") == toggle} & operations
        assert {*_probed(framework, toggle)["tried"]} == declared
        assert _probed(framework, toggle)["closed"] == []


@each_framework
def test_a_framework_is_what_it_declares(framework: str) -> None:
    """Its counts (test_cells.py) are of what is declared: nothing of it is missing here."""
    manifest = _manifest(framework)
    executions = [name for name in manifest.executions if name not in manifest.on_request]
    assert (len(executions), len(manifest.dtypes)) == _OFFERED[framework]
    assert {*manifest.operations} >= _IN_EVERY_FRAMEWORK
    assert manifest.missing == {}
    assert counted(manifest) == kept()[framework]


@each_framework
def test_nothing_of_a_framework_is_out_of_date(framework: str) -> None:
    """In the versions that are tested every path leads somewhere, and every gap can apply."""
    assert _manifest(framework).notices == ()


@pytest.mark.parametrize(
    "framework", [_installed(name) for name in ("mxnet", "tensorflow", "torch")]
)
def test_training_code_names_the_executions_that_it_trains_in(framework: str) -> None:
    """Each that the framework declares, and none besides: what is new is not trained eagerly."""
    named = _probed(framework)["named"]
    assert named
    assert all(named)
    assert "'inference'" in _probed(framework)["refused"]


def _facts(records: dict[str, Any], start: str) -> dict[str, Any]:
    """The facts of the one record whose case id begins so."""
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
    assert facts["first_call_in_process_s"] > 0
    assert facts["warmup_calls"] == facts["warmup_s"] == 0
    assert facts["steady"] is None
    if facts["workload"] == "swish":
        assert facts["flops"] is facts["bytes"] is None
    else:
        assert facts["flops"] >= 0
        assert facts["bytes"] > 0
    assert 0 <= facts["max_relative_error"] <= facts["tolerance"]


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_records(project: Project, threads: int) -> None:
    """In one session of all frameworks, each computes with the threads asked for and says so.

    The parent imports none of them, and a user's own operation is measured in all of them.
    """
    frameworks = [name for name in _OFFERED if importlib.util.find_spec(name)]
    if threads == 1:
        project.forget_manifests()
    project.write("test_it.py", MEASURED)
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
    executions = {(e["params"]["framework"], e["params"]["execution"]) for e in records.values()}
    workers = executions if threads == 1 else frameworks  # with one thread executions take turns
    assert len(parent["workers"]) == len(workers), "what describes a framework measures"


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where PyTorch has no CUDA device; asked in a process of its own."""
    monkeypatch.delenv("XLA_FLAGS")  # which a newer XLA may not know, and ends
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    probe = "import torch; raise SystemExit(0 if torch.cuda.is_available() else 1)"
    if programs.run("-c", probe, cwd="/").returncode:
        pytest.skip("torch sees no CUDA device")


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_every_implementation_is_verified_on_a_gpu(suite_cache: Path) -> None:
    """On a GPU, too, every operation of PyTorch's is right in every dtype and direction."""
    manifest = _manifest("torch")
    gpu = next(device.name for device in manifest.devices if device.name != "cpu")
    status, output = verify("torch", EVERYTHING, suite_cache, f"--fw-device={gpu}")
    assert status == pytest.ExitCode.OK, output
    assert f" {passes(manifest, EVERYTHING, gpu)} passed" in output, output


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_records_on_a_gpu(project: Project) -> None:
    """On a GPU a call returns before its work is done, and the record names the device."""
    project.write("test_it.py", MEASURED.replace("1024", "4096"))
    result, records = project.measure("--fw-device=gpu", "--fw-threads=1", fw="torch")
    assert result.ret == pytest.ExitCode.OK
    for entry in records.values():
        _assert_sane(entry["extra_info"]["fwbench"], "torch", 1)
    gemm = _facts(records, "gemm-torch-gpu:0-eager-")
    assert "NVIDIA" in gemm["device_name"] or "Tesla" in gemm["device_name"]
    assert gemm["dispatch_s"] < gemm["completion_s"]


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("framework", [_installed("torch"), _installed("jax")])
def test_the_gpu_s_own_clock_tells(project: Project, framework: str) -> None:
    """By events or by CUPTI; what a call takes there is a part of its time until it is done."""
    project.write("test_it.py", MEASURED.replace("1024", "4096"))
    result, records = project.measure("--fw-device=gpu", "-k", "gemm", fw=framework)
    assert result.ret == pytest.ExitCode.OK
    gemm = _facts(records, f"gemm-{framework}-gpu:0-eager-")
    assert gemm["device_clock"] == {"torch": "events", "jax": "cupti"}[framework]
    assert 0 < gemm["device_s"] <= gemm["completion_s"]
    assert gemm["kernels_s"] is not None, gemm["kernels_reason"]
    assert 0 < gemm["kernels_s"] <= 1.05 * gemm["device_s"]


@pytest.mark.gpu
@pytest.mark.usefixtures("cuda")
def test_default_devices(project: Project) -> None:
    """Without --fw-device the CPU and a GPU are measured, apart."""
    project.forget_manifests()
    project.write("test_it.py", MEASURED)
    result, records = project.measure("-k", "flatten", fw="torch")
    assert result.ret == pytest.ExitCode.OK
    assert {entry["params"]["device"] for entry in records.values()} >= {"cpu", "gpu:0"}
    assert {entry["group"].split()[1] for entry in records.values()} >= {"cpu", "gpu:0"}
