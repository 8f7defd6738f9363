"""JAX, in an environment that ``fwbench env add`` makes of the package registry's latest release.

JAX needs NumPy 2 and MXNet NumPy 1, so it is never in the environment that runs these tests: they
are the proof that frameworks of two environments are measured side by side. They need the network.
"""

import json
import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.frameworks.declared import manifests
from fwbench.machine import thread_variables
from fwbench.terms.manifest import Manifest
from fwbench.terms.names import DTYPES, FLOAT8
from fwbench.workers.environments import Environment, Environments
from fwbench.workloads import OPERATIONS, data
from support import jax_devices, jax_learners, jax_replicas, programs, recomputing, shared_loops
from support.projects import Project, measuring
from support.real_training import MEASURED, SCHEDULE
from support.tables import tabled
from support.verification import FLOAT32, PARTS, UNOPTIMIZED_XLA, counted, kept, passes, verify

_AT_NIGHT = (pytest.mark.nightly,)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    project = tmp_path_factory.mktemp("project")
    (project / "pytest.ini").write_text("", encoding="utf-8")
    made = programs.output("-m", "fwbench", "env", "add", "jax", "jax[cpu]", cwd=project)
    environment = Environments(project).all()["jax"]
    held = ", ".join(f"{name} {environment.frameworks[name]}" for name in ("jax", "numpy"))
    assert made.splitlines() == [
        f"jax: python {environment.python}; {held}",
        "measure it: pytest benchmarks --fw jax",
    ]
    return environment


