"""A run beside the TensorFlow 2.1 / MXNet 1.5 benchmark of 2020: its figures, its statements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from fwbench.errors import UsageError
from fwbench.report.paper import lenet, operations, statements
from fwbench.report.parts.table import Part
from fwbench.report.records import Run

__all__ = ["parts"]


def parts(runs: Sequence[Run]) -> list[Part]:
    """The statements, the operations and LeNet, for each device that was measured.

    Raises:
        UsageError: the runs are from several machines, or thread counts.
    """
    settings = {(run.cpu, run.surroundings.get("threads")) for run in runs if run.records}
    if len(settings) > 1:
        raise UsageError(
            "--paper sets one machine beside 2020, and these runs are from several: "
            f"{'; '.join(f'{cpu}, {threads} threads' for cpu, threads in settings)}; give those of "
            "one"
        )
    records = [record for run in runs for record in run.records if record.facts]
    # As it was then: the first GPU, float32, forward.
    devices = {
        device: [one for one in records if str(one.device).partition(":")[0] == device]
        for device in ("cpu", "gpu")
    }
    measured = {device: found for device, found in devices.items() if found}
    ratios = {device: operations.ratios_of(device, found) for device, found in measured.items()}
    return [
        statements.part(measured, ratios),
        *itertools.chain.from_iterable(
            operations.parts(device, found) for device, found in ratios.items()
        ),
        *(lenet.part(device, found) for device, found in measured.items()),
    ]
