"""A device that an error has spoiled for its process costs one case, and no other."""

from __future__ import annotations

from support.projects import Project

#: The framework of pool_framework.py, on a GPU whose errors are sticky, as CUDA's are.
_BRITTLE = """
from fwbench.manifest import Device
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

_CASES = """
import os
from pathlib import Path
import pytest
from brittle_framework import Brittle
from declared import doubling

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

@pytest.mark.fwbench(
    noted("first"), noted("full", out_of_memory), noted("second"), noted("bad", out_of_bounds),
    noted("third"), noted("fourth"),
)
def test_it(case):
    case.measure()
"""


_FORWARD = ("--fw-direction=forward", "--benchmark-disable")
_ASKED = ("--fw-device=gpu", *_FORWARD)


def test_a_spoiled_device_costs_one_case(project: Project) -> None:
    """Its worker is replaced, and the next case runs; one that lacked memory does not spoil it."""
    project.install_pool()
    project.install("brittle", "brittle_framework:Brittle", _BRITTLE)
    project.write("test_it.py", _CASES)
    result = project.run(*_ASKED, fw="brittle")
    result.assert_outcomes(passed=4, failed=2)
    workers = dict(line.split() for line in project.lines("workers"))
    earlier, later = workers["first"], workers["third"]
    assert earlier != later
    assert [workers[name] for name in ("full", "second", "bad")] == [earlier] * 3
    assert workers["fourth"] == later
    result.stdout.fnmatch_lines(["*1.00 GiB is free*"])


_THEN_NUMPY = """
import os
from pathlib import Path
import pytest
from fwbench.workloads import tanh

@pytest.mark.fwbench(tanh, sizes=(4, 5), devices="gpu")
def test_on_a_gpu(case):
    case.measure()
    Path("worker").write_text(str(os.getpid()))

@pytest.mark.fwbench(tanh, sizes=(4,), devices="cpu")
def test_then(case):
    case.measure()
    pid = int(Path("worker").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
"""


def test_a_worker_ends_with_its_last_case_on_a_gpu(project: Project) -> None:
    """A process keeps half a gigabyte of a GPU as long as it lives, and others need it."""
    project.install_pool()
    project.install("brittle", "brittle_framework:Brittle", _BRITTLE)
    project.write("test_it.py", _THEN_NUMPY)
    only = "(on_a_gpu and brittle) or (then and numpy)"
    result = project.run("-k", only, *_FORWARD, fw="brittle,numpy")
    result.assert_outcomes(passed=3)
