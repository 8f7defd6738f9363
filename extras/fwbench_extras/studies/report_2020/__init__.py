"""A run next to the TensorFlow 2.1 / MXNet 1.5 benchmark of 2020: its figures, its statements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from fwbench.errors import UsageError
from fwbench.records.measurement import Measurement
from fwbench.report.model import Run
from fwbench.report.section import Section
from fwbench_extras.studies.report_2020 import lenet, operations, statements

ORDER = 10

OPTION = "paper"

HELP = (
    "next to the TensorFlow / MXNet report of 2020: its figures and its statements "
    "(measure with --fw-size paper)"
)

#: The names of a CPU and a GPU in the report.
_DEVICES = {"cpu": "cpu", "gpu": "gpu:0"}


def sections(runs: Sequence[Run]) -> list[Section]:
    """The statements, the operations and LeNet, for each device that was measured.

    Runs of one machine count as one.

    Raises:
        UsageError: the runs are from several machines, or thread counts, or have a case in common
            (a training of more epochs is another case).
    """
    measured_runs = [run for run in runs if any(record.facts for record in run.records)]
    _refuse_several(measured_runs)
    records = [record for run in measured_runs for record in run.records if record.facts]
    _refuse_twice(records)
    measured = {
        device: on_device
        for device, name in _DEVICES.items()
        if (on_device := [record for record in records if record.facts.device == name])
    }
    ratios = {
        device: operations.ratios(device, on_device) for device, on_device in measured.items()
    }
    by_operation = (operations.sections(device, of_device) for device, of_device in ratios.items())
    return [
        statements.section(measured),
        *itertools.chain.from_iterable(by_operation),
        *(lenet.section(device, on_device) for device, on_device in measured.items()),
    ]


def _refuse_several(runs: Sequence[Run]) -> None:
    settings = {(str(run.cpu), *_gpus(run), f"{run.session.threads} threads") for run in runs}
    if len(settings) > 1:
        listed = "; ".join(map(", ".join, sorted(settings)))
        raise UsageError(
            f"--paper compares one machine with 2020, and these runs are from several: {listed}; "
            "give those of one"
        )


def _gpus(run: Run) -> list[str]:
    """The name of the first GPU, where something was measured on it."""
    facts = [record.facts for record in run.records if record.facts]
    return sorted({str(fact.device_name) for fact in facts if fact.device == _DEVICES["gpu"]})


def _refuse_twice(records: Sequence[Measurement]) -> None:
    runs: dict[tuple[str, int], int] = {}
    for record in records:
        if runs.setdefault((record.name, len(record.epochs)), record.run) != record.run:
            raise UsageError(
                f"--paper takes the runs as one, and {record.name} is in two of them: give the one "
                "that counts"
            )
