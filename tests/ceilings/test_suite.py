"""Ceilings of a machine are measured, and sessions tell records of them."""

import importlib.util
import inspect
import json
import statistics
from collections.abc import Mapping
from typing import Any

import pytest

from fwbench import ceilings, cli, machine
from fwbench.ceilings import Ceiling, Ceilings, suite
from fwbench.processes import session
from fwbench.records.facts import CaseFacts
from support.peaks import BY, QUICKLY
from support.projects import Project, measuring

_SIZED = measuring(
    "gemm, flatten, noop, double", "from fwbench.workloads import flatten, gemm, noop"
)
_SIZED += "\ndef test_plain(benchmark):\n    benchmark(int)\n"

_SESSION = ("--fw-threads=1", "--fw-size=64", "--fw-dtype=float32,float64")
_GEMM = "gemm-numpy-cpu-eager-forward-float32-64"

#: Faster than any machine, since a case above its ceiling fails. As many FLOP as a product of that
#: size has take half of what its bytes take.
_FAST = Ceiling({"float32": 2.0**56 / 3}, 2.0**50, BY)
_ATTAINABLE_S = 3 / 2**36


@pytest.fixture
def sized(project: Project) -> Project:
    """A project whose cases have a cost, are views, do nothing, or do not say what they do."""
    project.write("test_it.py", _SIZED)
    return project


def _of_here(project: Project) -> Ceilings:
    return Ceilings(project.path, machine.machine(machine.cpu_model()), 1)


def _saved(project: Project) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((project.path / "measured.json").read_text("utf-8"))
    return stored


def _shares(stored: Mapping[str, Any]) -> dict[str, tuple[float, bool]]:
    """Attainable times by case id, and whether each share is of the median."""
    reported = {}
    for entry in stored["benchmarks"]:
        facts = entry["extra_info"].get("fwbench", {})
        if "attainable_s" in facts or "attainable_share" in facts:
            seconds = facts["attainable_s"]
            medians_s = [launch["median_s"] for launch in facts.get("launches", [])]
            median_s = statistics.median(medians_s or [entry["stats"]["median"]])
            of_median = facts["attainable_share"] == seconds / median_s
            reported[entry["param"]] = seconds, of_median
    return reported


@pytest.mark.parametrize("arguments", [(), ("--fw-launches=2",)], ids=["once", "launches"])
def test_a_session_says_what_was_attainable(sized: Project, arguments: tuple[str, ...]) -> None:
    """The JSON has the ceilings, and shares where both are known; so has what is recovered."""
    outcome = {machine.cpu_model(): _FAST}
    _of_here(sized).store(outcome)
    result, records = sized.measure(*_SESSION, *arguments)
    assert result.ret == 0
    assert len(records) == 9
    stored = _saved(sized)
    assert stored["fwbench"]["ceilings"] == ceilings.to_json(outcome)
    assert _shares(stored) == {_GEMM: (_ATTAINABLE_S, True)}
    assert cli.main(["recover", "-o", "recovered.json"]) == 0
    recovered = json.loads((sized.path / "recovered.json").read_text(encoding="utf-8"))
    assert recovered["fwbench"]["ceilings"] == ceilings.to_json(outcome)
    assert _shares(recovered) == {_GEMM: (_ATTAINABLE_S, True)}


def test_a_session_without_ceilings_says_nothing(sized: Project) -> None:
    mine = _of_here(sized)
    facts = machine.machine(machine.cpu_model())
    Ceilings(sized.path, facts, 2).store({machine.cpu_model(): _FAST})
    for text in (None, '{"cut off'):
        if text is not None:
            mine.path.write_text(text, encoding="utf-8")
        result, records = sized.measure(*_SESSION)
        assert result.ret == 0
        assert _GEMM in records
        assert _saved(sized)["fwbench"]["ceilings"] == {}
        assert _shares(_saved(sized)) == {}


def test_a_session_bears_nonsense(sized: Project) -> None:
    """Hours of measuring are not lost for a file that says how fast the machine could be."""
    mine = _of_here(sized)
    mine.store({})
    nonsense = {machine.cpu_model(): {"flops_per_s": 3}}
    mine.path.write_text(json.dumps(nonsense), encoding="utf-8")
    result = sized.run("--benchmark-json=measured.json", *_SESSION, "-k", "float32")
    assert result.ret == 0
    assert (sized.path / "measured.json").exists()


def test_the_ceilings_of_numpy() -> None:
    """A real product and a real copy: each a rate, and both together a ceiling."""
    arguments = ["--fw=numpy", "-k", "float32", "--fw-threads=1", "--fw-size=1024", *QUICKLY]
    outcome = session.measure_suite("fwbench.ceilings.suite", arguments)
    facts = {
        record["extra_info"]["fwbench"]["workload"]: record for record in outcome["benchmarks"]
    }
    assert {*facts} == {"gemm", "copy"}
    assert len(outcome["benchmarks"]) == 2
    ceiling = Ceiling()
    for entry in outcome["benchmarks"]:
        ceiling = ceiling.with_result(
            CaseFacts.checked(entry["extra_info"]["fwbench"]), entry["stats"]["min"]
        )
    product, copy = facts["gemm"]["stats"]["min"], facts["copy"]["stats"]["min"]
    assert ceiling.flops_per_s == {"float32": 2 * 1_024**3 / product}
    assert ceiling.bytes_per_s == 2 * 4 * 1_024 / copy
    assert suite.copy.by_preset.quick == (2**26,), "256 MiB, larger than any cache"
    assert {*ceiling.by} == {"float32", "copy"}
    assert facts["copy"]["extra_info"]["fwbench"]["result_is_view"] is False


def test_every_framework_copies(project: Project) -> None:
    """A copy has the values of its source and none of its memory; NumPy's is above."""
    names = ("tensorflow", "mxnet", "torch", "jax")
    installed = [name for name in names if importlib.util.find_spec(name)]
    if not installed:
        pytest.skip("NumPy alone is installed")
    project.write("test_suite.py", inspect.getsource(suite))
    result, records = project.measure(
        *("-k", "copy and cpu", "--fw-size=4096"), fw=",".join(installed)
    )
    assert result.ret == 0, str(result.stdout)
    facts = [record["extra_info"]["fwbench"] for record in records.values()]
    assert sorted(fact["framework"] for fact in facts) == sorted(installed)
    assert not any(fact["result_is_view"] for fact in facts)
