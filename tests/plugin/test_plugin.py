"""The plugin as its users meet it: options, ids, groups, header, summary, refusals, silence."""

from itertools import product

import pytest

from support.projects import LEAVES_A_TRACE, QUICKLY, Project, measuring, refusals

#: Two frameworks that differ in everything that can be chosen.
_CARDS = """
from dataclasses import replace
from fwbench import Device
from pool_framework import Pool

class Cards(Pool):
    name = "cards"
    capabilities = replace(Pool.capabilities, dtypes=("float32", "float64", "float16"))

    def devices(self, cpu_model):
        return (*super().devices(cpu_model), Device("gpu:0", "an accelerator"))
"""

_SIGMOID = measuring("sigmoid", "from fwbench.workloads import sigmoid")

_SELECTED = {
    "fw": "cards,pool",
    "fw_device": "gpu",
    "fw_execution": "inline",
    "fw_dtype": "float64,float16",
    "fw_direction": "backward,forward",
    "fw_size": "3,5",
}

_OTHERWISE = {
    "fw": "pool",
    "fw_device": "cpu",
    "fw_execution": "eager",
    "fw_dtype": "float32",
    "fw_direction": "forward",
    "fw_size": "7",
}

_MARKER = _SIGMOID.replace(
    "(sigmoid)",
    """(
    sigmoid,
    frameworks=("cards", "pool"),
    devices="gpu",
    executions=["inline"],
    dtypes=("float64", "float16"),
    directions="backward,forward",
    sizes=(3, 5),
)""",
)


def _flags(settings: dict[str, str]) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]


def _ini(settings: dict[str, str]) -> str:
    return "\n".join(["[pytest]", *(f"{name} = {value}" for name, value in settings.items())])


def _collected(result: pytest.RunResult) -> list[str]:
    return [line.split("[")[1].removesuffix("]") for line in result.outlines if "::" in line]


@pytest.fixture
def cards(project: Project) -> Project:
    """A project with the frameworks pool (which has a CPU) and cards (a CPU and a GPU)."""
    project.install_pool()
    project.install("cards", "cards_framework:Cards", _CARDS)
    project.write("test_it.py", _SIGMOID)
    return project


@pytest.mark.parametrize(
    ("flags", "ini", "source"),
    [
        (_SELECTED, {}, _SIGMOID),
        ({}, _SELECTED, _SIGMOID),
        ({}, {}, _MARKER),
        (_SELECTED, _OTHERWISE, _SIGMOID),
        ({}, _OTHERWISE, _MARKER),
        (_SELECTED, _OTHERWISE, _MARKER.replace("3, 5", "9,").replace('"gpu"', '"cpu"')),
    ],
    ids=[
        "command line",
        "ini",
        "marker",
        "command line over ini",
        "marker over ini",
        "command line over marker",
    ],
)
def test_selection(cards: Project, flags: dict[str, str], ini: dict[str, str], source: str) -> None:
    """Command line, ini file and marker choose the same cells, the first of them that speaks.

    On a GPU those of a framework come one after the other.
    """
    cards.write("test_it.py", source)
    cards.write("pytest.ini", _ini(ini))
    result = cards.run("--collect-only", "-q", *_flags(flags), fw=None)
    assert _collected(result) == [
        f"sigmoid-{framework}-gpu:0-inline-{direction}-{dtype}-{size}"
        for framework, size, dtype, direction in product(
            ("cards", "pool"), (3, 5), ("float64", "float16"), ("backward", "forward")
        )
    ]


def test_selection_by_default(cards: Project) -> None:
    """Without a word different devices, one dtype, the quick sizes, and what runs unasked."""
    result = cards.run("--collect-only", "-q", fw="pool,cards")
    sizes = (100, 10_000, 1_000_000)
    assert _collected(result) == [
        f"sigmoid-{place}-eager-forward-float32-{size}"
        for places in (("pool-cpu", "cards-cpu"), ("cards-gpu:0",))
        for size, place in product(sizes, places)
    ]


