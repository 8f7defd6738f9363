"""Gaps and tables that are out of date announce themselves, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from fwbench.errors import DeclarationError
from fwbench.frameworks import table
from fwbench.terms.manifest import Gap
from fwbench.workloads import WORKLOADS

OFFERED = {
    "operations": ("gemm", "tanh"),
    "executions": ("eager", "graph", "fit"),
    "dtypes": ("float32", "float16"),
}


def notices(*gaps: Gap, missing: dict[str, str] | None = None) -> list[str]:
    return [*table.notices("mars", "2.2", missing or {}, gaps, OFFERED)]


@pytest.mark.parametrize(
    "gap",
    [
        Gap("x"),
        Gap("x", "gemm", dtype="float16"),
        Gap("x", "gemm", "graph", "backward", "float16", "gpu"),
        Gap("x", "lenet", execution="fit"),
        Gap("x", "mlp_step", dtype="float32"),
        Gap("x", "mlp_loader", device="cpu"),
        Gap("x", "broadcast"),
        Gap("x", "null_step", execution="graph"),
        Gap("x", direction="train"),
        Gap("x", "sigmoid"),
    ],
    ids=str,
)
def test_a_gap_that_can_apply_says_nothing(gap: Gap) -> None:
    """Whatever parts it leaves open, and whether or not this machine has a GPU."""
    assert notices(gap) == []


def test_every_workload_can_be_a_gap() -> None:
    """Whatever kind it is of, as soon as fwbench has it."""
    names = {*WORKLOADS} - {*OFFERED["operations"]}
    assert notices(*(Gap("x", name) for name in names)) == []


@pytest.mark.parametrize(
    ("gap", "why"),
    [
        (Gap("x", "gmm"), "fwbench has no workload 'gmm' (did you mean 'gemm'?)"),
        (Gap("x", "rover", dtype="float16"), "fwbench has no workload 'rover'"),
        (Gap("x", execution="grph"), "mars has no execution 'grph' (did you mean 'graph'?)"),
        (Gap("x", "gemm", direction="back"), "fwbench has no direction 'back'"),
        (Gap("x", dtype="bfloat16"), "mars has no dtype 'bfloat16' (did you mean 'float16'?)"),
        (Gap("x", device="gpu:0"), "fwbench has no kind of device 'gpu:0' (did you mean 'gpu'?)"),
        (Gap("x", "tanh"), "its operations implement 'tanh'"),
    ],
    ids=str,
)
def test_a_stale_gap_announces_itself(gap: Gap, why: str) -> None:
    """One sentence names the gap by its reason, and says why it can never apply."""
    (notice,) = notices(gap)
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


@pytest.mark.parametrize(
    ("operations", "gaps", "message"),
    [
        ({"sigmiod": "exp"}, (), "'sigmiod', .* mean 'sigmoid'"),
        ({"mlp": "exp"}, (), "'mlp', which is not an operation"),
        ({"tanh": None}, (), "None for 'tanh'"),
        ({}, ("x",), "hold 'x', which is not a fwbench.Gap"),
    ],
)
def test_what_can_only_be_a_mistake_is_refused(operations: Any, gaps: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=f"of mars .*{message}"):
        table.check("mars", operations, gaps)
