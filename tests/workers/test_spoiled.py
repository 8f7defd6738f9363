"""A device that an error has spoiled for its process costs one case, and no other."""

import inspect
import os
from collections.abc import Callable

import pynvml
import pytest

from support import fake_nvml
from support.projects import Project, measuring
from support.tables import tabled

#: The framework of pool_framework.py, on a GPU whose errors are sticky, as CUDA's are.
_BRITTLE = """
from fwbench.terms.manifest import Device
from pool_framework import Pool

class Brittle(Pool):
    name = "brittle"
    spoiled = False

    def devices(self, cpu_model):
        return (*super().devices(cpu_model), Device("gpu:0", "Fake 9000"))

    def creator(self, device, dtype):
        create = super().creator(device, dtype)
        def place(values):
            if Brittle.spoiled:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            return create(values)
        return place
"""

_NOTED = """
import os
from pathlib import Path
from brittle_framework import Brittle

def noted(name, act=lambda x: None):
    def function(x):
        with Path("workers").open("a") as file:
            file.write(f"{name} {os.getpid()}\\n")
        act(x)
        return 2.0 * x
    operation = doubling(name, function, sizes=(4,))
    operation.implement("brittle")(lambda np: function)
    return operation

def out_of_bounds(x):
    Brittle.spoiled = True
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

def out_of_memory(x):
    raise MemoryError("CUDA out of memory. Tried to allocate 9.00 GiB; 1.00 GiB is free")

CASES = [
    noted("first"), noted("full", out_of_memory), noted("second"), noted("bad", out_of_bounds),
    noted("third"), noted("fourth"),
]
"""

_FORWARD = ("--fw-direction=forward", "--benchmark-disable")


@pytest.fixture
def brittle(project: Project) -> Project:
    """A project with that framework."""
    project.install_pool()
    project.install("brittle", "brittle_framework:Brittle", _BRITTLE)
    project.write("test_it.py", _TURNS)
    return project


def test_a_spoiled_device_costs_one_case(brittle: Project) -> None:
    """Its worker is replaced, and the next case runs; one that lacked memory does not spoil it."""
    project = brittle
    project.write("test_it.py", measuring("*CASES", _NOTED))
    result = project.run("--fw-device=gpu", *_FORWARD, fw="brittle")
    result.assert_outcomes(passed=4, failed=2)
    workers = dict(line.split() for line in project.lines("workers"))
    earlier, later = workers["first"], workers["third"]
    assert earlier != later
    assert [workers[name] for name in ("full", "second", "bad")] == [earlier] * 3
    assert workers["fourth"] == later
    result.stdout.fnmatch_lines(["*1.00 GiB is free*"])


_THEN_ANOTHER = """
import os
from pathlib import Path
import pytest
from fwbench.workloads import tanh

@pytest.mark.fwbench(tanh, sizes=(4, 5), devices="gpu")
def test_on_a_gpu(case):
    case.measure()
    Path("worker").write_text(str(os.getpid()))

@pytest.mark.fwbench(tanh, sizes=(4,), devices="gpu")
def test_then(case):
    case.measure()
    pid = int(Path("worker").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
"""


def test_a_worker_ends_with_its_last_case_on_a_gpu(brittle: Project) -> None:
    """A process keeps half a gigabyte of a GPU as long as it lives, and others need it."""
    project = brittle
    source = _BRITTLE.replace('"brittle"', '"robust"')
    project.install("robust", "robust_framework:Brittle", source)
    project.write("test_it.py", _THEN_ANOTHER)
    only = "(on_a_gpu and brittle) or (then and robust)"
    result = project.run("-k", only, *_FORWARD, fw="brittle,robust")
    result.assert_outcomes(passed=3)