@pytest.mark.parametrize(("preset", "first", "count"), [("paper", 500, 20), ("full", 10, 8)])
def test_presets(cards: Project, preset: str, first: int, count: int) -> None:
    ids = _collected(cards.run("--collect-only", "-q", f"--fw-size={preset}", fw="pool"))
    assert ids[0].endswith(f"-{first}")
    assert len(ids) == count


@pytest.mark.parametrize("where", ["command line", "ini"])
def test_settings(cases: Project, where: str) -> None:
    settings = {"fw_threads": "1", "fw_isolation": "none", "fw_warmup": "0.01", "fw_timeout": "60"}
    in_ini = where == "ini"
    cases.write("pytest.ini", _ini({"fw": "numpy", **settings} if in_ini else {}))
    # --pdb is at home where the frameworks are.
    arguments = [*QUICKLY[:-1], "--pdb", "-p", "parent_facts", "--benchmark-json=out.json"]
    result = cases.run_exactly(*arguments, *([] if in_ini else ["--fw=numpy", *_flags(settings)]))
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["fwbench: numpy; all frameworks in this process*"])
    for entry in cases.records("out.json").values():
        facts = entry["extra_info"]["fwbench"]
        assert facts["threads"] == 1
        assert facts["warmup_calls"] > 0
        assert facts["warmup_s"] > 0
        assert facts["steady"] in (True, False)
        assert facts["precision"] == 0.02
        assert facts["stopped"] in ("precise", "time over")


@pytest.mark.usefixtures("started")
def test_a_session(cards: Project) -> None:
    """One session shows it all: -k, ids, params, groups, header, summary."""
    result, records = cards.measure(
        *("-v", "-k", "sigmoid and (pool or cards) and not float16", "--fw-size=3,5"),
        fw="numpy,pool,cards",
    )
    result.assert_outcomes(passed=6, deselected=2)
    assert list(records) == [
        f"sigmoid-{place}-eager-forward-float32-{size}"
        for places in (("pool-cpu", "cards-cpu"), ("cards-gpu:0",))
        for size, place in product((3, 5), places)
    ]
    entry = records["sigmoid-cards-gpu:0-eager-forward-float32-5"]
    assert entry["name"] == "test_it[sigmoid-cards-gpu:0-eager-forward-float32-5]"
    assert entry["group"] == "sigmoid gpu:0 forward float32 5"
    assert entry["params"] == {
        "workload": "sigmoid",
        "framework": "cards",
        "device": "gpu:0",
        "execution": "eager",
        "direction": "forward",
        "dtype": "float32",
        "size": 5,
    }
    result.stdout.fnmatch_lines(
        [
            "fwbench: numpy, pool, cards; each framework in a process of its own",
            "  numpy *: cpu (*); threads: *",
            "  pool 1.0: cpu (*); threads: unknown",
            "  cards 1.0: cpu (*), gpu:0 (an accelerator); threads: unknown",
            "* benchmark 'sigmoid cpu forward float32 3': 2 tests *",
            "* benchmark 'sigmoid gpu:0 forward float32 3': 1 tests *",
            "*- fwbench -*",
            "* (cpu), an accelerator (gpu:0)*",
            "operations, forward, cpu: median times",
            "operations, forward, gpu:0: *",
            "operations, forward: *",  # its geometric means; on the GPU it is alone
        ]
    )
    ((kind, text),) = cards.session()["fastest"].items()
    assert (kind, f"Fastest here: {text}" in result.outlines) == ("operations, forward, cpu", True)


def test_a_round_is_one_call_where_a_gpu_is_waited_for(cards: Project) -> None:
    """Elsewhere a round of shortest calls has many, of asynchronous ones too."""
    _, records = cards.measure("--fw-size=3", fw="numpy,pool,cards")
    calls = {
        f"{entry['params']['framework']} {entry['params']['device']}": entry["stats"]["iterations"]
        for entry in records.values()
    }
    assert calls["cards gpu:0"] == 1
    assert min(calls[f"{name} cpu"] for name in ("numpy", "pool", "cards")) > 1
    assert {
        entry["params"]["framework"]: "wait_s" in entry["extra_info"]["fwbench"]
        for entry in records.values()
    } == {"numpy": False, "pool": True, "cards": True}


