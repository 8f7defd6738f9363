"""Planted causes of real measurements are found in what was recorded.

Twelve causes are planted by tests, here and elsewhere: which one plants which is in tables.toml,
under the first test. Each of them names the cause, and none of these tests needs JAX.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench import cli
from fwbench.frameworks import libraries
from fwbench.gate.causes import explained, profiled_causes
from fwbench.gate.explanation import Cause, CauseKind
from fwbench.gate.samples import SampleSet
from fwbench.gate.verdicts import Verdict, unjudged
from fwbench.records.stored import StoredRun
from support import programs
from support.launched_runs import sample
from support.projects import Project
from support.real_training import all_of
from support.tables import tabled
from support.verification import installed

_TESTS = """
import os
import numpy as np
import pytest
from fwbench import Operation

product = Operation(
    name="product",
    inputs=lambda size, rng: (rng.standard_normal((size, size)),) * 2,
    reference=np.matmul,
    sizes=(200,),
    tolerance=1e4,
    differentiable=False,
)

def rounded(a, b):
    return a.astype("float16").astype("float32") @ b.astype("float16").astype("float32")

product.implement("numpy")(lambda np: rounded if "NARROW" in os.environ else np.matmul)
product.implement("torch")(lambda torch: torch.matmul)

@pytest.mark.fwbench(product)
def test_it(case):
    case.measure()
"""


@tabled
def test_each_cause_is_planted(path: str, test: str) -> None:
    """By a test that is there, and not for JAX alone; what it plants is the row's name."""
    source = (Path(__file__).parents[1] / path).read_text(encoding="utf-8")
    (body,) = re.findall(rf"^def {test}\((.*?)(?=^\S|\Z)", source, re.DOTALL | re.MULTILINE)
    assert "jax" not in body.lower()


def test_the_largest_cause_is_first_within_its_kind() -> None:
    """Whatever finds it, and in whichever order; facts, which hold no seconds, are last."""
    rng = np.random.default_rng(7)
    kinds = [*CauseKind]
    found = [
        Cause(kinds[rng.integers(len(kinds))], str(number), time_s if number % 3 else None)
        for number, time_s in enumerate(rng.uniform(-1.0, 1.0, 60).tolist())
    ]
    case = sample()
    judgement = unjudged(case, Verdict.REGRESSED, "")
    side = [SampleSet("side", {case.key: case})]
    (change,) = explained([judgement], side, side, profiled=lambda *_: (found, []))
    causes = [cause for cause in change.explanation.causes if cause in found]
    assert [cause.kind for cause in causes] == sorted(
        (cause.kind for cause in found), key=kinds.index
    )
    for kind in kinds:
        held = [cause.time_s for cause in causes if cause.kind is kind]
        times_s = [abs(time_s) for time_s in held if time_s is not None]
        assert times_s == sorted(times_s, reverse=True)
        assert held[len(times_s) :] == [None] * (len(held) - len(times_s))


def _explained(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    *arguments: str,
    fw: str = "numpy",
    selected: str = "product",
) -> list[str]:
    """The causes of the case in another session than ``base.json``."""
    project.facts(*arguments, fw=fw)
    capsys.readouterr()
    paths = [str(project.path / name) for name in ("base.json", "measured.json")]
    assert cli.main(["explain", *paths, "-k", selected]) == 0
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def _measure_base(
    project: Project, *arguments: str, fw: str = "numpy", tests: str = _TESTS
) -> dict[str, Any]:
    project.write("test_it.py", tests)
    facts = project.facts(*arguments, fw=fw)
    (project.path / "measured.json").rename(project.path / "base.json")
    return facts


