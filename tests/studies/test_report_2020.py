"""``fwbench report --paper``: what was published in 2020, and what a run says of it today."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fwbench import cli
from fwbench.errors import UnreadableRun, UsageError
from fwbench.gate.verdicts import Comparison, Rules
from fwbench.report.model import Run, read
from fwbench.report.sections import Cell, Part
from fwbench.studies import report_2020
from fwbench.studies.report_2020 import operations, published
from fwbench.studies.report_2020.operations import Ratios
from fwbench.workloads import OPERATIONS
from support.launched_runs import output, plain, write
from support.reports import case, column, foreign_run, parsed, part, runs_of, stored, training

_USAGE_ERROR = 2
_SOME_UNREADABLE = 1

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be told from this run"

WAY_FASTER = "MXNet apart from creation is way faster"
TRAINS_FASTER = "MXNet trains LeNet faster"
HYBRIDIZE = "hybridize trades accuracy for time"
XLA = "XLA slows LeNet down"
FIRST_EPOCH = "the first epoch takes 2.5x"
EAGER = "eager is faster"

_STATEMENTS = "What became of the statements of 2020"

every_device = pytest.mark.parametrize("device", ["cpu", "gpu"])


# What is made up

Entry = dict[str, Any]


def pair(
    workload: str = "gemm",
    size: int = 100,
    done: float = 1.0,
    returned: float | None = None,
    **facts: Any,
) -> list[Entry]:
    """An operation in both frameworks.

    Args:
        workload: of the cases.
        size: of the cases.
        done: how many times as long as MXNet TensorFlow takes until the work is done.
        returned: the same until the call returns; as many if it is not given.
        facts: what else fwbench says of both.
    """
    factor = done if returned is None else returned
    return [
        case(workload, framework, size=size, completion_s=done_s, dispatch_s=returned_s, **facts)
        for framework, done_s, returned_s in (
            ("tensorflow", 4.0 * done, 0.5 * factor),
            ("mxnet", 4.0, 0.5),
        )
    ]


def sizes_of(device: str = "cpu") -> dict[str, list[int]]:
    """The sizes of each operation that was published."""
    found: dict[str, list[int]] = {}
    for row in published.rows("operations", device):
        if row["framework"] == "mxnet":
            found.setdefault(row["operation"], []).append(int(row["size"]))
    return found


#: Of which the first statement speaks.
_ABOUT = [
    (name, size)
    for name, sizes in sizes_of().items()
    for size in sizes
    if name not in {"from_numpy", "from_list"}
]


#: The same, the first size of every operation before the second of any.
_ACROSS = [
    (name, size)
    for several in itertools.zip_longest(
        *([(name, size) for name, size in _ABOUT if name == one] for one in dict(_ABOUT))
    )
    for name, size in filter(None, several)
]


def pairs(
    cases: Iterable[tuple[str, int]], done: float, returned: float | None = None, **facts: Any
) -> list[Entry]:
    """Several operations in both frameworks; see :func:`pair`."""
    return [one for name, size in cases for one in pair(name, size, done, returned, **facts)]


#: The facts of MNIST where it was made up.
_SYNTHETIC = {"name": "mnist", "source": "synthetic", "origin": "made", "digest": "s"}


def lenet(
    framework: str = "mxnet",
    execution: str = "eager",
    values_s: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    first_s: float = 1.0,
    accuracy: float | None = 0.98,
    **facts: Any,
) -> Entry:
    """The entry of a LeNet, one training: its first epoch, and then the others."""
    epochs = [
        {"repetition": 1, "epoch": number, "seconds": seconds, "train_loss": 0.5}
        for number, seconds in enumerate((first_s, *values_s), 1)
    ]
    what = {
        "epochs": epochs,
        "test_accuracy": []
        if accuracy is None
        else [{"repetition": 1, "epoch": len(epochs), "accuracy": accuracy}],
        "steps_per_epoch": 240,
        "data": {
            "name": "mnist",
            "source": "real",
            "origin": "its authors",
            "digest": "d",
            "train": 48_000,
            "validation": 12_000,
            "test": 10_000,
        },
        **facts,
    }
    made = training(framework, execution, **what)
    made["stats"] = {"data": [*values_s] or [first_s], "min": min(values_s, default=first_s)}
    return made


def of_15(framework: str, execution: str, epoch_s: float = 1.0, **facts: Any) -> Entry:
    """A LeNet of 15 epochs, each as long as the others."""
    return lenet(framework, execution, (epoch_s,) * 14, epoch_s, **facts)


def model(workload: str, framework: str = "tensorflow", execution: str = "eager") -> Any:
    """Makes entries of another training."""

    def make(epoch_s: float, **facts: Any) -> Entry:
        made = lenet(
            framework, execution, **{"values_s": (epoch_s,) * 4, "first_s": epoch_s, **facts}
        )
        made["extra_info"]["fwbench"]["workload"] = workload
        return made

    return make


#: Times that differ less from each other than among themselves.
_NOISE = (1.0, 2.0, 3.0, 1.5, 2.5)
_NOISE_TOO = (1.1, 2.1, 2.9, 1.6, 2.4)


# What is read


def ratios(run: Run, device: str = "cpu") -> dict[tuple[str, int], Ratios]:
    """Of a run, by operation and size."""
    return {
        (one.operation, one.size): one for one in operations.ratios_of(device, list(run.records))
    }


def section(runs: Sequence[Run], title: str) -> Part:
    """The part of ``--paper`` of that title."""
    (found,) = [one for one in report_2020.parts(runs) if one.title == title]
    return found


def rows_of(found: Part) -> list[dict[str, str]]:
    """The rows of a table: texts by column."""
    return [
        {name: cell.text for name, cell in zip(found.columns, row.cells, strict=True)}
        for row in found.rows
    ]


def statements(*runs: Run, device: str = "cpu") -> dict[str, dict[str, str]]:
    """What became of each statement."""
    return {
        row["statement"].strip('"'): row
        for row in rows_of(section(runs, _STATEMENTS))
        if row["device"] == device
    }


def judged(folder: Path, statement: str, *entries: Mapping[str, Any]) -> dict[str, str]:
    """What became of a statement in a run of these cases."""
    return statements(stored(folder, "run.json", *entries))[statement]


def lenets(run: Run, device: str = "cpu") -> dict[tuple[str, int], dict[str, str]]:
    """The table of LeNet, by case and epochs."""
    rows = rows_of(section([run], f"2020, LeNet on the {device.upper()}"))
    return {(row["case"], int(row["epochs"])): row for row in rows}


def trained(run: Run, device: str = "cpu") -> dict[tuple[str, int], tuple[str, str]]:
    """Of the table of LeNet what is of today: seconds and accuracies, where there are any."""
    return {
        name: (row["today (wall clock)"], row["accuracy today"])
        for name, row in lenets(run, device).items()
        if row["today (wall clock)"] or row["accuracy today"]
    }


# What was published


@every_device
def test_all_operations_were_published(device: str) -> None:
    """But noop: in both frameworks, once, in the sizes that the preset `paper` measures."""
    rows = published.rows("operations", device)
    found = Counter((row["operation"], int(row["size"]), row["framework"]) for row in rows)
    assert found == Counter(
        (of.name, size, framework)
        for of in OPERATIONS
        if of.name != "noop"
        for size in of.by_preset.preset("paper")
        for framework in ("mxnet", "tensorflow")
    )
    assert len(rows) == 328
    assert {row["device"] for row in rows} == {device}


@every_device
def test_times_of_operations_are_plausible(device: str) -> None:
    """Between a microsecond and ten seconds for a trial; no ratio is beyond a hundred."""
    times_s = [float(row["median_s"]) for row in published.rows("operations", device)]
    assert all(1e-6 < one < 10 for one in times_s)
    found = [one.published for one in operations.ratios_of(device, [])]
    assert len(found) == 164
    assert all(0.01 < one < 100 for one in found)


@pytest.mark.parametrize(
    ("device", "operation", "size", "framework", "median_s"),
    [
        ("cpu", "from_numpy", 20_000, "mxnet", 0.009507202),
        ("cpu", "from_numpy", 20_000, "tensorflow", 0.0048981145),
        ("cpu", "from_list", 10_000, "tensorflow", 0.091954542),
        ("cpu", "sigmoid", 57_500, "mxnet", 0.0913873385),
        ("cpu", "gemm", 450, "mxnet", 0.02883688),
        ("cpu", "gemm", 450, "tensorflow", 0.724615362),
        ("cpu", "l2_normalize", 450, "tensorflow", 2.03856426),
        ("gpu", "from_numpy", 95_000, "mxnet", 0.0333680075),
        ("gpu", "softsign", 500, "tensorflow", 0.0093906515),
        ("gpu", "dot", 91_000, "mxnet", 0.012394639),
        ("gpu", "flatten", 550, "mxnet", 0.000419092),
        ("gpu", "gemm", 550, "tensorflow", 0.028300347),
    ],
)
def test_medians_of_operations_are_those_published(
    device: str, operation: str, size: int, framework: str, median_s: float
) -> None:
    """To four digits."""
    (row,) = [
        one
        for one in published.rows("operations", device)
        if (one["operation"], one["size"], one["framework"]) == (operation, str(size), framework)
    ]
    assert float(row["median_s"]) == pytest.approx(median_s, rel=5.1e-4)


#: Epochs of what was published, as the scripts are called here, by device.
_PUBLISHED_LENETS = {
    "cpu": {
        ("mxnet", "eager"): [3, 5, 15],
        ("mxnet", "hybridize"): [3, 5, 15],
        ("tensorflow", "graph"): [3, 5, 15],
        ("tensorflow", "xla"): [5, 15],
    },
    "gpu": {
        ("mxnet", "eager"): [3, 5, 15],
        ("mxnet", "hybridize"): [3, 5, 15],
        ("tensorflow", "graph"): [3, 5, 15, 50],
        ("tensorflow", "xla"): [5, 15, 50],
    },
}


@every_device
def test_all_lenets_were_published(device: str) -> None:
    """MXNet with and without hybridize, TensorFlow's graph with and without XLA."""
    found: dict[tuple[str, str], list[int]] = {}
    for row in published.rows("lenet", device):
        found.setdefault((row["framework"], row["execution"]), []).append(int(row["epochs"]))
    assert found == _PUBLISHED_LENETS[device]


