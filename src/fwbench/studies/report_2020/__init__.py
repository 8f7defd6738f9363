"""A run beside the TensorFlow 2.1 / MXNet 1.5 benchmark of 2020: its figures, its statements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from fwbench.errors import UsageError
from fwbench.report.model import Record, Run
from fwbench.report.sections.table import Part
from fwbench.studies.report_2020 import lenet, operations, statements

__all__ = ["parts"]


#: What the report called a CPU and a GPU.
_DEVICES = {"cpu": "cpu", "gpu": "gpu:0"}


def parts(runs: Sequence[Run]) -> list[Part]:
    """The statements, the operations and LeNet, for each device that was measured.

    Runs of one machine count as one.

    Raises:
        UsageError: the runs are from several machines, or thread counts, or have a case in common.
    """
    ours = [run for run in runs if any(record.facts for record in run.records)]
    _refuse_several(ours)
    records = [record for run in ours for record in run.records if record.facts]
    _refuse_twice(records)
    measured = {
        device: found
        for device, name in _DEVICES.items()
        if (found := [one for one in records if one.device == name])
    }
    ratios = {device: operations.ratios_of(device, found) for device, found in measured.items()}
    return [
        statements.part(measured, ratios),
        *itertools.chain.from_iterable(
            operations.parts(device, found) for device, found in ratios.items()
        ),
        *(lenet.part(device, found) for device, found in measured.items()),
    ]


def _refuse_several(runs: Sequence[Run]) -> None:
    settings = {
        (str(run.cpu), *_gpus(run), f"{run.surroundings.get('threads')} threads") for run in runs
    }
    if len(settings) > 1:
        found = "; ".join(", ".join(one) for one in sorted(settings))
        raise UsageError(
            f"--paper sets one machine beside 2020, and these runs are from several: {found}; give "
            "those of one"
        )


def _gpus(run: Run) -> list[str]:
    """What the first GPU is called, where something was measured on it."""
    found = (str(one.device_name) for one in run.records if one.device == _DEVICES["gpu"])
    return sorted({*found})


def _refuse_twice(records: Sequence[Record]) -> None:
    runs: dict[str, int] = {}
    for record in records:
        if runs.setdefault(record.name, record.run) != record.run:
            raise UsageError(
                f"--paper takes the runs as one, and {record.name} is in two of them: give the one "
                "that counts"
            )