#: A framework that holds its GPU as long as its process lives, from the first look at it on. The
#: GPU is in EXCLUSIVE_PROCESS mode: it takes one process at a time.
_GREEDY = """
import os
from pathlib import Path
from fwbench.frameworks.gpus import are_hidden
from fwbench.terms.manifest import Device
from pool_framework import Pool

BUSY = "CUDA-capable device(s) is/are busy or unavailable"

def hold():
    holder = Path(os.environ["HOLDER"])
    if holder.exists():
        pid = int(holder.read_text())
        if pid != os.getpid() and Path(f"/proc/{pid}").exists():
            raise RuntimeError(BUSY)
    holder.write_text(str(os.getpid()))

class Greedy(Pool):
    name = "NAME"

    def threads(self):
        if "SEES" == "yes" and not are_hidden():  # as JAX's do, which asks for its devices
            hold()
        return super().threads()

    def devices(self, cpu_model):
        if "SEES" == "yes":
            hold()
        return (*super().devices(cpu_model), Device("gpu:0", "Fake 9000"))

    def creator(self, device, dtype):
        if device != "cpu":
            hold()
        return super().creator(device, dtype)
"""

_TURNS = measuring("sigmoid, tanh, sizes=(4, 5)", "from fwbench.workloads import sigmoid, tanh")


@pytest.fixture
def sharing(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Project]:
    """Installs two frameworks of one such GPU, of which the first sees it at once or does not."""
    monkeypatch.setenv("HOLDER", str(project.path / "holder"))
    project.write("test_it.py", _TURNS)

    def install(greedy_sees: str) -> Project:
        project.install_pool()
        for name, sees in (("greedy", greedy_sees), ("miserly", "yes")):
            code = _GREEDY.replace("NAME", name).replace("SEES", sees)
            project.install(name, f"{name}_framework:Greedy", code)
        return project

    return install


@pytest.mark.parametrize("requested", ["--benchmark-disable", "--fw-launches=2"])
def test_frameworks_share_a_gpu_that_takes_one_process(
    sharing: Callable[..., Project], requested: str
) -> None:
    """Cases of one run together; its worker ends before the next begins, as the one that looked."""
    options = ("--fw-device=cpu,gpu", "--fw-direction=forward", requested)
    sharing("no").run(*options, fw="greedy,miserly").assert_outcomes(passed=16)


#: NVML in a project, with one GPU in that mode.
#: The stand-in is ``pynvml`` here, and has the structures of the real one.
_REAL = f"""import importlib.util
_spec = importlib.util.spec_from_file_location("pynvml", {pynvml.__file__!r})
pynvml = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(pynvml)
"""

_EXCLUSIVE = f"""{inspect.getsource(fake_nvml).replace("import pynvml", _REAL)}
_NVML = FakeNvml(Card("GPU-1", compute_mode=FakeNvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS))

def __getattr__(name):
    return getattr(_NVML, name)
"""


def test_frameworks_look_at_such_a_gpu_one_after_another(sharing: Callable[..., Project]) -> None:
    """Both see it, and the cases of each run; a message says that another process holds it."""
    project = sharing("yes")
    (project.packages / "pynvml.py").write_text(_EXCLUSIVE, encoding="utf-8")
    requested = ("--fw-device=gpu", *_FORWARD)
    project.run(*requested, fw="greedy,miserly").assert_outcomes(passed=8)
    project.write("holder", str(os.getpid()))
    result = project.run(*requested, "--cache-clear", fw="greedy,miserly")
    assert "a GPU here is in EXCLUSIVE_PROCESS mode and takes one process at a time" in " ".join(
        (*result.outlines, *result.errlines)
    )


@tabled
def test_a_gpu_that_is_not_there_is_refused(brittle: Project, device: str, message: str) -> None:
    """Before anything is measured; a slice is named as the GPU that CUDA makes of it."""
    result = brittle.run(f"--fw-device={device}", fw="brittle")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}*"])


def test_a_cold_cache_is_a_gap_on_a_cpu(brittle: Project) -> None:
    requested = ("--fw-device=cpu", "--fw-toggle=l2=cold", "-rs")
    result = brittle.run(*requested, *_FORWARD, fw="brittle")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*l2=cold is for GPUs, and the device is cpu*"])