@every_device
def test_figures_of_lenet_are_plausible(device: str) -> None:
    """Medians of three trainings at least; more epochs take longer; MNIST is learned."""
    rows = published.rows("lenet", device)
    assert all(int(row["runs"]) >= 3 for row in rows)
    assert all(0.97 < float(row["median_accuracy"]) < 0.99 for row in rows)
    for row, longer in itertools.pairwise(rows):
        assert float(row["median_total_s"]) > 10
        if (row["framework"], row["execution"]) == (longer["framework"], longer["execution"]):
            assert int(longer["epochs"]) > int(row["epochs"])
            assert float(longer["median_total_s"]) > float(row["median_total_s"])


@pytest.mark.parametrize(
    ("device", "framework", "execution", "epochs", "runs", "total_s", "accuracy"),
    [
        ("cpu", "mxnet", "eager", 5, 3, 265.512311, 0.9833),
        ("cpu", "mxnet", "hybridize", 15, 8, 713.957661, 0.9806),
        ("cpu", "tensorflow", "graph", 3, 3, 269.183078, 0.9771),
        ("cpu", "tensorflow", "xla", 15, 7, 1318.34963, 0.9864),
        ("gpu", "mxnet", "eager", 5, 6, 41.46077635, 0.9842),
        ("gpu", "mxnet", "hybridize", 5, 5, 32.3608351, 0.9849),
        ("gpu", "tensorflow", "graph", 50, 3, 321.697231, 0.9877),
        ("gpu", "tensorflow", "xla", 50, 3, 322.670189, 0.9876),
    ],
)
def test_medians_of_lenet_are_those_published(
    device: str,
    framework: str,
    execution: str,
    epochs: int,
    runs: int,
    total_s: float,
    accuracy: float,
) -> None:
    """What each script's runs took and reached."""
    (row,) = [
        one
        for one in published.rows("lenet", device)
        if (one["framework"], one["execution"], one["epochs"])
        == (framework, execution, str(epochs))
    ]
    assert int(row["runs"]) == runs
    assert float(row["median_total_s"]) == pytest.approx(total_s, rel=5e-4)
    assert float(row["median_accuracy"]) == pytest.approx(accuracy, abs=1e-9)


# Ratios


@pytest.mark.parametrize(
    ("device", "operation", "size", "ratio"),
    [
        ("cpu", "gemm", 450, 25.128),
        ("cpu", "from_numpy", 20_000, 0.5152),
        ("cpu", "softplus", 500, 1.0472),
        ("gpu", "gemm", 450, 9.3616),
        ("gpu", "dot", 91_000, 10.605),
    ],
)
def test_published_ratios(device: str, operation: str, size: int, ratio: float) -> None:
    """TensorFlow's time over MXNet's, on the same device, whatever was measured today."""
    (found,) = [
        one
        for one in operations.ratios_of(device, [])
        if (one.operation, one.size) == (operation, size)
    ]
    assert found.published == pytest.approx(ratio, rel=1e-3)
    assert (found.dispatch, found.completion) == (None, None)


def test_ratios_are_tensorflow_over_mxnet(tmp_path: Path) -> None:
    """Until done and until returned, each by its own clock; whichever came first."""
    entries = pair("gemm", 100, 3.0, 20.0)
    for order in (entries, entries[::-1]):
        run = stored(tmp_path, "run.json", *order)
        found = ratios(run)["gemm", 100]
        assert (found.completion, found.dispatch) == (3.0, 20.0)
        assert [key for key, one in ratios(run).items() if one.completion] == [("gemm", 100)]


@pytest.mark.parametrize("changed", ["tensorflow", "mxnet"])
@pytest.mark.parametrize(
    "changes",
    [
        {"execution": "graph"},
        {"dtype": "float64"},
        {"dtype": "bfloat16"},
        {"direction": "backward"},
        {"size": 101},
        {"size": 1024},
        {"dispatch_s": None},
        {"toggles_asked": {"onednn": "off"}},
    ],
    ids=str,
)
def test_other_work_is_no_ratio(tmp_path: Path, changed: str, changes: dict[str, Any]) -> None:
    """Only eager, float32, forward, the published sizes, by both clocks, without toggles."""
    facts = {"size": 100, "completion_s": 2.0, "dispatch_s": 1.0}
    entries = [
        case("gemm", framework, **{**facts, **(changes if framework == changed else {})})
        for framework in ("tensorflow", "mxnet")
    ]
    found = ratios(stored(tmp_path, "run.json", *entries))
    assert len(found) == 164
    assert {one.completion for one in found.values()} == {None}
    assert {one.dispatch for one in found.values()} == {None}


@pytest.mark.parametrize(
    ("one", "other"), [("tensorflow", None), ("mxnet", None), ("tensorflow", "torch")]
)
def test_a_framework_that_is_missing_makes_no_ratio(
    tmp_path: Path, one: str, other: str | None
) -> None:
    """Nobody else stands for it."""
    run = stored(tmp_path, "run.json", *(case("gemm", name) for name in (one, other) if name))
    assert ratios(run)["gemm", 100].completion is None
    table = section([run], "2020, operations on the CPU: TensorFlow's time over MXNet's")
    assert column(table, "sizes measured")["gemm"].text == "0 of 11"


def test_the_first_gpu_is_the_gpu(tmp_path: Path) -> None:
    """Its figures stand beside those of the GPU, and not beside those of the CPU."""
    run = stored(tmp_path, "run.json", *pair("gemm", 450, 3.0, device="gpu:0"))
    found = report_2020.parts([run])
    assert [one.title for one in found if "CPU" in one.title] == []
    (row,) = rows_of(
        section([run], "2020, operations on the GPU: TensorFlow's time over MXNet's, size by size")
    )
    assert row["2020, published"] == "9.36x"
    assert row["today, until the work was done"] == "3.00x"
    assert {one["device"] for one in rows_of(found[0])} == {"gpu"}


def test_devices_are_apart(tmp_path: Path) -> None:
    """No ratio is of a CPU and a GPU; each device has its own parts, the CPU's first."""
    tensorflow, _ = pair("gemm", 450, 3.0)
    _, mxnet = pair("gemm", 450, 3.0, device="gpu:0")
    run = stored(tmp_path, "run.json", mxnet, tensorflow)
    assert [one.title for one in report_2020.parts([run])] == [
        _STATEMENTS,
        "2020, operations on the CPU: TensorFlow's time over MXNet's",
        "2020, operations on the GPU: TensorFlow's time over MXNet's",
        "2020, LeNet on the CPU",
        "2020, LeNet on the GPU",
    ]
    for device in ("cpu", "gpu"):
        assert len(statements(run, device=device)) == 6


def test_operations_with_toggles_are_no_ratios(tmp_path: Path) -> None:
    """As for LeNet: a toggle that was asked for is not what was measured in 2020."""
    usual, mxnet = pair("gemm", 100, 3.0)
    toggled = case(
        "gemm", "tensorflow", size=100, completion_s=400.0, toggles_asked={"onednn": "off"}
    )
    for order in itertools.permutations([usual, toggled, mxnet]):
        assert ratios(stored(tmp_path, "run.json", *order))["gemm", 100].completion == 3.0


def test_only_the_first_gpu_counts(tmp_path: Path) -> None:
    """No figure is of the second, and no ratio is of both."""
    title = "2020, operations on the GPU: TensorFlow's time over MXNet's"
    first, second = (pair("gemm", 100, factor, device=f"gpu:{i}") for i, factor in ((0, 3), (1, 9)))
    for entries, told in (
        ((*first, *second), "3.00x (3.00x to 3.00x)"),
        ((*second, *first), "3.00x (3.00x to 3.00x)"),
        ((first[0], second[1]), "not measured"),
    ):
        table = section([stored(tmp_path, "run.json", *entries)], title)
        found = column(table, "today, until the work was done (range)")["gemm"]
        assert found.text == told


