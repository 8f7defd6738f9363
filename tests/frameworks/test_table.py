"""Tables of operations: paths and calls become functions, and what is missing is named."""

import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.frameworks import table
from fwbench.frameworks.layout import CHANNELS_FIRST, Layout
from fwbench.frameworks.table import Call, Composed, Laid, composed, is_composed
from fwbench.packaged import read_table
from fwbench.terms.manifest import Gap
from fwbench.testing import FakeFramework
from fwbench.workloads import COPIES

NEW = SimpleNamespace(double=lambda x: 2 * x, nn=SimpleNamespace(scale=lambda x, by: by * x), pi=3)

#: The tables of paths of fwbench's frameworks.
_ROWS = sorted(Path(table.__file__).parent.glob("*/operations.toml"))


def test_a_path_leads_to_the_function_itself() -> None:
    """Nothing stands between the clock and the framework's own call."""
    assert table.implementation({"tanh": "double"}, "tanh")(NEW) is NEW.double
    assert Call("nn.scale")(NEW) is NEW.nn.scale


def test_a_call_has_its_keywords() -> None:
    """They are given to every call, beside the operands."""
    assert Call("nn.scale", by=5)(NEW)(7) == 35


@pytest.mark.parametrize(
    ("entry", "result"),
    [
        ("nn.scale", False),
        (Call("nn.scale", by=2), False),
        (lambda np: abs, False),
        (Composed(lambda np, n: abs), True),
        (Laid(Composed(lambda np, n: abs), Layout()), True),
        (composed(abs)["abs"], True),
    ],
)
def test_what_is_composed(entry: Any, result: bool) -> None:
    """It is called as any other."""
    assert is_composed(entry) is result
    assert not result or entry(NEW, 3) is abs


def test_a_path_is_looked_up_in_the_namespace_that_is_given() -> None:
    """MXNet's differ: one of arrays, and one of symbols."""
    other = SimpleNamespace(double=lambda x: f"{x}{x}")
    implementation = table.implementation({"tanh": "double"}, "tanh")
    assert (implementation(NEW)(3), implementation(other)(3)) == (6, "33")


def test_a_function_is_an_implementation_as_it_is() -> None:
    """Where a path will not do."""
    mine = lambda namespace: namespace.double  # noqa: E731 (as tables have it)
    assert table.implementation({"tanh": mine}, "tanh") is mine


