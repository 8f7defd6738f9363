"""Numbers in doubt are marked, and counted in one line before all of them."""

from typing import Any

from fwbench.records.facts import CaseFacts
from fwbench.report import condition
from support.tables import tabled
from support.terminals import entry


def facts(framework: str = "torch", **values: Any) -> CaseFacts:
    made = entry(framework, **values)
    return CaseFacts.checked(made["extra_info"]["fwbench"])


@tabled
def test_marks(values: dict[str, Any], mark: str) -> None:
    assert condition.marks(facts(**values)) == mark
    assert condition.marked("torch", facts(**values)) == ("torch" + (f" ({mark})" if mark else ""))


def test_contention_is_one_line() -> None:
    busy = [facts(condition="contended", others_cpus=cpus) for cpus in (1.7, 1.8, 1.9)]
    (line,) = condition.notes([*busy, facts(condition="clean")], 2)
    assert line.startswith("other processes used 1.8 of 2 CPUs during 3 of 4 cases (contended)")
    assert "upper bounds" in line
    (line,) = condition.notes([facts(condition="contended")], None)
    assert "used some CPUs during 1 of 1 case" in line


def test_slow_cpus_are_no_other_processes() -> None:
    slow = facts(condition="contended", full_speed=0.2, others_cpus=0.0)
    (line,) = condition.notes([slow, facts(full_speed=1.0)], 2)
    assert line.startswith("CPUs were slower than at full speed during 1 of 2 cases (contended)")


def test_the_largest_drift_is_named() -> None:
    """A third less is more than a third more."""
    drifts = (0.3, -0.3, 0.1)
    drifting = [
        facts(condition="drifting", drift=drift, size=size) for size, drift in enumerate(drifts, 1)
    ]
    (line,) = condition.notes([*drifting, facts()], 2)
    assert line.startswith("3 of 4 cases")
    assert "gemm torch eager forward 2" in line
    assert "-30 % from first rounds to last" in line


def test_spinning_names_the_remedy() -> None:
    spinning = [facts(spinning=True), facts(spinning=True), facts(spinning=True, framework="mxnet")]
    (line,) = condition.notes([*spinning, facts(spinning=False)], 2)
    assert line.startswith("3 of 4 cases (torch, mxnet) kept processors busy")
    assert "OMP_WAIT_POLICY=PASSIVE" in line


def test_leaks_name_the_first_case_after_them() -> None:
    """Workspaces that a framework holds are not a leak."""
    left = [facts(device_memory_left_bytes=size * 2**20, size=size) for size in (1, 32, 512, 2048)]
    (line,) = condition.notes([*left, facts()], 2)
    assert line.startswith("2 of 5 cases (torch) began while earlier cases held up to 2,048 MiB")
    assert "gemm torch eager forward 512 was the first of them" in line


def test_without_a_doubt_nothing_is_said() -> None:
    assert condition.notes([facts(condition="clean", spinning=False), facts()], 2) == []


@tabled
def test_precision_is_reduced_below_that_of_the_dtype(
    dtype: str, measured: int | None, reduced: int | None
) -> None:
    assert condition.reduced_bits(facts(dtype=dtype, precision_bits=measured)) == reduced