def test_header_names_the_absent(cases: Project) -> None:
    cases.hide_frameworks()
    cases.write("packages/tensorflow.py", "raise OSError('libcuda.so.1: no such file')")
    cases.write("packages/mxnet.py", "import os; os.write(2, b'bad CPU'); os._exit(7)")
    result = cases.run("-v", fw=None)
    result.assert_outcomes(passed=5)
    output = str(result.stdout)
    assert "torch: absent: not installed (No module named 'torch')" in output
    assert "uv pip install --torch-backend auto 'fwbench[torch]'" in output  # without CUDA
    assert 'apart from mxnet, which needs another NumPy: fwbench env add jax "jax[cpu]"' in output
    assert "tensorflow: absent: does not import (OSError: libcuda.so.1: no such file)" in output
    assert "mxnet: absent: does not import: the worker of mxnet ended with exit status 7" in output
    assert "bad CPU" in output


def test_group_by_parameter(cards: Project) -> None:
    result = cards.run("--benchmark-group-by=param:framework", "--fw-size=3", fw="pool,cards")
    result.stdout.fnmatch_lines(
        ["* benchmark 'framework=cards': 2 tests *", "* benchmark 'framework=pool': 1 tests *"]
    )


@pytest.mark.parametrize("grouping", ["param:framework", "param:size,func"])
def test_plain_benchmarks_are_grouped_without_a_case(project: Project, grouping: str) -> None:
    """The option may be there for sessions that have cases: those without one end as well."""
    project.write(
        "test_plain.py", "def test_plain(benchmark):\n    benchmark(lambda: sum(range(9)))\n"
    )
    result = project.run(f"--benchmark-group-by={grouping}", fw=None)
    assert result.ret == pytest.ExitCode.OK
    name = grouping.removeprefix("param:").replace(",func", "")
    result.stdout.fnmatch_lines([f"* benchmark '{name}=none*': 1 tests *"])


def test_verify_only(cards: Project) -> None:
    """--benchmark-disable verifies the smallest size in both directions and times nothing.

    On the same numbers every time: what failed once fails again.
    """
    cards.write("test_it.py", _SIGMOID + _WRONG_GRADIENT + _SEED)
    result = cards.run("--benchmark-disable", "--junitxml=junit.xml", fw="pool")
    outcomes = cards.outcomes()
    assert {name: outcome.kind for name, outcome in outcomes.items()} == {
        "test_it[sigmoid-pool-cpu-eager-forward-float32-100]": "passed",
        "test_it[sigmoid-pool-cpu-eager-backward-float32-100]": "passed",
        "test_wrong[cubed-pool-cpu-eager-forward-float32-4]": "passed",
        "test_wrong[cubed-pool-cpu-eager-backward-float32-4]": "failure",
    }
    wrong = outcomes["test_wrong[cubed-pool-cpu-eager-backward-float32-4]"]
    assert "the gradient of input 0 is wrong" in wrong.text
    assert "benchmark '" not in str(result.stdout)


_SEED = """
    from fwbench.cases.work import OperationWork
    assert OperationWork.changed_seed == 1
"""

_WRONG_GRADIENT = """
import numpy as np
from fwbench import Operation

cubed = Operation("cubed", lambda n, rng: (rng.standard_normal(n),), lambda x: x**3, sizes=(8, 4))

@cubed.implement("pool")
def _(np):
    return lambda x: x.real**3 + 1j * x.imag  # the slope of x is not that of its cube

@pytest.mark.fwbench(cubed)
def test_wrong(case):
    case.measure()
"""