@pytest.fixture
def with_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], int]]:
    """Writes the gaps of the package ``with_gaps``."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "with_gaps").mkdir()
    yield (tmp_path / "with_gaps" / "gaps.toml").write_text
    sys.modules.pop("with_gaps")
    read_table.cache_clear()


@pytest.mark.usefixtures("with_gaps")
def test_rows_of_paths(tmp_path: Path) -> None:
    """Paths alone, with keyword arguments, and of arrays in another layout."""
    (tmp_path / "with_gaps" / "operations.toml").write_text(
        'tanh = "double"\nscale = { path = "nn.scale", by = 5 }\n'
        'pool = { path = "nn.scale", by = [5, 6], laid = "CHANNELS_FIRST" }\n'
    )
    rows = table.paths_of("with_gaps")
    assert table.layout_of(table.implementation(rows, "pool")) is CHANNELS_FIRST
    assert table.implementation(rows, "pool")(NEW)(2) == (5, 6, 5, 6)
    assert table.implementation(rows, "tanh")(NEW) is NEW.double
    assert table.implementation(rows, "scale")(NEW)(7) == 35


@pytest.mark.parametrize("file", _ROWS, ids=lambda file: file.parent.name)
def test_an_operation_has_one_row(file: Path) -> None:
    """Code would win over a path of the same name without a word."""
    coded = re.findall(r'^ +"(\w+)": ', file.with_suffix(".py").read_text("utf-8"), re.MULTILINE)
    assert coded
    assert not {*coded} & {*tomllib.loads(file.read_text("utf-8"))}


@pytest.mark.parametrize(
    ("row", "gaps"),
    [
        ('reason = "no product"\nworkload = "dot"', [Gap("no product", "dot")]),
        (
            'reason = "no {dtype}"\nworkload = ["dot", "COPIES"]\ndtype = ["int8", "int4"]',
            [
                Gap(f"no {dtype}", name, dtype=dtype)
                for name in ("dot", *(copy.name for copy in COPIES))
                for dtype in ("int8", "int4")
            ],
        ),
        ('reason = "no pytest"\nneeds = ["json", "pytest"]', []),
        (
            'reason = "no {missing}"\nexecution = "jit"\nneeds = ["json", "away", "gone"]',
            [Gap("no away and gone", execution="jit")],
        ),
    ],
    ids=["one", "lists", "installed", "not installed"],
)
def test_rows_of_gaps(row: str, gaps: list[Gap], with_gaps: Callable[[str], int]) -> None:
    """Lists, tuples of workloads and modules that are not installed."""
    with_gaps(f"[[gap]]\n{row}\n")
    assert list(table.gaps_of("with_gaps")) == gaps


def test_rows_of_toggles(with_gaps: Callable[[str], int]) -> None:
    """A row without an execution is about all that are given; strategies are named."""
    with_gaps(
        '[[toggle_gap]]\nreason = "no {toggle}"\ntoggle = ["tf32=on", "loop=python"]\n'
        '[[toggle_gap]]\nreason = "one"\nexecution = "jit"\ntoggle = "pinned=on"\n'
        '[[gang_gap]]\nreason = "two"\nstrategy = ["a", "b"]\ntoggle = "sparse=on"\n'
    )
    assert table.toggle_gaps_of("with_gaps", ("eager", "jit")) == {
        **{(how, "tf32", "on"): "no tf32=on" for how in ("eager", "jit")},
        **{(how, "loop", "python"): "no loop=python" for how in ("eager", "jit")},
        ("jit", "pinned", "on"): "one",
    }
    assert table.gang_gaps_of("with_gaps") == {(s, "sparse", "on"): "two" for s in "ab"}
    assert table.gaps_of("with_gaps") == ()


class OnDemand:
    """A namespace that imports when it is asked, as TensorFlow's does."""

    def __getattr__(self, name: str) -> Any:
        raise ModuleNotFoundError(name)


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("double", None),
        ("nn.scale", None),
        (Call("nn.scale", by=2), None),
        ("nn.gelu", "nn.gelu"),
        ("gone.scale", "gone.scale"),
        (Call("gone", by=2), "gone"),
        ("pi", "pi"),
        (Call("pi", by=2), "pi"),
        (lambda namespace: namespace.gone, None),
    ],
)
def test_what_a_version_lacks(entry: Any, missing: str | None) -> None:
    """A path that leads to no function is missing; only the function's author knows of others."""
    result = table.missing_paths({"tanh": entry}, NEW)
    assert result == ({} if missing is None else {"tanh": missing})


def test_a_namespace_that_cannot_import_lacks_the_function() -> None:
    """It is no reason to give up the framework."""
    assert table.missing_paths({"tanh": "nn.tanh"}, OnDemand()) == {"tanh": "nn.tanh"}


class Old(FakeFramework):
    __module__ = "support.fakes"
    version = "2.2"
    namespace = NEW
    operations = {"tanh": "nn.tanh", "relu": "double"}  # noqa: RUF012 (as a table is)


def test_a_manifest_tells_what_is_missing() -> None:
    """The operation is not among those that the framework implements, and its reason is kept."""
    manifest = Old().manifest("a CPU")
    assert manifest.operations == ("relu",)
    assert manifest.missing == {"tanh": "fake 2.2 has no nn.tanh"}
    assert manifest.notices == ("package support: fake 2.2 has no nn.tanh; skipped: tanh",)
