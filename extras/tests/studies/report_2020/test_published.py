"""The figures of 2020 are stored as they were published."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from runs_of_2020 import PUBLISHED_LENETS, every_device

from fwbench.workloads import OPERATIONS
from fwbench_extras.studies.report_2020 import operations, published


@every_device
def test_all_operations_were_published(device: str) -> None:
    """In both frameworks, once, in the sizes that operations have for the preset `paper`."""
    rows = published.rows("operations", device)
    counts = Counter((row["operation"], int(row["size"]), row["framework"]) for row in rows)
    assert counts == Counter(
        (operation.name, size, framework)
        for operation in OPERATIONS
        for size in operation.by_preset.paper
        for framework in ("mxnet", "tensorflow")
    )
    assert len(rows) == 328
    assert {row["device"] for row in rows} == {device}


@every_device
def test_times_of_operations_are_plausible(device: str) -> None:
    """Between a microsecond and ten seconds for a trial; no ratio is beyond a hundred."""
    times_s = [float(row["median_s"]) for row in published.rows("operations", device)]
    assert all(1e-6 < time_s < 10 for time_s in times_s)
    published_ratios = [ratio.published for ratio in operations.ratios(device, [])]
    assert len(published_ratios) == 164
    assert all(0.01 < ratio < 100 for ratio in published_ratios)


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
    (row,) = [
        published_row
        for published_row in published.rows("operations", device)
        if (published_row["operation"], published_row["size"], published_row["framework"])
        == (operation, str(size), framework)
    ]
    assert float(row["median_s"]) == pytest.approx(median_s, rel=5.1e-4)


@every_device
def test_all_lenets_were_published(device: str) -> None:
    """MXNet with and without hybridize, TensorFlow's graph with and without XLA."""
    runs_by_case: dict[tuple[str, str], list[int]] = {}
    for row in published.rows("lenet", device):
        runs_by_case.setdefault((row["framework"], row["execution"]), []).append(int(row["epochs"]))
    assert runs_by_case == PUBLISHED_LENETS[device]


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
    (row,) = [
        published_row
        for published_row in published.rows("lenet", device)
        if (published_row["framework"], published_row["execution"], published_row["epochs"])
        == (framework, execution, str(epochs))
    ]
    assert int(row["runs"]) == runs
    assert float(row["median_total_s"]) == pytest.approx(total_s, rel=5e-4)
    assert float(row["median_accuracy"]) == pytest.approx(accuracy, abs=1e-9)