def test_markers_of_the_benchmark(cases: Project) -> None:
    cases.write(
        "test_it.py",
        """
        import time
        import pytest
        from declared import double

        @pytest.mark.benchmark(group="mine", min_rounds=7, timer=time.process_time)
        @pytest.mark.parametrize("extra", [1, pytest.param(lambda: 0, id="function")])
        @pytest.mark.fwbench(double, sizes=(4,))
        def test_it(benchmark, extra, case):
            benchmark.extra_info["noted"] = extra
            case.measure()
        """,
    )
    result, _ = cases.measure()
    result.assert_outcomes(passed=2)
    stored = cases.entries("measured.json")
    assert [entry["group"] for entry in stored] == ["mine"] * 2
    assert all(entry["stats"]["rounds"] >= 7 for entry in stored)
    assert all(entry["options"]["timer"] == "process_time" for entry in stored)
    assert [entry["params"]["extra"] for entry in stored if "function" not in entry["name"]] == [1]


def test_case_without_marker(cases: Project) -> None:
    cases.write("test_it.py", "def test_it(case):\n    case.measure()\n")
    result = cases.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["the fixture 'case' was asked for by a test without @pytest.mark.fwbench(operation)"]
    )


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_case_that_is_never_measured(cases: Project, isolation: str) -> None:
    """A test that forgets the call fails; one that has skipped or failed itself says why."""
    cases.write(
        "test_it.py",
        """
        import pytest
        from declared import double

        @pytest.mark.fwbench(double, sizes=(4,), executions="eager")
        def test_it(case):
            pass

        @pytest.mark.fwbench(double, sizes=(4,), executions="eager")
        def test_skipped(case):
            pytest.skip("not today")
        """,
    )
    result = cases.run(f"--fw-isolation={isolation}", "-rs")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*the test never called case.measure(), so nothing was*"])
    assert "not today" in str(result.stdout)


@refusals("cases")
def test_refused(cases: Project, given: str, said: list[str]) -> None:
    cases.assert_refused(said, *given.split())


@refusals("settings")
def test_refused_ini(cases: Project, given: str, said: list[str]) -> None:
    cases.write("pytest.ini", f"[pytest]\n{given}")
    cases.assert_refused(said, fw=None)


@refusals("markers")
def test_refused_marker(project: Project, given: str, said: list[str]) -> None:
    project.write("test_it.py", measuring(given))
    project.assert_refused(said, fw=None if "frameworks" in given else "numpy")


@refusals("frameworks")
def test_refused_framework(cases: Project, given: str, said: list[str]) -> None:
    """A framework asked for by name that cannot be used is refused with the reason and a remedy."""
    cases.install("absent", "absentee:Absent", given)
    cases.assert_refused(said, fw="numpy,absent")


@pytest.mark.parametrize("arguments", [["test_first.py"], ["-m", "not fwbench"]])
def test_xdist_without_cases(cases: Project, arguments: list[str]) -> None:
    cases.write("test_first.py", LEAVES_A_TRACE)
    result = cases.run("-n1", *arguments)
    assert result.ret == pytest.ExitCode.OK
    assert (cases.path / "ran").exists()


_FRAMEWORKS = {"mxnet", "tensorflow", "torch"}


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(
    ("arguments", "passed"),
    [(["test_first.py"], 1), (["test_first.py", "test_plain.py", "--benchmark-json=out.json"], 2)],
    ids=["plain", "pytest-benchmark alone"],
)
def test_inert(cases: Project, arguments: list[str], passed: int) -> None:
    """A session without cases shows, starts, imports and leaves nothing of fwbench's."""
    cases.write("test_first.py", LEAVES_A_TRACE)
    cases.write("test_plain.py", "def test_plain(benchmark):\n    benchmark(int)\n")
    result = cases.run("-p", "parent_facts", *arguments, fw=None)
    result.assert_outcomes(passed=passed)
    parent = cases.parent()
    assert "fwbench" not in str(result.stdout).partition("collected")[2]
    assert parent["workers"] == []
    assert not {*parent["modules"]} & {
        *_FRAMEWORKS,
        "numpy",
        "fwbench.plugin.case",
        "fwbench.cases.case",
    }
    assert not (cases.path / ".fwbench").exists()
