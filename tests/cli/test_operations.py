"""``fwbench list`` says what is declared, and its page in docs is up to date."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.cli import operations
from fwbench.workloads import FAMILIES, OPERATIONS
from support import programs
from support.tables import tabled

_ROOT = Path(__file__).parents[2]

_FRAMEWORKS = ["jax", "mxnet", "numpy", "onnxruntime", "tensorflow", "torch"]


def _listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["list", *arguments]) == 0
    return capsys.readouterr().out


def _described(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(_listed(capsys, "--json", *arguments))
    return described


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """If this fails: fwbench list --markdown > docs/operations.md."""
    page = (_ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert _listed(capsys, "--markdown") == page


def test_every_operation_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    described = _described(capsys)
    names = {
        family: [member.name for member in operations] for family, operations in FAMILIES.items()
    }
    assert {family: [*facts] for family, facts in described.items()} == {
        family: listed for family, listed in names.items() if listed
    }
    for operation in OPERATIONS:
        facts = described[operation.family][operation.name]
        assert facts["representative"] is operation.representative
        assert facts["sizes"]["quick"]
        assert sorted(facts["frameworks"]) == _FRAMEWORKS


def test_gaps_have_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "mxnet has no float16 product on the CPU"
    gemm = _described(capsys, "gemm")["linalg"]["gemm"]
    assert (gemm["frameworks"]["torch"]["offered"], gemm["form"]) == ("yes", None)
    assert gemm["frameworks"]["mxnet"]["offered"] == "partly"
    (gap,) = gemm["frameworks"]["mxnet"]["gaps"]
    assert (gap["reason"], gap["dtype"], gap["direction"]) == (reason, "float16", None)
    assert f"    gemm, mxnet (float16, cpu): {reason}" in _listed(capsys, "gemm").splitlines()
    assert f"- gemm, mxnet (float16, cpu): {reason}" in _listed(capsys, "--markdown").splitlines()


def test_the_table_has_a_column_for_each_framework(capsys: pytest.CaptureFixture[str]) -> None:
    family, head, row, *_ = _listed(capsys, "gemm").splitlines()
    assert family == "linalg (1)"
    assert head.split()[: 1 + len(_FRAMEWORKS)] == ["operation", *_FRAMEWORKS]
    assert row.split() == [
        *("gemm", "*", "yes", "partly", *("yes",) * 4, "64,", "256,", "1024", "paper")
    ]


@pytest.mark.parametrize("width", [200, 100, 80, 60])
def test_the_table_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Sizes go below their operations, long reasons on; nothing is cut."""
    whole = _listed(capsys)
    monkeypatch.setattr(operations, "terminal_width", lambda: width)
    lines = _listed(capsys).splitlines()
    assert max(map(len, lines)) <= width
    before, after = (Counter(text.replace(";", " ").split()) for text in (whole, "\n".join(lines)))
    assert {*(before - after)} <= {"quick", "published", "sizes"}, "words of the folded headings"
    assert {*(after - before)} == ({"quick:", "published:"} if width < 200 else set())


def test_composed_operations_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """Their support is the same."""
    _, _, row, *_ = _listed(capsys, "mse").splitlines()
    assert row.split()[1:7] == ["yes+", "partly+", "yes+", "no", "partly+", "yes"]
    frameworks = _described(capsys, "mse")["losses"]["mse"]["frameworks"]
    assert (frameworks["jax"]["offered"], frameworks["jax"]["composed"]) == ("yes", True)
    assert frameworks["torch"]["composed"] is False


def test_families_and_names_narrow_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert [*_described(capsys, "--family=linalg,overhead")] == ["linalg", "overhead"]
    assert [*_described(capsys, "gemm", "dot", "noop")["linalg"]] == ["dot", "gemm"]


@tabled
def test_what_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert cli.main(["list", *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


#: Lists, then says which frameworks have been imported on the way, and whether any can be still.
_IMPORTED = """
import os, sys
from fwbench import cli
before = dict(os.environ)
cli.main(["list"])
assert os.environ == before
names = ("jax", "mxnet", "tensorflow", "torch", "fwbench.frameworks.torch")
print([name for name in names if name in sys.modules])
try:
    import jax
except ModuleNotFoundError:
    pass
else:
    assert jax.__version__
"""


def test_no_framework_is_imported() -> None:
    """Nor is one stood in for any longer when the list is there."""
    assert programs.result("-c", _IMPORTED) == []