@pytest.mark.parametrize("device", ["gpu:1", "gpu", "gpu:00", "cpu:0", "tpu:0"])
def test_other_devices_are_beside_nothing(tmp_path: Path, device: str) -> None:
    """Neither their operations nor their trainings: it is said that nothing can be told."""
    entries = [*pairs(_ABOUT, 2.0, device=device), of_15("mxnet", "eager", device=device)]
    (only,) = report_2020.parts([stored(tmp_path, "run.json", *entries)])
    _tells_nothing(only)
    beside = stored(tmp_path, "run.json", *entries, case("dot", "torch"))
    assert {row["device"] for row in rows_of(section([beside], _STATEMENTS))} == {"cpu"}
    assert statements(beside)[WAY_FASTER]["verdict"] == UNKNOWN
    assert trained(beside) == {}


def test_operations_are_told_in_rows(tmp_path: Path) -> None:
    """How many sizes, geometric means with their range by each clock; nothing is made up.

    All of the sizes that were measured, those of 2020 too.
    """
    entries = [*pair("gemm", 50, 2.0, 10.0), *pair("gemm", 450, 8.0, 40.0)]
    run = stored(tmp_path, "run.json", *entries)
    title = "2020, operations on the CPU: TensorFlow's time over MXNet's"
    rows = {row["operation"]: row for row in rows_of(section([run], title))}
    assert [*rows] == [*sizes_of()]
    assert rows["gemm"] == {
        "operation": "gemm",
        "sizes measured": "2 of 11",
        "2020, published (range)": "17.41x (12.07x to 25.12x)",
        "today, until calls returned (range)": "20.00x (10.00x to 40.00x)",
        "today, until the work was done (range)": "4.00x (2.00x to 8.00x)",
    }
    assert rows["dot"] == {
        "operation": "dot",
        "sizes measured": "0 of 10",
        "2020, published (range)": "13.29x (12.75x to 14.39x)",
        "today, until calls returned (range)": "not measured",
        "today, until the work was done (range)": "not measured",
    }
    assert rows_of(section([run], f"{title}, size by size")) == [
        {
            "operation": f"gemm {size}",
            "2020, published": then,
            "today, until calls returned": returned,
            "today, until the work was done": done,
        }
        for size, then, returned, done in (
            (50, "12.07x", "10.00x", "2.00x"),
            (450, "25.12x", "40.00x", "8.00x"),
        )
    ]


def test_operations_are_drawn(tmp_path: Path) -> None:
    """Today's by both clocks where there are any, and of 2020 the same sizes, or else all."""
    title = "2020, operations on the CPU: TensorFlow's time over MXNet's"
    run = stored(tmp_path, "run.json", *pair("gemm", 450, 8.0, 40.0))
    (chart,) = section([run], title).charts
    assert "gemm, today, until calls returned: 40.00x" in chart.text
    assert "gemm, today, until the work was done: 8.00x" in chart.text
    assert "gemm, 2020, published: 25.12x" in chart.text
    assert "dot, 2020, published: 13.29x" in chart.text
    for name in sizes_of():
        assert f"{name}, 2020, published: " in chart.text
    run = stored(tmp_path, "run.json", case("gemm", "torch"))
    (chart,) = section([run], title).charts
    assert "today" not in chart.text
    assert [one.text for one in parsed(chart.svg).of_class("legend")] == ["2020, published"]


# The statements


_WHOLE_EPOCHS = "whole epochs of the real MNIST: pytest benchmarks -k lenet --fw-epochs 5"


def _few_operations(operations: int, sizes: int) -> str:
    return (
        f"{operations} of 9 operations were measured in both frameworks, in {sizes} of 137 sizes: "
        "pytest benchmarks --fw-size paper"
    )


def _tells_nothing(only: Part) -> None:
    """That is all there is of 2020: a note, and no row and no chart."""
    assert only.title == _STATEMENTS
    assert not only.rows
    assert not only.charts
    (note,) = only.notes
    assert note.endswith("nothing can be told.")


def test_all_statements_are_judged(tmp_path: Path) -> None:
    """Each once, in one order; of a run that has nothing of them none can be told."""
    found = statements(stored(tmp_path, "run.json", case("gemm", "torch")))
    assert [*found] == [WAY_FASTER, TRAINS_FASTER, HYBRIDIZE, XLA, FIRST_EPOCH, EAGER]
    assert {row["verdict"] for row in found.values()} == {UNKNOWN}
    assert {name: row["today"] for name, row in found.items()} == {
        WAY_FASTER: _few_operations(0, 0),
        TRAINS_FASTER: f"needs LeNet in tensorflow graph and mxnet eager, {_WHOLE_EPOCHS}",
        HYBRIDIZE: f"needs LeNet in mxnet eager and mxnet hybridize, {_WHOLE_EPOCHS}",
        XLA: f"needs LeNet in tensorflow xla and tensorflow graph, {_WHOLE_EPOCHS}",
        FIRST_EPOCH: "needs trainings: pytest benchmarks -k lenet",
        EAGER: "needs a model, or its step, in tensorflow eager and graph",
    }


@pytest.mark.parametrize(
    ("device", "statement", "figures"),
    [
        (
            "cpu",
            TRAINS_FASTER,
            "15 epochs: mxnet eager 787 s, 98.71%; tensorflow graph 1322 s, 98.64%",
        ),
        ("cpu", HYBRIDIZE, "15 epochs: mxnet hybridize 714 s, 98.06%; mxnet eager 787 s, 98.71%"),
        (
            "cpu",
            XLA,
            "15 epochs: tensorflow xla 1318 s, 98.64%; tensorflow graph 1322 s, 98.64%",
        ),
        ("gpu", XLA, "50 epochs: tensorflow xla 323 s, 98.76%; tensorflow graph 322 s, 98.77%"),
        ("cpu", FIRST_EPOCH, "the statement itself"),
        ("cpu", EAGER, "no figures were published"),
    ],
)
def test_statements_are_told_with_what_they_were_made_on(
    tmp_path: Path, device: str, statement: str, figures: str
) -> None:
    """Of the longest training that both had, on the same device."""
    named = {"cpu": "cpu", "gpu": "gpu:0"}[device]
    run = stored(tmp_path, "run.json", case("gemm", "torch", device=named))
    assert statements(run, device=device)[statement]["2020"] == figures


@every_device
def test_published_operations_are_told_without_creation(tmp_path: Path, device: str) -> None:
    """Between which operations the means of 2020 lie."""
    named = {"cpu": "cpu", "gpu": "gpu:0"}[device]
    run = stored(tmp_path, "run.json", case("gemm", "torch", device=named))
    told = statements(run, device=device)[WAY_FASTER]["2020"]
    title = f"2020, operations on the {device.upper()}: TensorFlow's time over MXNet's"
    cells = column(section([run], title), "2020, published (range)")
    means = {
        name: cell.value
        for name, cell in cells.items()
        if name not in {"from_numpy", "from_list"} and cell.value
    }
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    assert told == f"{means[low]:.2f}x ({low}) to {means[high]:.2f}x ({high})"


def test_notes_say_how_statements_are_judged(tmp_path: Path) -> None:
    """All limits that decide are in the text under the table."""
    (note,) = section([stored(tmp_path, "run.json", case())], _STATEMENTS).notes
    for limit in (
        *("less time for every operation", "2 times less on their geometric mean"),
        *("99%", "0.1 points", "2 times the others"),
    ):
        assert limit in note


def test_way_faster_holds(tmp_path: Path) -> None:
    """Every operation is; the text says by which, by both clocks."""
    entries = [*pairs(_ABOUT, 2.0, 3.0), *pair("gemm", 50, 8.0, 30.0)]
    found = judged(tmp_path, WAY_FASTER, *entries)
    assert found["verdict"] == HOLDS
    # One of eleven sizes of gemm: 2 times the eleventh root of 4, and 3 times that of 10.
    assert found["today"] == (
        "less time for 9 of 9 operations: 2.00x (sigmoid) to 2.27x (gemm) until done; "
        "3.00x (sigmoid) to 3.70x (gemm) until returned"
    )


def test_way_faster_is_about_work_that_is_done(tmp_path: Path) -> None:
    """Calls that return early are not faster."""
    found = judged(tmp_path, WAY_FASTER, *pairs(_ABOUT, 0.8, 20.0))
    assert found["verdict"] == FAILS
    assert found["today"].startswith("less time for 0 of 9 operations: 0.80x (")
    assert "20.00x (" in found["today"]


def _of(ratios: Mapping[str, float], others: float) -> list[Entry]:
    """All sizes of all operations, TensorFlow so many times as long as MXNet."""
    return [one for name, size in _ABOUT for one in pair(name, size, ratios.get(name, others))]


@pytest.mark.parametrize(
    ("ratio", "verdict", "faster"),
    [(1.001, HOLDS, 9), (1.0, FAILS, 8), (0.999, FAILS, 8), (0.5, FAILS, 8)],
)
def test_way_faster_is_every_operation(
    tmp_path: Path, ratio: float, verdict: str, faster: int
) -> None:
    """One that does not take less time is enough, and the text says how many do."""
    found = judged(tmp_path, WAY_FASTER, *_of({"dot": ratio}, 4.0))
    assert found["verdict"] == verdict
    assert found["today"].startswith(
        f"less time for {faster} of 9 operations: {ratio:.2f}x (dot) to 4.00x ("
    )


