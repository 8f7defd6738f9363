"""Runs that look like those of 2020, and what is read of what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from fwbench.report.model import Run
from fwbench.report.section import Section
from fwbench_extras.studies import report_2020
from fwbench_extras.studies.report_2020 import published
from support.reports import case, run_of, training
from support.section_parts import rows as rows_of

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot be determined from this run"
WAY_FASTER = "MXNet apart from creation is way faster"
TRAINS_FASTER = "MXNet trains LeNet faster"
HYBRIDIZE = "hybridize trades accuracy for time"
XLA = "XLA slows LeNet down"
FIRST_EPOCH = "the first epoch takes 2.5x"
EAGER = "eager is faster"
STATEMENTS = "What became of the statements of 2020"
#: By kind of device, the name of its first one.
NAMES = {"cpu": "cpu", "gpu": "gpu:0"}
every_device = pytest.mark.parametrize("device", ["cpu", "gpu"])
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
        done: how many times as long as MXNet TensorFlow takes until the work is done.
        returned: the same until the call returns; as many if it is not given.
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
    figures: dict[str, list[int]] = {}
    for row in published.rows("operations", device):
        if row["framework"] == "mxnet":
            figures.setdefault(row["operation"], []).append(int(row["size"]))
    return figures


#: Of which the first statement speaks.
ABOUT = [
    (name, size)
    for name, sizes in sizes_of().items()
    for size in sizes
    if name not in {"from_numpy", "from_list"}
]


def pairs(
    cases: Iterable[tuple[str, int]], done: float, returned: float | None = None, **facts: Any
) -> list[Entry]:
    """Several operations in both frameworks; see :func:`pair`."""
    return [entry for name, size in cases for entry in pair(name, size, done, returned, **facts)]


_SPLITS = {"train": 48_000, "validation": 12_000, "test": 10_000}
_REAL = {"name": "mnist", "source": "real", "origin": "its authors", "digest": "d", **_SPLITS}
#: The facts of MNIST where it was made up.
SYNTHETIC = {"name": "mnist", "source": "synthetic", "origin": "made", "digest": "s"}


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
        "data": _REAL,
        "first_in_process": True,
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
NOISE = (1.0, 2.0, 3.0, 1.5, 2.5)
NOISE_TOO = (1.1, 2.1, 2.9, 1.6, 2.4)


def section(runs: Sequence[Run], title: str) -> Section:
    """The part of ``--paper`` of that title."""
    (shown_section,) = [member for member in report_2020.sections(runs) if member.title == title]
    return shown_section


def statements(*runs: Run, device: str = "cpu") -> dict[str, dict[str, str]]:
    """The verdict of each statement."""
    return {
        row["statement"].strip('"'): row
        for row in rows_of(section(runs, STATEMENTS))
        if row["device"] == device
    }


def judged(statement: str, *entries: Mapping[str, Any]) -> dict[str, str]:
    """The verdict of a statement in a run of these cases."""
    return statements(run_of(*entries))[statement]


def lenets(run: Run, device: str = "cpu") -> dict[tuple[str, int], dict[str, str]]:
    """The table of LeNet, by case and epochs."""
    rows = rows_of(section([run], f"2020, LeNet on the {device.upper()}"))
    return {(row["case"], int(row["epochs"])): row for row in rows}


def trained(run: Run, device: str = "cpu") -> dict[tuple[str, int], tuple[str, str]]:
    """Today's seconds and accuracies in the table of LeNet, where there are any."""
    return {
        name: (row.get("today (wall clock)", ""), row.get("accuracy today", ""))
        for name, row in lenets(run, device).items()
        if row.get("today (wall clock)") or row.get("accuracy today")
    }


#: Epochs of what was published, as the scripts are called here, by device.
PUBLISHED_LENETS = {
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


def few_operations(operations: int, sizes: int) -> str:
    return (
        f"{operations} of 9 operations were measured in both frameworks, in {sizes} of 137 sizes: "
        "pytest benchmarks --fw-size paper"
    )


def tells_nothing(only: Section) -> None:
    """The section has a note, and neither rows nor charts."""
    assert only.title == STATEMENTS
    assert not only.rows
    assert not only.charts
    (note,) = only.notes
    assert note.endswith("nothing can be concluded.")


def graph_lenet(values_s: Sequence[float], **facts: Any) -> Entry:
    return lenet("tensorflow", "graph", values_s, **facts)


SURE = (1.0, 1.0, 1.0, 1.0)
TWICE = (2.0, 2.0, 2.0, 2.0)