@pytest.fixture
def project(project: Project, made: Environment, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project that has the environment, and no data."""
    monkeypatch.setenv("FWBENCH_ENVS", str(made.folder.parent))
    for variable in (data.VARIABLE, "KERAS_HOME", "MXNET_HOME"):
        monkeypatch.delenv(variable, raising=False)
    return project


def _run(environment: Environment, source: str, *arguments: str, **variables: str) -> Any:
    """The last line that a program in the environment prints, as JSON."""
    return programs.result(
        *("-P", "-c", source, *arguments),
        interpreter=environment.interpreter,
        variables={**thread_variables(2), **variables},
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=_AT_NIGHT * (PARTS[name] is not FLOAT32)) for name in PARTS]
)
def test_every_implementation_is_verified(made: Environment, suite_cache: Path, name: str) -> None:
    """Every operation is right in every execution and direction, and none is left out.

    Other dtypes are for the night, and tried by representatives: JAX compiles in its eager
    execution, too, which takes as long as everything else here.
    """
    part = replace(PARTS[name], everything=PARTS[name] is FLOAT32)
    envs = str(made.folder.parent)
    status, output = verify("jax", part, suite_cache, "--fw-device=cpu", "-v", FWBENCH_ENVS=envs)
    assert status == pytest.ExitCode.OK, output
    assert f" {passes(manifests()['jax'], part)} passed" in output, output
    assert f"  jax {made.frameworks['jax']}: cpu" in output


@pytest.mark.nightly
def test_an_unrolled_loop_computes_the_same(made: Environment, suite_cache: Path) -> None:
    """By Python in place of ``lax.scan``: eager and under jit, forward and backward."""
    selected, envs = ("-k", "dynamic_rnn", "--fw-toggle=loop=python"), str(made.folder.parent)
    status, output = verify("jax", FLOAT32, suite_cache, *selected, FWBENCH_ENVS=envs)
    assert (status, " 4 passed" in output) == (pytest.ExitCode.OK, True), output


def test_trainings_are_verified(project: Project) -> None:
    """Parameters, first losses and updates are right with every kind of layer, in every dtype."""
    project.write("test_it.py", jax_learners.VERIFIED)
    result = project.run("--benchmark-disable", "--fw-device=cpu", fw="jax")
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    result.assert_outcomes(passed=3 + 5 + 3 + 1 + 2 + 4)


def test_recomputed_networks_train_the_same(made: Environment) -> None:
    """The inputs of normalizations are computed once more; those of the next segment are not."""
    results = _run(made, recomputing.PROGRAM, "jax", "jit")["jit"]
    recomputing.check(results)
    assert results["on"]["convolutions"] - results["off"]["convolutions"] == 2


_TRAINED = measuring("mlp, mlp.step, mlp.loader", "from fwbench.workloads import mlp")


def test_records_of_trainings(project: Project) -> None:
    """Loops, steps, and loaders with threads of their own; a repetition begins anew."""
    project.write("test_it.py", _TRAINED)
    records = project.facts(
        *(*SCHEDULE, "--fw-toggle=workers=0,3", "--fw-warmup=0.1", "--fw-device=cpu"), fw="jax"
    )
    loops = [f"mlp-jax-cpu-jit-train-float32-128-workers:{n}-synthetic" for n in (0, 3)]
    loaders = [f"mlp_loader-jax-cpu-eager-train-float32-128-workers:{n}-synthetic" for n in (0, 3)]
    assert {*records} == {*loops, *loaders, "mlp_step-jax-cpu-jit-train-float32-128"}
    curves = []
    for name in loops:
        facts = records[name]
        assert facts["checked_updates"] == 10
        assert facts["checked_updates_timed"] == 3
        assert facts["max_loss_deviation"] <= facts["loss_tolerance"]
        assert facts["optimizer"]["update"] == "dense"
        curves.append([epoch["train_loss"] for epoch in facts["epochs"]])
    once, second = curves
    assert once == second, "threads deliver the same batches in the same order"
    assert once[2] < once[1] < once[0] > once[3] > once[4] > once[5]
    assert once[3] > once[2], "a repetition begins anew"


def test_a_step_is_probed(project: Project) -> None:
    """Its instructions, most of them fused, and what XLA has planned; a forward pass needs less."""
    project.write("test_it.py", _TRAINED)
    probed = ("--fw-profile", "--fw-memory", "-k", "mlp_step", "--fw-device=cpu")
    (facts,) = project.facts(*probed, fw="jax").values()
    shares = facts["profile"]["shares"]
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["fused"] > shares.get("other", 0.0)
    trace = project.path / ".fwbench" / "traces" / facts["profile"]["trace"]
    assert json.loads(trace.read_text())["traceEvents"]
    assert 0 < facts["forward_memory"]["planned_bytes"] < facts["memory"]["planned_bytes"]


def test_models_of_users(project: Project) -> None:
    """Answers and a step against the function's own run in float64; a fault fails one case.

    Complex parameters stay complex, and are trained as their real and imaginary parts.
    """
    project.write("test_it.py", jax_learners.MODELS)
    result = project.run("--fw-device=cpu", "--fw-threads=1", fw="jax")
    result.assert_outcomes(passed=7, failed=2)
    output = " ".join(str(result.stdout).split())
    assert "has the shape (2, 2), and the model declares (2, 7)" in output
    assert "the first loss of infinite in jax" in output


@pytest.mark.parametrize("part", ["fail", pytest.param("train", marks=pytest.mark.nightly)])
def test_replicas(
    made: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """They train as one worker; what is wrong is found before any timing, who fails is named."""
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root / "tests"), str(root / "extras")]))
    program, check = jax_replicas.PARTS[part]
    check(_run(made, program, str(tmp_path)))


def test_loops_of_replicas(project: Project) -> None:
    """They train as those of one worker."""
    shared_loops.assert_alike(project, "jax", "--fw-execution=jit")


@pytest.mark.parametrize(
    ("toggle", "first", "second"),
    [("model_parallel", 65024, 65524), ("data_parallel", 130548, 130548)],
)
def test_divided_lstms_train_the_same(
    project: Project, toggle: str, first: int, second: int
) -> None:
    """On two devices of the CPU, each with half of the layers, or of the batch."""
    lstms = "from fwbench.workloads import word_lm_step"
    project.write("test_it.py", measuring("word_lm_step", lstms))
    requested = (f"--fw-toggle={toggle}=2", "--fw-size=b4t16l2u64v500", "--fw-threads=2")
    (facts,) = project.facts(*requested, "--fw-device=cpu", fw="jax").values()
    assert facts["parameters_on_devices"] == {"cpu:0": first, "cpu:1": second}
    assert facts["max_loss_deviation"] <= facts["loss_tolerance"]


@pytest.fixture(scope="module")
def learned(made: Environment) -> dict[str, Any]:
    figures: dict[str, Any] = _run(made, jax_learners.LEARN)
    return figures


def test_dropout_draws_anew_at_every_step(learned: dict[str, Any]) -> None:
    """Keys are split; a reset begins with the first again, and an exact one drops nothing.

    The learning rate is zero, so nothing else changes a loss.
    """
    assert len({*learned["exact"]}) == 1
    once, second = learned["dropped"]
    assert once == second
    assert len({*learned["exact"], *once}) == 4


def test_moving_averages_become_those_of_the_batch(learned: dict[str, Any]) -> None:
    """Answers are computed from them, and steps from the moments of their batch."""
    assert learned["after"] == pytest.approx(learned["normalized"], abs=1e-5)
    assert learned["before"] != pytest.approx(learned["normalized"], abs=1e-3)


def test_a_step_is_compiled_once_and_gives_its_state_up(learned: dict[str, Any]) -> None:
    """Checked or timed, at any learning rate; without momentum there is none to keep."""
    assert learned["traced"] == [1] * 4
    assert learned["gone"] == [True, True]
    assert learned["held"] == 0
    assert learned["once"][1] < learned["once"][0]


@pytest.mark.parametrize("donate", ["on", "off"])
def test_steps_overwrite_their_state_where_it_is_donated(made: Environment, donate: str) -> None:
    """Compiled ones do; results are the state of the next step, and right, in both."""
    overwritten = _run(made, jax_learners.UPDATE, FWBENCH_DONATE=donate)
    donates = donate == "on"
    assert overwritten == {"eager": [False], "jit": [donates], "training": [donates]}


@pytest.mark.serial
def test_the_waiter_waits_for_steps(learned: dict[str, Any]) -> None:
    """A step returns before it is done; once the waiter returns, all of its state is there."""
    assert learned["waits"] == [False, True]


def test_what_is_not_written_for_jax_is_skipped_with_the_reason(project: Project) -> None:
    """Sparse gradients and training in float16 are gaps, and no failures."""
    lstm = "from fwbench.workloads import sentiment_lstm"
    marker = 'sentiment_lstm, dtypes=("float32", "float16")'
    project.write("test_it.py", measuring(marker, lstm))
    requested = ("--benchmark-disable", "--fw-toggle=sparse=on", "--junitxml=junit.xml")
    result = project.run(*requested, fw="jax")
    assert result.ret == pytest.ExitCode.OK
    outcomes = project.outcomes().values()
    assert [skipped.kind for skipped in outcomes] == ["skipped"] * 2
    reasons = (
        "has dense gradients of embeddings only (--fw-toggle sparse=off)",
        "in float16 needs",
    )
    for outcome, reason in zip(outcomes, reasons, strict=True):
        assert outcome.text.endswith(reason)


@pytest.mark.parametrize("threads", [1, 2])
def test_records(project: Project, made: Environment, threads: int) -> None:
    """Beside NumPy, with the same threads; calls return before their work is done.

    A user's own operation is measured in both, and each record says which release it is of.
    """
    project.write("test_it.py", MEASURED.replace(', executions="eager"', ""))
    records = project.facts(f"--fw-threads={threads}", fw="numpy,jax")
    versions = {"numpy": np.__version__, "jax": made.frameworks["jax"]}
    for facts in records.values():
        assert facts["framework_version"] == versions[facts["framework"]]
        assert facts["threads"] == threads
        assert 0 <= facts["max_relative_error"] <= facts["tolerance"]
    swish = {name for name in records if name.startswith("swish-")}
    assert swish == {
        "swish-numpy-cpu-eager-forward-float32-64",
        *(
            f"swish-jax-cpu-{execution}-{direction}-float32-64"
            for execution in ("eager", "jit")
            for direction in ("forward", "backward")
        ),
    }
    for execution in ("eager", "jit"):
        gemm = records[f"gemm-jax-cpu-{execution}-forward-float32-1024"]
        assert gemm["dispatch_s"] < gemm["completion_s"], "calls return before they are done"
        assert gemm["toggles"]["PJRT_NPROC"] == str(threads)
    for creation in ("from_list", "from_numpy"):
        facts = records[f"{creation}-jax-cpu-eager-forward-float32-64"]
        assert facts["result_is_view"] is False


def test_the_environment_has_packages_that_this_one_cannot_have(made: Environment) -> None:
    """NumPy 2, which MXNet does not bear: it is used there, and this one's is not."""
    major = int(made.frameworks["numpy"].partition(".")[0])
    assert major >= 2
    prefix, numpy = _run(
        made, "import json, sys, numpy; print(json.dumps([sys.prefix, numpy.__file__]))"
    )
    assert prefix == str(made.folder)
    assert numpy.startswith(prefix)


#: By work and execution: which results of two calls are there, before and after it waits.
_WAITS = """
import json
import jax
import numpy as np
from fwbench.frameworks.registry import load

framework = load("jax", 2)
wait, create = framework.waiter("cpu"), framework.creator("cpu", "float32")
x = np.full((1024, 1024), 1e-3)

def product(jax):
    return jax.numpy.matmul

def affine(jax):
    return lambda x, w, b: jax.numpy.matmul(x, w) + b

def both(jax):
    return lambda x, w: (jax.numpy.matmul(x, w), jax.numpy.matmul(w, x))

def work(what, execution):
    inputs = [create(x) for _ in range(3)]
    if what == "several results":
        return framework.forward(both, inputs[:2], execution)
    if what == "forward":
        return framework.forward(product, inputs[:2], execution)
    if what == "gradients":
        return framework.backward(product, inputs[:2], [0, 1], create(x), execution)
    return framework.backward(affine, inputs, [0, 1, 2], create(x), execution)

def ready(run):
    run()
    wait()
    results = jax.tree.leaves([run(), run()])
    before = [array.is_ready() for array in results]
    wait()
    return before, [array.is_ready() for array in results]

with framework.scope("cpu", "float32"):
    print(json.dumps({
        f"{what}, {execution}": ready(work(what, execution))
        for what in ("forward", "several results", "gradients", "a gradient that is given")
        for execution in ("eager", "jit")
    }))
"""


@pytest.fixture(scope="module")
def waited(made: Environment) -> dict[str, tuple[list[bool], list[bool]]]:
    figures: dict[str, tuple[list[bool], list[bool]]] = _run(made, _WAITS)
    return figures


@pytest.mark.serial
@pytest.mark.parametrize("execution", ["eager", "jit"])
@tabled
def test_the_waiter_waits(
    waited: dict[str, tuple[list[bool], list[bool]]], what: str, count: int, execution: str
) -> None:
    """Once it returns every result of every call is there, whichever of them JAX had first.

    Backward gives the result and the gradients; of the three of ``x @ w + b`` the last one is what
    was given, and no work.
    """
    before, after = waited[f"{what}, {execution}"]
    assert not all(before), "calls return before they are done, or else this shows nothing"
    assert after == [True] * 2 * count


_BARE = """
import json
import weakref
import jax
import numpy as np
from fwbench.frameworks.registry import load

framework = load("jax", 2)
with framework.scope("cpu", "float32"):
    array = framework.creator("cpu", "float32")(np.ones(8))
    result = framework.forward(lambda jax: jax.numpy.negative, [array], "jit")()
    framework.waiter("cpu")()
    reference = weakref.ref(result)
    del result
    config = jax.config
    print(json.dumps({
        "kept": reference() is not None,
        "set": [config.jax_default_device, config.jax_default_matmul_precision],
    }))
"""


def test_calls_on_the_cpu_are_those_of_users(made: Environment) -> None:
    """They find the memory of earlier results free, and no setting that makes them slower."""
    assert _run(made, _BARE) == {"kept": False, "set": [None, None]}


_CREATES = """
import json
import numpy as np
from fwbench.frameworks.registry import load

framework = load("jax", 2)
results = {}
for dtype in framework.capabilities.dtypes:
    source = np.full(2**12, 0.5, dtype="float64" if dtype == "bfloat16" else dtype)
    with framework.scope("cpu", dtype):
        array = framework.creator("cpu", dtype)(source)
        framework.waiter("cpu")()
        values = framework.to_numpy(array)
        source[:] = 7.0
        results[dtype] = [
            str(array.dtype),
            bool((np.asarray(framework.to_numpy(array)) == 0.5).all()),
            str(values.dtype),
            framework.address(array) != source.ctypes.data,
        ]
print(json.dumps(results))
"""


def test_arrays_keep_their_dtype_and_are_copies(made: Environment) -> None:
    """64 bits are kept though JAX drops them by default, and no array shares NumPy's memory."""
    results = _run(made, _CREATES)
    themselves = {dtype: [dtype, True, dtype, True] for dtype in DTYPES}
    narrow = {dtype: [dtype, True, "float32", True] for dtype in ("bfloat16", FLOAT8)}
    assert results == themselves | narrow


def test_copies_to_the_host_are_made_each_time(made: Environment) -> None:
    """JAX copies no array to the host that was read before, such as every verified input."""
    found = _run(made, jax_devices.COPIES)
    assert found["read"] == [True, False, False], "without a new array, and with one"
    assert found["places"] == ["gpu:0", "cpu", "gpu:0"]
    assert found["pinned"] == ["cpu, pinned", "gpu:0", "cpu, pinned"]
    assert found["equal"]
    assert found["kept"] == 2 * len(found["read"]), "the clock waits for copies, and for new arrays"


#: They compute with values that are not known before they run.
_NOT_LOWERED = {"boolean_mask", "unique"}


@tabled
def test_precision_is_that_of_the_dtype(made: Environment, tf32: str, precision: str) -> None:
    """On GPUs float32 is float32, and narrower dtypes have the kernels that users get."""
    found = _run(made, jax_devices.LOWERED, "float32", "bfloat16", FWBENCH_TF32=tf32)
    asked, failed = found["asked"], found["failed"]
    assert failed["float32"].keys() == _NOT_LOWERED
    assert asked["float32"].keys() <= {precision, "HIGHEST"}
    assert {"gemm", "conv2d", "lstm", "attention"} <= {*asked["float32"][precision]}
    assert {*asked["bfloat16"].get("HIGHEST", [])} <= {"resize_bilinear"}, "jax.image asks for it"
    assert len({*asked["bfloat16"]["DEFAULT"]}) >= 20


_BROKEN = """
import json
from jax._src import xla_bridge
from fwbench.frameworks.registry import load

def start():
    raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

xla_bridge.register_backend_factory("broken", start, priority=500, fail_quietly=False)
print(json.dumps(load("jax", 1).manifest("a CPU").to_json()))
"""


def test_a_gpu_that_does_not_start_leaves_the_cpu(made: Environment) -> None:
    described = _run(made, _BROKEN)
    assert [device["name"] for device in described["devices"]] == ["cpu"]
    (notice,) = [line for line in described["notices"] if "broken" in line]
    assert notice == (
        "jax measures the CPU alone: Unable to initialize backend 'broken': CUDA driver version is "
        "insufficient for CUDA runtime version"
    )


_PLUGIN = {
    "METADATA": "Metadata-Version: 2.1\nName: fake-plugin\nVersion: 1.2\n",
    "entry_points.txt": "[jax_plugins]\nfake = fake_plugin\n",
}


@tabled
def test_a_plugin_that_does_not_start_is_not_a_plugin_that_is_absent(
    made: Environment, tmp_path: Path, source: str | None, build: str | None, failure: str
) -> None:
    """JAX logs what is wrong with a plugin, and goes on; the plugin is a real entry point."""
    if source is not None:
        package = tmp_path / "fake_plugin-1.2.dist-info"
        package.mkdir()
        for name, text in _PLUGIN.items():
            (package / name).write_text(text, encoding="utf-8")
        (tmp_path / "fake_plugin.py").write_text(source, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    described = _run(made, _DESCRIBES, PYTHONPATH=path)
    assert [device["name"] for device in described["devices"]] == ["cpu"]
    assert described["build"].get("plugins") == build
    assert described["gpu_failure"] == failure
    alone = [line for line in described["notices"] if "alone" in line]
    assert alone == ([f"jax measures the CPU alone: {failure}"] if failure else [])


@tabled
def test_a_process_that_measures_the_cpu_opens_no_gpu(
    made: Environment, variables: dict[str, str], opened: tuple[str, ...]
) -> None:
    """JAX starts every backend when it is first asked for a device, for threads by the registry."""
    found = _run(made, jax_devices.OPENED, **variables)
    assert found == {"loaded": [*opened], "ended": [*opened]}


_DESCRIBES = """
import json
from fwbench.frameworks.registry import load

print(json.dumps(load("jax", 1).manifest("a CPU").to_json()))
"""


def test_what_jax_says_of_itself(made: Environment) -> None:
    """Its version, the CPU first, both executions, all dtypes, and how it was built."""
    described = _run(made, _DESCRIBES)
    assert described["version"] == made.frameworks["jax"]
    assert described["devices"][0] == {"name": "cpu", "model": "a CPU", "uuid": ""}
    assert described["executions"] == ["eager", "jit"]
    assert tuple(described["dtypes"]) == DTYPES
    assert described["threads"] == 1
    assert described["build"]["jaxlib"][0].isdigit()
    assert described["training_executions"] == ["jit"]
    assert described["missing"] == {}
    assert counted(Manifest.from_json(described)) == kept()["jax"]


#: Operations of which XLA counts other FLOPs or bytes than they declare, by the reason.
_XLA = tomllib.loads(Path(__file__).with_name("xla_counts.toml").read_text(encoding="utf-8"))


def _names(by_reason: Mapping[str, Collection[str]]) -> set[str]:
    return {name for names in by_reason.values() for name in names}


@pytest.fixture(scope="module")
def xla(made: Environment) -> dict[str, tuple[float, float]]:
    """The FLOPs and bytes that XLA counts, by operation, at its smallest size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", UNOPTIMIZED_XLA)  # other emitters fuse, and count, otherwise
        counts: dict[str, tuple[float, float]] = _run(made, recomputing.COUNT)
    return counts


def test_declared_flops_are_those_that_xla_counts(xla: dict[str, tuple[float, float]]) -> None:
    """Exactly for products and arithmetic, half to twice as many elsewhere, or for a reason."""
    declared = {
        operation.name: operation.cost_of("forward", operation.smallest) for operation in OPERATIONS
    }
    costs = {name: cost.flops for name, cost in declared.items() if cost is not None}
    for name in _XLA["exact"]:
        assert xla[name][0] == pytest.approx(costs[name]), name
    apart = {name for name in xla if costs.get(name) and not 0.5 <= xla[name][0] / costs[name] <= 2}
    assert apart == _names(_XLA["other_flops"])


def test_declared_bytes_are_the_least_that_xla_counts(xla: dict[str, tuple[float, float]]) -> None:
    """Operands and results; XLA counts what it writes between its kernels, too."""
    declared = {
        operation.name: operation.cost_of("forward", operation.smallest) for operation in OPERATIONS
    }
    needed = {name: 4 * cost.elements for name, cost in declared.items() if cost is not None}
    assert {name for name in xla if xla[name][1] < needed[name]} == _names(_XLA["fewer_bytes"])