@pytest.mark.parametrize(("ratio", "verdict"), [(2.001, HOLDS), (1.999, FAILS), (1.5, FAILS)])
def test_way_faster_is_twice_as_fast(tmp_path: Path, ratio: float, verdict: str) -> None:
    """Less time for every operation is not enough."""
    found = judged(tmp_path, WAY_FASTER, *pairs(_ABOUT, ratio))
    assert found["verdict"] == verdict
    assert found["today"].startswith(f"less time for 9 of 9 operations: {ratio:.2f}x (")


def test_the_limit_of_way_faster_belongs_to_it(tmp_path: Path) -> None:
    """2 is what the note says."""
    found = judged(tmp_path, WAY_FASTER, *pairs(_ABOUT, 2.0))
    assert found["verdict"] == HOLDS


@pytest.mark.parametrize(
    ("ratios_of", "others", "verdict"),
    [
        # 2.05 over operations, 1.66 over sizes.
        ({"l2_normalize": 25.0}, 1.5, HOLDS),
        # 1.77 over operations, 2.06 over sizes.
        (dict.fromkeys(("dot", "gemm", "flatten", "l2_normalize"), 1.1), 2.6, FAILS),
        # Their arithmetic mean is 4.0.
        ({"dot": 28.0}, 1.0001, FAILS),
        # The middle one is 1.1.
        (dict.fromkeys(("dot", "gemm", "flatten", "relu"), 20.0), 1.1, HOLDS),
    ],
    ids=["few sizes", "many sizes", "arithmetic", "median"],
)
def test_operations_weigh_the_same(
    tmp_path: Path, ratios_of: Mapping[str, float], others: float, verdict: str
) -> None:
    """However many sizes they have: the mean is the geometric one of the operations' means."""
    assert judged(tmp_path, WAY_FASTER, *_of(ratios_of, others))["verdict"] == verdict


def test_sizes_of_an_operation_are_one_mean(tmp_path: Path) -> None:
    """An operation takes less time if it does so on the geometric mean of its sizes."""
    slow = sizes_of()["l2_normalize"][0]
    found = judged(
        tmp_path,
        WAY_FASTER,
        *pairs([one for one in _ABOUT if one != ("l2_normalize", slow)], 4.0),
        *pair("l2_normalize", slow, 0.01),
    )
    # The fifth root of 4^4 / 100.
    assert found["verdict"] == HOLDS
    assert found["today"].startswith("less time for 9 of 9 operations: 1.21x (l2_normalize) to ")


@every_device
def test_the_figures_of_2020_keep_the_statement(tmp_path: Path, device: str) -> None:
    """Who measures today what was published finds MXNet way faster, by the published means."""
    entries = [
        case(
            row["operation"],
            row["framework"],
            size=int(row["size"]),
            device={"cpu": "cpu", "gpu": "gpu:0"}[device],
            completion_s=float(row["median_s"]),
            dispatch_s=float(row["median_s"]),
        )
        for row in published.rows("operations", device)
    ]
    found = statements(stored(tmp_path, "run.json", *entries), device=device)[WAY_FASTER]
    assert found["verdict"] == HOLDS
    then = found["2020"]
    assert found["today"] == (
        f"less time for 9 of 9 operations: {then} until done; {then} until returned"
    )


def test_way_faster_is_not_about_creation(tmp_path: Path) -> None:
    """Slower creation changes nothing, and creation alone says nothing."""
    creation = [(name, size) for name in ("from_numpy", "from_list") for size in sizes_of()[name]]
    found = judged(tmp_path, WAY_FASTER, *pairs(creation, 0.1), *pairs(_ABOUT, 2.0))
    assert found["verdict"] == HOLDS
    assert "0.10x" not in found["today"]
    found = judged(tmp_path, WAY_FASTER, *pairs(creation, 9.0))
    assert (found["verdict"], found["today"]) == (UNKNOWN, _few_operations(0, 0))


@pytest.mark.parametrize(
    ("number", "done", "verdict"),
    [(69, 2.0, HOLDS), (69, 1.0, FAILS), (68, 2.0, UNKNOWN), (68, 1.0, UNKNOWN)],
)
def test_half_of_the_sizes_are_enough(
    tmp_path: Path, number: int, done: float, verdict: str
) -> None:
    """Of 137 sizes 69, of all operations; of fewer it is only said how many there are."""
    assert len(_ACROSS) == len(_ABOUT) == 137
    found = judged(tmp_path, WAY_FASTER, *pairs(_ACROSS[:number], done))
    assert found["verdict"] == verdict
    if verdict == UNKNOWN:
        assert found["today"] == _few_operations(9, number)


@pytest.mark.parametrize("missing", [*dict(_ABOUT)])
def test_all_operations_are_needed(tmp_path: Path, missing: str) -> None:
    """Of all other sizes nothing can be told; with one of its sizes it can."""
    others = [(name, size) for name, size in _ABOUT if name != missing]
    found = judged(tmp_path, WAY_FASTER, *pairs(others, 4.0))
    assert found["verdict"] == UNKNOWN
    assert found["today"] == _few_operations(8, len(others))
    one = pair(missing, sizes_of()[missing][-1], 4.0)
    found = judged(tmp_path, WAY_FASTER, *pairs(others, 4.0), one[0])
    assert found["verdict"] == UNKNOWN
    assert judged(tmp_path, WAY_FASTER, *pairs(others, 4.0), *one)["verdict"] == HOLDS


def _graph(values_s: Sequence[float], **facts: Any) -> Entry:
    return lenet("tensorflow", "graph", values_s, **facts)


_SURE = (1.0, 1.0, 1.0, 1.0)
_TWICE = (2.0, 2.0, 2.0, 2.0)