def test_planted_causes_are_named(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads, dtype and BLAS, each in a session of its own."""
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    _measure_base(project, "--fw-threads=2")
    causes = _explained(project, capsys, "--fw-threads=1")
    assert "settings: threads: 2 -> 1" in causes
    with monkeypatch.context() as patch:
        patch.setenv("NARROW", "1")
        causes = _explained(project, capsys, "--fw-threads=2")
        assert "settings: bits of mantissa computed in: 23 -> 10" in causes
    with monkeypatch.context() as patch:
        patch.setenv("OPENBLAS_CORETYPE", "Prescott")
        causes = _explained(project, capsys, "--fw-threads=2")
        assert "settings: OPENBLAS_CORETYPE: not set -> Prescott" in causes
        # OpenBLAS 0.3.34 has no kernels for Prescott any more, and takes Katmai's.
        core = re.compile(r"build: numpy openblas core: \w+ -> (Prescott|Katmai)")
        assert [*filter(core.fullmatch, causes)]


_LAZY = """
from dataclasses import replace
import slowly
from fwbench.frameworks.numpy.framework import NumPy

class Lazy(NumPy):
    name, version = "lazy", slowly.__version__
    capabilities = replace(NumPy.capabilities, imports="slowly")
"""

_IMPORTS = """
import pytest
from fwbench.workloads import STARTUP

@pytest.mark.fwbench(*STARTUP)
def test_it(case):
    case.measure()
"""


def test_a_slower_import_is_named(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the submodule that sleeps."""
    project.write("packages/slowly/__init__.py", "from slowly import part\n__version__ = '1.2'")
    sleeps = "import os, time\ntime.sleep(float(os.environ.get('SLEEPS', 0)))"
    project.write("packages/slowly/part.py", sleeps)
    project.install("lazy", "lazy_fwbench:Lazy", _LAZY)
    _measure_base(project, "-k", "import", fw="lazy", tests=_IMPORTS)
    monkeypatch.setenv("SLEEPS", "0.2")
    causes = _explained(project, capsys, "-k", "import", fw="lazy", selected="import")
    assert [line for line in causes if line.startswith("functions: slowly.part: ")], causes


_BUSY = """
import os, time
if all(os.fork() for _ in range(3)):
    time.sleep(600)
while True:
    pass
"""


_PLAIN = """
def test_plain(benchmark):
    benchmark.pedantic(lambda: sum(range(100_000)), rounds=200)
"""


@pytest.mark.serial
def test_a_contended_machine_is_named(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Around a case, and around a plain test."""
    project.write("test_plain.py", _PLAIN)
    # The kernel counts the time of others in steps of 10 ms. Beside two threads, which the loops
    # that tell the speed of CPUs interrupt, they get little of it.
    long = "--fw-threads=1", "--benchmark-min-rounds=3000"
    facts = _measure_base(project, *long)
    if any((case["others_cpus"] or 0.0) > 0.5 for case in facts.values()):
        pytest.skip("other processes are at work")
    # Its children are busy: it has the parent of the measured process, whose other workers count
    # as siblings.
    with subprocess.Popen([sys.executable, "-c", _BUSY], start_new_session=True) as busy:
        try:
            causes = _explained(project, capsys, *long)
        finally:
            os.killpg(busy.pid, signal.SIGKILL)
    assert [line for line in causes if line.startswith("machine: CPUs kept busy by other")], causes
    paths = [str(project.path / name) for name in ("base.json", "measured.json")]
    assert cli.main(["explain", *paths, "-k", "test_plain"]) == 0
    printed = capsys.readouterr().out
    assert re.search("^  machine: CPUs kept busy by other", printed, re.MULTILINE), printed


_CONVOLVING = """
import pytest
from fwbench.workloads import CONVOLUTION

(convolution,) = (each for each in CONVOLUTION if each.name == "conv2d_3x3")

@pytest.mark.fwbench(convolution, sizes="quick", executions="eager")
def test_it(case):
    case.measure()
"""


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_a_lower_instruction_set_is_named(
    project: Project,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    framework: str,
) -> None:
    """By its variable, and by what oneDNN says that it computes with."""
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")  # off by default on CPUs without AVX-512
    fw, more = all_of(framework), ("--fw-profile", "-k", "forward and n4h56")
    _measure_base(project, *more, fw=fw, tests=_CONVOLVING)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "SSE41")
    causes = _explained(project, capsys, *more, fw=fw, selected="conv2d")
    assert "settings: ONEDNN_MAX_CPU_ISA: not set -> SSE41" in causes
    told = re.compile(f"build: {framework} onednn isa: .*AVX.* -> .*SSE4.1")
    assert [*filter(told.fullmatch, causes)], causes


@pytest.mark.parametrize("head", ["onednn_verbose,v1,info,", "dnnl_verbose,info,"])
def test_what_onednn_logs_is_read(head: str) -> None:
    """In the form that each of its versions has."""
    log = f"{head}oneDNN v3.7.1\n{head}cpu,isa:Intel AVX2\n{head}gpu,runtime:none\n".encode()
    done = libraries.onednn_isa(lambda: os.write(1, log), nullcontext())
    assert done == (len(log), "Intel AVX2")


def test_work_without_onednn_has_no_instruction_set() -> None:
    """And a failure is the work's own."""
    assert libraries.onednn_isa(lambda: "done", nullcontext()) == ("done", None)
    with pytest.raises(ZeroDivisionError):
        libraries.onednn_isa(lambda: 1 // 0, nullcontext())


_BUFFERED = """
import ctypes
from contextlib import nullcontext
from fwbench.frameworks import libraries

print("by Python, ", end="")
ctypes.CDLL(None).printf(b"and by C, ")
done = libraries.onednn_isa(lambda: ctypes.CDLL(None).puts(b"within"), nullcontext())
print(done[1])
"""


def test_what_was_written_before_the_log_is_not_lost() -> None:
    """A pipe's writes are buffered, by Python and by C."""
    assert programs.output("-c", _BUFFERED) == "by Python, and by C, None\n"


_TRACED = """
import os
import numpy as np
import pytest
from fwbench import Operation

chain = Operation(
    name="chain",
    inputs=lambda size, rng: (rng.standard_normal(size),),
    reference=lambda x: x + 100,
    sizes=(4,),
    differentiable=False,
)

@chain.implement("tensorflow")
def chained(tf):
    made = []

    def function(x):
        if "TWICE" in os.environ and not made:
            made.append(tf.Variable(0.0))  # such a first call is traced again
        for _ in range(100):
            x = tf.add(x, 1.0)
        return x + made[0] if made else x

    return function

@pytest.mark.fwbench(chain, executions=["graph"])
def test_it(case):
    case.measure()
"""


@installed("tensorflow")
def test_a_first_call_that_compiles_twice_is_named(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the phase that takes longer, unless others slow the base down by as much."""
    again = re.compile(r"work: compilations of the first call: 1 -> [23]")
    for _ in range(3):
        monkeypatch.delenv("TWICE", raising=False)
        _measure_base(project, fw="tensorflow", tests=_TRACED)
        monkeypatch.setenv("TWICE", "1")
        causes = _explained(project, capsys, fw="tensorflow", selected="chain")
        assert [*filter(again.fullmatch, causes)], causes
        # Of what is compiled twice the rest is named, too, and may be all that is.
        if any(line.startswith("work: first call, trace: ") for line in causes):
            return
    pytest.fail(f"the trace is not named: {causes}")


def test_libraries_are_those_of_the_package() -> None:
    """NumPy's BLAS says its threads; another package has none of it, and a process has all."""
    own = libraries.loaded("numpy")
    assert [key for key in own if key.endswith(" threads")]
    assert not [key for key in libraries.loaded("scipy") if key.startswith("numpy ")]
    assert own.items() <= libraries.loaded().items()


def test_a_profile_that_one_side_lacks_is_said() -> None:
    """Where a session has brought nothing, or had no time for the case."""
    case, found = sample(), StoredRun("run.json", [sample()])
    for runs, side in (((None, None), "either"), ((found, None), "the contender's")):
        assert profiled_causes(runs, case, case, (1.0, 2.0)) == (
            [],
            [f"no profile was measured on {side} side"],
        )
