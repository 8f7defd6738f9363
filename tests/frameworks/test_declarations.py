"""Gaps and tables that are out of date announce themselves, and nothing else does."""

from typing import Any

import pytest

from fwbench.errors import DeclarationError
from fwbench.frameworks import table
from fwbench.terms.manifest import Gap
from fwbench.workloads import WORKLOADS
from support.tables import tabled

OFFERED = {
    "operations": ("gemm", "tanh"),
    "executions": ("eager", "graph", "fit"),
    "dtypes": ("float32", "float16"),
}


def notices(*gaps: Gap, missing: dict[str, str] | None = None) -> list[str]:
    return [*table.notices("mars", "2.2", missing or {}, gaps, OFFERED)]


@tabled
def test_a_gap_that_can_apply_says_nothing(parts: dict[str, str]) -> None:
    """Whatever parts it leaves open, and whether or not this machine has a GPU."""
    assert notices(Gap("x", **parts)) == []


def test_every_workload_can_be_a_gap() -> None:
    """Whatever kind it is of, as soon as fwbench has it."""
    names = {*WORKLOADS} - {*OFFERED["operations"]}
    assert notices(*(Gap("x", name) for name in names)) == []


@tabled
def test_a_stale_gap_announces_itself(parts: dict[str, str], why: str) -> None:
    """One sentence names the gap by its reason, and says why it can never apply."""
    (notice,) = notices(Gap("x", **parts))
    assert notice.startswith(f"the gap 'x' of mars is stale: {why}")
    assert notice.endswith("; remove or correct it")


def test_what_a_version_lacks_is_one_sentence() -> None:
    missing = {"relu": "nn.relu", "tanh": "nn.tanh"}
    assert notices(missing=missing) == ["mars 2.2 has no nn.relu, nn.tanh; skipped: relu, tanh"]


def test_what_is_declared_to_be_missing_is_no_news() -> None:
    """The framework's author knows that a version lacks it."""
    assert notices(Gap("since 2.4", "relu"), missing={"relu": "nn.relu"}) == []
    result = notices(Gap("float16", "relu", dtype="float16"), missing={"relu": "nn.relu"})
    assert result == ["mars 2.2 has no nn.relu; skipped: relu"]


@pytest.mark.parametrize("entry", ["exp", lambda np: np.exp])
def test_a_table_that_names_operations_is_right(entry: Any) -> None:
    """Paths and functions may be mixed; no gap need be declared."""
    table.check("mars", {"tanh": entry}, ())


@tabled
def test_what_can_only_be_a_mistake_is_refused(operations: Any, gaps: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=f"of mars .*{message}"):
        table.check("mars", operations, gaps)