#: Statement, what was measured, the verdict, and what the text says of today.
_JUDGED: dict[str, tuple[str, Sequence[Entry], str, str]] = {
    "MXNet is faster": (
        TRAINS_FASTER,
        [_graph(_TWICE), lenet("mxnet", "eager", _SURE)],
        HOLDS,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "MXNet is slower": (
        TRAINS_FASTER,
        [_graph(_SURE), lenet("mxnet", "eager", _TWICE)],
        FAILS,
        "tensorflow graph 1 s, mxnet eager 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "MXNet is as fast": (
        TRAINS_FASTER,
        [_graph(_SURE), lenet("mxnet", "eager", _SURE)],
        UNKNOWN,
        "tensorflow graph 1 s, mxnet eager 1 s: 1.00x (1.00x to 1.00x)",
    ),
    "MXNet is too noisy": (
        TRAINS_FASTER,
        [_graph(_NOISE), lenet("mxnet", "eager", _NOISE_TOO)],
        UNKNOWN,
        "tensorflow graph 2 s, mxnet eager 2.1 s: 0.95x (",
    ),
    "MXNet has two values": (
        TRAINS_FASTER,
        [_graph(_TWICE), lenet("mxnet", "eager", (1.0, 1.0))],
        UNKNOWN,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "TensorFlow has two values": (
        TRAINS_FASTER,
        [_graph((2.0, 2.0)), lenet("mxnet", "eager", _SURE)],
        UNKNOWN,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "both have three values": (
        TRAINS_FASTER,
        [_graph((2.0,) * 3), lenet("mxnet", "eager", (1.0,) * 3)],
        HOLDS,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "no graph": (
        TRAINS_FASTER,
        [lenet("tensorflow", "eager", _TWICE), lenet("mxnet", "eager", _SURE)],
        UNKNOWN,
        "needs LeNet in tensorflow graph and mxnet eager",
    ),
    "no eager MXNet": (
        TRAINS_FASTER,
        [_graph(_TWICE), lenet("mxnet", "hybridize", _SURE)],
        UNKNOWN,
        "needs LeNet in tensorflow graph and mxnet eager",
    ),
    "hybridize gains time and loses accuracy": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _TWICE, accuracy=0.987),
            lenet("mxnet", "hybridize", _SURE, accuracy=0.98),
        ],
        HOLDS,
        "mxnet eager 2 s, mxnet hybridize 1 s: 2.00x (2.00x to 2.00x); accuracy 98.70% and 98.00%",
    ),
    "hybridize gains time alone": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", _SURE, accuracy=0.98),
        ],
        FAILS,
        "mxnet eager 2 s, mxnet hybridize 1 s: 2.00x (2.00x to 2.00x); accuracy 98.00% and 98.00%",
    ),
    "hybridize gains both": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _TWICE, accuracy=0.97),
            lenet("mxnet", "hybridize", _SURE, accuracy=0.98),
        ],
        FAILS,
        "accuracy 97.00% and 98.00%",
    ),
    "hybridize loses both": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _SURE, accuracy=0.98),
            lenet("mxnet", "hybridize", _TWICE, accuracy=0.97),
        ],
        FAILS,
        "mxnet eager 1 s, mxnet hybridize 2 s: 0.50x (0.50x to 0.50x); accuracy 98.00% and 97.00%",
    ),
    "hybridize is too noisy": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _NOISE, accuracy=0.98),
            lenet("mxnet", "hybridize", _NOISE_TOO, accuracy=0.97),
        ],
        UNKNOWN,
        "accuracy 98.00% and 97.00%",
    ),
    "hybridize is noisy and loses no accuracy": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _NOISE, accuracy=0.98),
            lenet("mxnet", "hybridize", _NOISE_TOO, accuracy=0.98),
        ],
        FAILS,
        "accuracy 98.00% and 98.00%",
    ),
    "hybridize loses 0.1 points": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", _SURE, accuracy=0.979),
        ],
        HOLDS,
        "accuracy 98.00% and 97.90%",
    ),
    "hybridize loses less": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", _SURE, accuracy=0.9791),
        ],
        FAILS,
        "accuracy 98.00% and 97.91%",
    ),
    "hybridize has two values": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", _TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", (1.0, 1.0), accuracy=0.97),
        ],
        UNKNOWN,
        "2.00x, of fewer than 3 values",
    ),
    "hybridize alone": (
        HYBRIDIZE,
        [lenet("mxnet", "hybridize")],
        UNKNOWN,
        "needs LeNet in mxnet eager and mxnet hybridize",
    ),
    "hybridize was not tested": (
        HYBRIDIZE,
        [lenet("mxnet", "eager", _TWICE), lenet("mxnet", "hybridize", _SURE, accuracy=None)],
        UNKNOWN,
        "hybridize 1 s: 2.00x (2.00x to 2.00x); accuracy was not tested in both",
    ),
    "XLA is slower": (
        XLA,
        [lenet("tensorflow", "xla", _TWICE), _graph(_SURE)],
        HOLDS,
        "tensorflow xla 2 s, tensorflow graph 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "XLA is faster": (
        XLA,
        [lenet("tensorflow", "xla", _SURE), _graph(_TWICE)],
        FAILS,
        "tensorflow xla 1 s, tensorflow graph 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "XLA is too noisy": (
        XLA,
        [lenet("tensorflow", "xla", _NOISE), _graph(_NOISE_TOO)],
        UNKNOWN,
        "tensorflow xla 2 s, tensorflow graph 2.1 s: 0.95x (",
    ),
    "XLA has two values": (
        XLA,
        [lenet("tensorflow", "xla", (2.0, 2.0)), _graph(_SURE)],
        UNKNOWN,
        "tensorflow xla 2 s, tensorflow graph 1 s: 2.00x, of fewer than 3 values",
    ),
    "no XLA": (
        XLA,
        [lenet("tensorflow", "fit", _TWICE), _graph(_SURE)],
        UNKNOWN,
        "needs LeNet in tensorflow xla and tensorflow graph",
    ),
    "every first epoch is long": (
        FIRST_EPOCH,
        [lenet("mxnet", "eager", first_s=2.5), lenet("tensorflow", "graph", first_s=3.0)],
        HOLDS,
        "2.50x (lenet mxnet eager 200) to 3.00x (lenet tensorflow graph 200)",
    ),
    "no first epoch is long": (
        FIRST_EPOCH,
        [lenet("mxnet", "eager", first_s=0.9), lenet("tensorflow", "graph", first_s=1.2)],
        FAILS,
        "0.90x (lenet mxnet eager 200) to 1.20x (lenet tensorflow graph 200)",
    ),
    "some first epochs are long": (
        FIRST_EPOCH,
        [lenet("mxnet", "eager", first_s=1.1), lenet("tensorflow", "graph", first_s=2.5)],
        UNKNOWN,
        "1.10x (lenet mxnet eager 200) to 2.50x (lenet tensorflow graph 200)",
    ),
    "a first epoch of twice the others": (
        FIRST_EPOCH,
        [lenet(first_s=2.0)],
        HOLDS,
        "2.00x (lenet mxnet eager 200) to 2.00x (lenet mxnet eager 200)",
    ),
    "a first epoch of less than that": (
        FIRST_EPOCH,
        [lenet(first_s=1.99)],
        FAILS,
        "1.99x (lenet mxnet eager 200) to 1.99x (lenet mxnet eager 200)",
    ),
    "the first epoch of another model": (
        FIRST_EPOCH,
        [model("mlp", "torch")(1.0, first_s=2.5)],
        HOLDS,
        "2.50x (mlp torch eager 200)",
    ),
    "a training of one epoch": (
        FIRST_EPOCH,
        [lenet(values_s=(), first_s=9.0)],
        UNKNOWN,
        "no training has more than one epoch",
    ),
    "a training of one epoch beside another": (
        FIRST_EPOCH,
        [lenet(values_s=(), first_s=9.0), lenet("tensorflow", "graph", first_s=2.5)],
        HOLDS,
        "2.50x (lenet tensorflow graph 200) to 2.50x (lenet tensorflow graph 200)",
    ),
    "eager is faster": (
        EAGER,
        [lenet("tensorflow", "eager", _SURE), _graph(_TWICE)],
        HOLDS,
        "lenet: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "eager is slower": (
        EAGER,
        [lenet("tensorflow", "eager", _TWICE), _graph(_SURE)],
        FAILS,
        "lenet: tensorflow graph 1 s, tensorflow eager 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "eager is too noisy": (
        EAGER,
        [lenet("tensorflow", "eager", _NOISE), _graph(_NOISE_TOO)],
        UNKNOWN,
        "lenet: tensorflow graph 2.1 s, tensorflow eager 2 s: 1.05x (",
    ),
    "eager has two values": (
        EAGER,
        [lenet("tensorflow", "eager", (1.0, 1.0)), _graph(_TWICE)],
        UNKNOWN,
        "lenet: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "eager is faster in one model and has few values in another": (
        EAGER,
        [
            *(lenet("tensorflow", "eager", _SURE), _graph(_TWICE)),
            *(model("mlp")(1.0), model("mlp", execution="graph")(2.0, values_s=(2.0, 2.0))),
        ],
        UNKNOWN,
        "mlp: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "eager is faster in one model": (
        EAGER,
        [
            *(lenet("tensorflow", "eager", _SURE), _graph(_TWICE)),
            *(model("mlp")(2.0), model("mlp", execution="graph")(1.0)),
        ],
        UNKNOWN,
        "mlp: tensorflow graph 1 s, tensorflow eager 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "eager is faster in both models": (
        EAGER,
        [
            *(lenet("tensorflow", "eager", _SURE), _graph(_TWICE)),
            *(model("mlp")(1.0), model("mlp", execution="graph")(4.0)),
        ],
        HOLDS,
        "mlp: tensorflow graph 4 s, tensorflow eager 1 s: 4.00x (4.00x to 4.00x)",
    ),
    "XLA is no graph": (
        EAGER,
        [lenet("tensorflow", "eager", _SURE), lenet("tensorflow", "xla", _TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "a step is faster in eager": (
        EAGER,
        [
            case("lenet_step", "tensorflow", seconds, execution, 200, direction="train")
            for execution, seconds in (("eager", _SURE), ("graph", _TWICE))
        ],
        HOLDS,
        "lenet_step: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "eager has other toggles": (
        EAGER,
        [
            lenet("tensorflow", "eager", _SURE, toggles_asked={"onednn": "off"}),
            _graph(_TWICE, toggles_asked={"onednn": "on"}),
        ],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "eager has toggles": (
        EAGER,
        [lenet("tensorflow", "eager", _SURE, toggles_asked={"onednn": "on"}), _graph(_TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "eager has other data": (
        EAGER,
        [lenet("tensorflow", "eager", _SURE, data=_SYNTHETIC), _graph(_TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "eager has other epochs": (
        EAGER,
        [lenet("tensorflow", "eager", _SURE, steps_per_epoch=10), _graph(_TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "steps of other batches": (
        EAGER,
        [
            case("lenet_step", "tensorflow", _SURE, "eager", 200, direction="train"),
            case("lenet_step", "tensorflow", _TWICE, "graph", 100, direction="train"),
        ],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "an operation in eager": (
        EAGER,
        [case("gemm", "tensorflow", execution=name) for name in ("eager", "graph")],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "another framework in eager": (
        EAGER,
        [lenet("mxnet", "eager", _SURE), lenet("mxnet", "graph", _TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
}


@pytest.mark.parametrize(
    ("statement", "entries", "verdict", "figures"), _JUDGED.values(), ids=_JUDGED
)
def test_statements_are_judged(
    tmp_path: Path, statement: str, entries: Sequence[Entry], verdict: str, figures: str
) -> None:
    """With the figures that the verdict is made on, in whatever order they were measured."""
    for order in (entries, entries[::-1]):
        found = judged(tmp_path, statement, *order)
        assert found["verdict"] == verdict
        assert figures in found["today"]


def test_intervals_hold_their_ratios(tmp_path: Path) -> None:
    """What cannot be told has an interval around 1."""
    found = judged(tmp_path, TRAINS_FASTER, _graph(_NOISE), lenet(values_s=_NOISE_TOO))["today"]
    match = re.search(r": (\S+)x \((\S+)x to (\S+)x\)$", found)
    assert match is not None
    ratio, low, high = map(float, match.groups())
    assert low < ratio < high
    assert low < 1 < high


def test_a_clear_difference_counts_in_noise(tmp_path: Path) -> None:
    """An interval on one side of 1 is enough, however wide."""
    slow = [10 * seconds for seconds in _NOISE]
    assert judged(tmp_path, XLA, lenet("tensorflow", "xla", slow), _graph(_NOISE_TOO))[
        "verdict"
    ] == (HOLDS)
    assert judged(tmp_path, XLA, lenet("tensorflow", "xla", _NOISE_TOO), _graph(slow))[
        "verdict"
    ] == (FAILS)


def test_the_accuracy_is_that_of_the_median_training(tmp_path: Path) -> None:
    """Of several repetitions, at the end of each."""

    def repeated(execution: str, values_s: Sequence[float], *accuracies: float) -> Entry:
        tested = [
            {"repetition": number, "epoch": epoch, "accuracy": accuracy - (5 - epoch) / 10}
            for number, accuracy in enumerate(accuracies, 1)
            for epoch in (1, 5)
        ]
        return lenet("mxnet", execution, values_s, test_accuracy=tested)

    found = judged(
        tmp_path,
        HYBRIDIZE,
        repeated("eager", _TWICE, 0.9, 0.98, 0.99),
        repeated("hybridize", _SURE, 0.97, 0.99, 0.9),
    )
    assert found["verdict"] == HOLDS
    assert found["today"].endswith("accuracy 98.00% and 97.00%")


def test_ten_images_of_ten_thousand_are_worth_the_word(tmp_path: Path) -> None:
    """0.9884 - 0.9874 is less than 0.001 in floating point."""
    found = judged(
        tmp_path,
        HYBRIDIZE,
        lenet("mxnet", "eager", _TWICE, accuracy=0.9884),
        lenet("mxnet", "hybridize", _SURE, accuracy=0.9874),
    )
    assert found["verdict"] == HOLDS


def test_one_value_is_no_interval(tmp_path: Path) -> None:
    """0.1 % between two single values decides nothing."""
    found = judged(tmp_path, TRAINS_FASTER, _graph((1.001,)), lenet(values_s=(1.0,)))
    assert found["verdict"] == UNKNOWN


def test_a_missing_accuracy_is_what_is_missing(tmp_path: Path) -> None:
    """Both trainings are there, and more of them would not help."""
    found = judged(
        tmp_path, HYBRIDIZE, lenet("mxnet", "eager"), lenet("mxnet", "hybridize", accuracy=None)
    )
    assert "needs LeNet" not in found["today"]


def test_generated_data_have_no_accuracy_of_2020(tmp_path: Path) -> None:
    """The report itself says that such accuracy says nothing."""
    found = judged(
        tmp_path,
        HYBRIDIZE,
        lenet("mxnet", "eager", _TWICE, accuracy=0.5, data=_SYNTHETIC),
        lenet("mxnet", "hybridize", _SURE, accuracy=0.4, data=_SYNTHETIC),
    )
    assert found["verdict"] == UNKNOWN


def test_other_data_and_steps_are_not_compared(tmp_path: Path) -> None:
    """An epoch of 240 steps takes longer than one of 10."""
    quick = lenet("mxnet", "eager", _SURE, data=_SYNTHETIC, steps_per_epoch=10)
    assert judged(tmp_path, TRAINS_FASTER, _graph(_TWICE), quick)["verdict"] == UNKNOWN


def _batch(size: int, first_s: float) -> Entry:
    made: Entry = model("sentiment_lstm", "torch")(1.0, first_s=first_s, size=size)
    return made


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        (
            [_batch(64, 3.0), _batch(256, 1.0)],
            "1.00x (sentiment_lstm torch eager 256) to 3.00x (sentiment_lstm torch eager 64)",
        ),
        (
            [lenet(first_s=3.0, toggles_asked={"workers": "4"}), lenet(first_s=1.0)],
            "1.00x (lenet mxnet eager 200) to 3.00x (lenet mxnet eager workers=4 200)",
        ),
    ],
    ids=["batches", "toggles"],
)
def test_every_first_epoch_counts(tmp_path: Path, entries: list[Entry], told: str) -> None:
    """Trainings of one model that differ in batch size or toggles do not replace each other."""
    for order in itertools.permutations(entries):
        found = judged(tmp_path, FIRST_EPOCH, *order)
        assert found["verdict"] == UNKNOWN
        assert found["today"] == told


def test_eager_and_graph_have_the_same_toggles(tmp_path: Path) -> None:
    """Whatever was measured last."""
    entries = [
        lenet("tensorflow", "eager", _SURE, toggles_asked={"onednn": "on"}),
        lenet("tensorflow", "eager", (9.0,) * 4, toggles_asked={"onednn": "off"}),
        _graph(_TWICE, toggles_asked={"onednn": "on"}),
    ]
    for order in itertools.permutations(entries):
        found = judged(tmp_path, EAGER, *order)
        assert found["verdict"] == HOLDS


def test_verdicts_are_of_one_device(tmp_path: Path) -> None:
    """What a GPU says is not said of the CPU."""
    run = stored(
        tmp_path,
        "run.json",
        *(_graph(_TWICE), lenet("mxnet", "eager", _SURE)),
        *(_graph(_SURE, device="gpu:0"), lenet("mxnet", "eager", _TWICE, device="gpu:0")),
    )
    assert statements(run, device="cpu")[TRAINS_FASTER]["verdict"] == HOLDS
    assert statements(run, device="gpu")[TRAINS_FASTER]["verdict"] == FAILS
    apart = stored(
        tmp_path, "run.json", _graph(_TWICE), lenet("mxnet", "eager", _SURE, device="gpu:0")
    )
    for device in ("cpu", "gpu"):
        assert statements(apart, device=device)[TRAINS_FASTER]["verdict"] == UNKNOWN


def test_operations_are_judged_by_device(tmp_path: Path) -> None:
    """MXNet may be way faster on the one and not on the other."""
    entries = [*pairs(_ABOUT, 1.0), *pairs(_ABOUT, 2.0, device="gpu:0")]
    run = stored(tmp_path, "run.json", *entries)
    found = {device: statements(run, device=device)[WAY_FASTER] for device in ("cpu", "gpu")}
    assert {device: row["verdict"] for device, row in found.items()} == {
        "cpu": FAILS,
        "gpu": HOLDS,
    }
    assert found["cpu"]["today"].startswith("less time for 0 of 9 operations: 1.00x (")
    assert found["gpu"]["today"].startswith("less time for 9 of 9 operations: 2.00x (")


# LeNet


@every_device
def test_published_lenets_are_shown_without_todays(tmp_path: Path, device: str) -> None:
    """Every row, what is of today left empty."""
    named = {"cpu": "cpu", "gpu": "gpu:0"}[device]
    run = stored(tmp_path, "run.json", case("gemm", "torch", device=named))
    found = lenets(run, device)
    assert [*found] == [
        (" ".join(name), epochs)
        for name, several in _PUBLISHED_LENETS[device].items()
        for epochs in several
    ]
    assert trained(run, device) == {}
    assert all(row["2020 (CPU time)"] and row["accuracy"] for row in found.values())


def test_todays_lenet_is_beside_the_same_epochs(tmp_path: Path) -> None:
    """All of its epochs, the first one too, in wall-clock time, and the accuracy."""
    run = stored(
        tmp_path,
        "run.json",
        of_15("mxnet", "hybridize", 2.0, accuracy=0.981),
        lenet("tensorflow", "graph", (1.0, 2.0, 3.0, 4.0), 5.0, accuracy=0.9876),
    )
    assert trained(run) == {
        ("mxnet hybridize", 15): ("30 s", "98.10%"),
        ("tensorflow graph", 5): ("15 s", "98.76%"),
    }
    assert lenets(run)["mxnet hybridize", 15] == {
        "case": "mxnet hybridize",
        "epochs": "15",
        "2020 (CPU time)": "714 s",
        "accuracy": "98.06%",
        "today (wall clock)": "30 s",
        "accuracy today": "98.10%",
    }
    assert len(lenets(run)) == 11


def test_a_lenet_of_several_repetitions_is_one_training(tmp_path: Path) -> None:
    """The seconds of the first are beside those of 2020, not of all."""
    epochs = [
        {"repetition": repetition, "epoch": number, "seconds": seconds, "train_loss": 0.5}
        for repetition, seconds in ((1, 2.0), (2, 7.0))
        for number in range(1, 6)
    ]
    run = stored(tmp_path, "run.json", lenet("mxnet", "eager", epochs=epochs))
    assert trained(run) == {("mxnet eager", 5): ("10 s", "98.00%")}


def test_a_lenet_of_other_epochs_has_a_row_of_its_own(tmp_path: Path) -> None:
    """Nothing of 2020 is beside it, and it is beside nothing of 2020."""
    run = stored(tmp_path, "run.json", lenet("mxnet", "eager", (1.0,) * 6, 2.0))
    assert trained(run) == {("mxnet eager", 7): ("8 s", "98.00%")}
    row = lenets(run)["mxnet eager", 7]
    assert (row["2020 (CPU time)"], row["accuracy"]) == ("", "")
    assert len(lenets(run)) == 12


@pytest.mark.parametrize(
    ("framework", "execution"),
    [("torch", "eager"), ("jax", "jit"), ("tensorflow", "fit"), ("tensorflow", "eager")],
)
def test_a_lenet_of_others_has_a_row(tmp_path: Path, framework: str, execution: str) -> None:
    """That 2020 had not, also with epochs that it had."""
    run = stored(tmp_path, "run.json", of_15(framework, execution, 2.0))
    assert trained(run) == {(f"{framework} {execution}", 15): ("30 s", "98.00%")}
    assert lenets(run)[f"{framework} {execution}", 15]["2020 (CPU time)"] == ""


def test_a_lenet_that_was_not_tested_has_no_accuracy(tmp_path: Path) -> None:
    """Its seconds are shown all the same."""
    run = stored(tmp_path, "run.json", of_15("mxnet", "eager", 2.0, accuracy=None))
    assert trained(run) == {("mxnet eager", 15): ("30 s", "")}


@pytest.mark.parametrize(
    "changes",
    [
        {"toggles_asked": {"workers": "2"}},
        {"toggles_asked": {"onednn": "off"}},
        {"size": 100},
        {"dtype": "bfloat16"},
        {"steps_per_epoch": 10},
        {"steps_per_epoch": 239},
        {"steps_per_epoch": 241},
        {"steps_per_epoch": None},
        {"data": _SYNTHETIC},
        {"data": {"name": "mnist"}},
        {"data": None},
    ],
    ids=str,
)
def test_other_trainings_are_no_lenet_of_2020(tmp_path: Path, changes: dict[str, Any]) -> None:
    """With toggles, other batches, precision, steps or data: shown, and not beside 2020."""
    run = stored(
        tmp_path,
        "run.json",
        of_15("tensorflow", "graph", 2.0, **changes),
        of_15("mxnet", "eager", 1.0, **changes),
    )
    assert part([run], "training lenet").rows
    assert trained(run) == {}
    assert len(lenets(run)) == 11
    found = statements(run)[TRAINS_FASTER]
    assert found["verdict"] == UNKNOWN
    assert found["today"].startswith("needs LeNet in tensorflow graph and mxnet eager")


def test_a_few_steps_are_no_lenet_of_2020(tmp_path: Path) -> None:
    """`pytest benchmarks -k lenet` trains 3 epochs of 10 of 240 steps."""
    made = lenet("mxnet", "eager", (0.1, 0.1), 0.1, steps_per_epoch=10)
    assert trained(stored(tmp_path, "run.json", made)) == {}


@pytest.mark.parametrize("workload", ["mlp", "lenet_step", "my_lenet"])
def test_other_models_are_no_lenet(tmp_path: Path, workload: str) -> None:
    """Whatever they are called."""
    run = stored(tmp_path, "run.json", model(workload, "mxnet")(1.0))
    assert trained(run) == {}


def test_a_lenet_without_toggles_is_told_from_one_with(tmp_path: Path) -> None:
    """It is the one beside 2020, whichever was measured last; so is one of whole epochs."""
    usual = of_15("mxnet", "eager", 2.0)
    others = [
        of_15("mxnet", "eager", 9.0, toggles_asked={"workers": "2"}),
        of_15("mxnet", "eager", 9.0, steps_per_epoch=10),
        of_15("mxnet", "eager", 9.0, data=_SYNTHETIC),
    ]
    for order in ((usual, *others), (*others, usual)):
        run = stored(tmp_path, "run.json", *order)
        assert trained(run) == {("mxnet eager", 15): ("30 s", "98.00%")}


# The command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run, ``run.json``, of two cores of a Fake CPU."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", *pair("gemm", 450, 3.0, 20.0), of_15("mxnet", "eager"), threads=2)
    return tmp_path


_OUTPUTS = ("-o", "report.html", "--markdown", "report.md", "--csv", "report.csv")


def test_the_section_is_in_both_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before what was measured, with its verdicts, its figures and its notes."""
    assert cli.main(["report", "run.json", "--paper", *_OUTPUTS]) == 0
    assert capsys.readouterr().err == ""
    titles = [
        _STATEMENTS,
        "2020, operations on the CPU: TensorFlow's time over MXNet's",
        "2020, operations on the CPU: TensorFlow's time over MXNet's, size by size",
        "2020, LeNet on the CPU",
        "gemm cpu forward float32",
        "training lenet cpu float32 200",
    ]
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [one.all("h2")[0].text for one in page.of_class("detail")] == titles
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert re.findall(r"^### (.+)$", written, re.MULTILINE)[-len(titles) :] == titles
    (found,) = page.all("section", id="part-What-became-of-the-statements-of-2020")
    for statement in (WAY_FASTER, TRAINS_FASTER, HYBRIDIZE, XLA, FIRST_EPOCH, EAGER):
        assert f'"{statement}"' in found.text
        assert f'| "{statement}" | cpu | ' in written
    for told in (UNKNOWN, _few_operations(1, 1), "2 times less on their geometric mean"):
        assert told in found.text
        assert told in written
    assert "| gemm 450 | 25.12x | 20.00x | 3.00x |" in written
    assert "| mxnet eager | 15 | 787 s | 98.71% | 15 s | 98.00% |" in written


def test_a_page_with_it_is_whole(folder: Path) -> None:
    """Ids are unique, links lead somewhere, tables have as many cells in a row as columns."""
    assert cli.main(["report", "run.json", "--paper", *_OUTPUTS]) == 0
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    assert [name for name, number in Counter(page.ids).items() if number > 1] == []
    assert {one.attributes["href"].removeprefix("#") for one in page.all("a")} <= {*page.ids}
    for table in page.all("table"):
        width = len(table.all("th", scope="col"))
        assert {len(row.all("th", "td")) for row in table.all("tr")} == {width}


def test_nobody_is_told_of_2020_unasked(folder: Path) -> None:
    """Without ``--paper`` there is nothing of it."""
    assert cli.main(["report", "run.json", *_OUTPUTS]) == 0
    for name in ("report.html", "report.md"):
        assert "2020" not in (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("session", "named"),
    [
        ({"threads": 4}, ("Fake CPU, 2 threads", "Fake CPU, 4 threads")),
        (
            {"threads": 2, "machine": {"cpu": "Other CPU"}},
            ("Fake CPU, 2 threads", "Other CPU, 2 threads"),
        ),
    ],
)
def test_several_machines_are_refused(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    session: dict[str, Any],
    named: Sequence[str],
) -> None:
    """Machines or thread counts: they are named in one order, and nothing is written."""
    write(folder / "other.json", case(), **session)
    for files in (("run.json", "other.json"), ("other.json", "run.json")):
        assert cli.main(["report", *files, "--paper", *_OUTPUTS]) == _USAGE_ERROR
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.strip() == (
            "fwbench: error: --paper sets one machine beside 2020, and these runs are from "
            f"several: {'; '.join(named)}; give those of one"
        )
        assert sorted(path.name for path in folder.iterdir()) == ["other.json", "run.json"]
    # They are no problem of a report without 2020.
    assert cli.main(["report", "run.json", "other.json", *_OUTPUTS]) == 0


def test_several_runs_of_one_machine_are_one(folder: Path) -> None:
    """TensorFlow may have been measured in one session, and MXNet in another."""
    tensorflow, mxnet = pair("gemm", 100, 3.0)
    for name, entries in (("tensorflow", [tensorflow]), ("mxnet", [mxnet])):
        write(folder / f"{name}.json", *entries, threads=2)
    assert cli.main(["report", "tensorflow.json", "mxnet.json", "--paper", *_OUTPUTS]) == 0
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert re.search(r"^\| gemm 100 \| .* \| 3\.00x \|$", written, re.MULTILINE)


@pytest.mark.parametrize("entries", [pair("gemm", 450, 9.0), [of_15("mxnet", "eager", 9.0)]])
def test_a_case_in_two_runs_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], entries: Sequence[Entry]
) -> None:
    """Either might count: it is named, and nothing is written."""
    write(folder / "again.json", case("dot"), *entries, threads=2)
    for files in (("run.json", "again.json"), ("again.json", "run.json")):
        assert cli.main(["report", *files, "--paper", *_OUTPUTS]) == _USAGE_ERROR
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.strip() == (
            f"fwbench: error: --paper takes the runs as one, and {entries[0]['param']} is in two "
            "of them: give the one that counts"
        )
        assert sorted(path.name for path in folder.iterdir()) == ["again.json", "run.json"]
    # It is no problem where it is left out, nor in a report without 2020.
    arguments = ["report", "run.json", "again.json"]
    assert cli.main([*arguments, "-k", "dot", "--paper", *_OUTPUTS]) == _SOME_UNREADABLE
    assert cli.main([*arguments, *_OUTPUTS]) == 0


def test_a_run_twice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of its cases are in two."""
    assert cli.main(["report", "run.json", "run.json", "--paper", *_OUTPUTS]) == _USAGE_ERROR
    assert "is in two of them" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["run.json"]


def test_plain_records_may_be_in_two_runs(folder: Path) -> None:
    """They are beside nothing of 2020."""
    for name, framework in (("tensorflow", "tensorflow"), ("torch", "torch")):
        write(folder / f"{name}.json", plain(), case("dot", framework), threads=2)
    assert cli.main(["report", "tensorflow.json", "torch.json", "--paper", *_OUTPUTS]) == 0


@pytest.mark.parametrize("brand", ["Fake CPU", "Other CPU"])
def test_plain_runs_are_no_machine(folder: Path, brand: str) -> None:
    """pytest-benchmark's own records are beside nothing of 2020, and know no threads."""
    foreign_run(folder / "plain.json", brand)
    assert cli.main(["report", "run.json", "plain.json", "--paper", *_OUTPUTS]) == 0
    assert "| gemm 450 | 25.12x" in (folder / "report.md").read_text(encoding="utf-8")


def test_threads_that_are_none_are_no_crash(folder: Path) -> None:
    """Changed by hand."""
    write(folder / "other.json", case(), threads=[2])
    assert cli.main(["report", "other.json", "--paper", *_OUTPUTS]) in {0, 1, 2}


@pytest.mark.parametrize("changed", [0, 1], ids=["tensorflow", "mxnet"])
def test_no_completion_time_is_unreadable(
    folder: Path, capsys: pytest.CaptureFixture[str], changed: int
) -> None:
    """Changed by hand, or by another program: the file is named, the others are beside 2020."""
    entries = pair("dot", 91_000, 3.0)
    del entries[changed]["extra_info"]["fwbench"]["completion_s"]
    path = write(folder / "changed.json", *entries, threads=2)
    with pytest.raises(UnreadableRun, match=r"changed\.json is no run .*completion_s"):
        read(path)
    arguments = ["report", "run.json", "changed.json", "--paper", *_OUTPUTS]
    assert cli.main(arguments) == _SOME_UNREADABLE
    assert "changed.json is no run" in capsys.readouterr().err
    written = (folder / "report.md").read_text(encoding="utf-8")
    assert "changed.json is no run" in written
    assert "| gemm 450 | 25.12x" in written
    assert "dot 91,000" not in written


def test_a_run_that_is_left_out_is_no_machine(folder: Path) -> None:
    """With ``-k``, that of another machine may have no case left."""
    write(folder / "other.json", case("dot"), threads=8, machine={"cpu": "Other CPU"})
    arguments = ["run.json", "other.json", "-k", "gemm", "--paper", *_OUTPUTS]
    assert cli.main(["report", *arguments]) == _SOME_UNREADABLE
    assert "| gemm 450 | 25.12x" in (folder / "report.md").read_text(encoding="utf-8")


def _verdicts(path: Path) -> None:
    """What ``fwbench gate --json`` writes of two runs that have no case in common."""
    rules = dataclasses.asdict(Rules(margin=0.01))
    made = Comparison("a.json", "b.json", [], rules)
    path.write_text(json.dumps(made.to_json()), encoding="utf-8")


#: Runs without a record of fwbench.
_WITHOUT: dict[str, Callable[[Path], Any]] = {
    "pytest-benchmark's": foreign_run,
    "fwbench's, of plain tests": lambda path: write(path, plain()),
    "verdicts": _verdicts,
    "empty": lambda path: path.write_text(json.dumps(output([])), encoding="utf-8"),
}


@pytest.mark.parametrize("make", _WITHOUT.values(), ids=_WITHOUT)
def test_a_run_without_fwbench_is_no_crash(
    folder: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Any]
) -> None:
    """A report is written in which no statement has a verdict, and nothing can be told."""
    make(folder / "plain.json")
    (only,) = report_2020.parts([read(folder / "plain.json")])
    _tells_nothing(only)
    assert cli.main(["report", "plain.json", "--paper", *_OUTPUTS]) == 0
    assert "Traceback" not in capsys.readouterr().err
    page = parsed((folder / "report.html").read_text(encoding="utf-8"))
    written = (folder / "report.md").read_text(encoding="utf-8")
    for verdict in (HOLDS, FAILS, UNKNOWN):
        assert f"| {verdict} |" not in written
        assert verdict not in [cell.text for cell in page.all("td")]
    (found,) = page.all("section", id="part-What-became-of-the-statements-of-2020")
    for told in (found.text, written):
        assert only.notes[0] in told


def test_all_of_a_case_filtered_away_is_no_crash(folder: Path) -> None:
    """With ``-k`` nothing may be left of a run: it is said, and the report is written."""
    arguments = ["run.json", "-k", "no such case", "--paper", *_OUTPUTS]
    assert cli.main(["report", *arguments]) == _SOME_UNREADABLE
    for name in ("report.html", "report.md"):
        assert "nothing can be told." in (folder / name).read_text(encoding="utf-8")


def test_history_alone_is_no_crash(folder: Path) -> None:
    """There is no run to set beside 2020."""
    pytest.importorskip("ruptures")
    assert cli.main(["report", "--history", str(folder), "--paper", "-o", "report.html"]) == 0
    assert "nothing can be told." in (folder / "report.html").read_text(encoding="utf-8")
    _tells_nothing(*report_2020.parts([]))


def test_cells_sort_by_numbers(tmp_path: Path) -> None:
    """Seconds, accuracies and ratios have the values that their texts are made of."""
    run = stored(tmp_path, "run.json", of_15("mxnet", "eager", 2.0), *pair("gemm", 450, 3.0))
    found = section([run], "2020, LeNet on the CPU")
    (row,) = [one for one in found.rows if one.cells[4].text]
    assert row.cells[1:] == [
        *(Cell("15", 15), Cell("787 s", 786.99), Cell("98.71%", 0.9871)),
        *(Cell("30 s", 30.0), Cell("98.00%", 0.98)),
    ]
    table = section([run], "2020, operations on the CPU: TensorFlow's time over MXNet's")
    done = column(table, "today, until the work was done (range)")["gemm"]
    assert done.text == "3.00x (3.00x to 3.00x)"
    assert done.value == pytest.approx(3.0)


# What was changed by hand, and what does not belong together


def _changed(name: str, value: Any, *, of: int = 1) -> list[Entry]:
    """TensorFlow's and MXNet's case of an operation, of which one was changed."""
    entries = pair("dot", 91_000, 3.0)
    entries[of]["extra_info"]["fwbench"][name] = value
    return entries


#: Entries of a run, and what is said of its session.
_CHANGED: dict[str, tuple[Sequence[Entry], dict[str, Any]]] = {
    "a completion time of 0": (_changed("completion_s", 0.0), {"threads": 2}),
    "a completion time of 0 in TensorFlow": (_changed("completion_s", 0.0, of=0), {"threads": 2}),
    "a completion time below 0": (_changed("completion_s", -1.0), {"threads": 2}),
    "a dispatch time below 0": (_changed("dispatch_s", -1.0), {"threads": 2}),
    "steps that are a list": (
        [lenet("tensorflow", "graph", steps_per_epoch=[240])],
        {"threads": 2},
    ),
    "data that are text": ([lenet(data="mnist")], {"threads": 2}),
}


@pytest.mark.parametrize(("entries", "session"), _CHANGED.values(), ids=_CHANGED)
def test_a_changed_run_is_unreadable(
    folder: Path,
    entries: Sequence[Entry],
    session: dict[str, Any],
) -> None:
    """By hand, or by another program: the file is named, and the others are set beside 2020."""
    path = write(folder / "changed.json", *entries, **session)
    with pytest.raises(UnreadableRun, match=r"changed\.json is no run"):
        read(path)
    assert cli.main(["report", "run.json", "changed.json", "--paper", *_OUTPUTS]) == 1


def test_accuracies_after_as_many_epochs_are_compared(tmp_path: Path) -> None:
    """Fifteen epochs learn more than five, hybridized or not."""
    found = judged(
        tmp_path,
        HYBRIDIZE,
        lenet("mxnet", "eager", (2.0,) * 14, 2.0, accuracy=0.987),
        lenet("mxnet", "hybridize", _SURE, 1.0, accuracy=0.981),
    )
    assert found["verdict"] == UNKNOWN


def test_few_values_say_nothing_of_hybridize(tmp_path: Path) -> None:
    """Fewer than 3 on a side: cannot be told, whatever the accuracy."""
    found = judged(
        tmp_path, HYBRIDIZE, lenet("mxnet", "eager", _TWICE), lenet("mxnet", "hybridize", (1.0,))
    )
    assert found["verdict"] == UNKNOWN


def test_several_gpus_are_refused(tmp_path: Path) -> None:
    """Two machines of one CPU may have different GPUs, and both call theirs gpu:0."""
    tensorflow, _ = pair("gemm", 100, device="gpu:0", device_name="Fake GPU")
    _, mxnet = pair("gemm", 100, device="gpu:0", device_name="Other GPU")
    with pytest.raises(UsageError, match=r"Fake GPU.*Other GPU"):
        report_2020.parts(runs_of(tmp_path, tensorflow=[tensorflow], mxnet=[mxnet]))


def test_one_case_of_two_tests_is_refused(tmp_path: Path) -> None:
    """Else the run that is given last decides, and nobody is told."""
    tensorflow, mxnet = pair("gemm", 100, 3.0)
    other, _ = pair("gemm", 100, 9.0)
    other["fullname"] = other["fullname"].replace("test_it.py::test_it", "test_it.py::test_other")
    for first, second in itertools.permutations(([tensorflow, mxnet], [other])):
        with pytest.raises(UsageError, match="in two of them"):
            report_2020.parts(runs_of(tmp_path, first=first, second=second))
