"""The figures of the TensorFlow 2.1 / MXNet 1.5 benchmark (TU Berlin, March 2020).

Medians of the result files that its authors published next to the report. ``operations.csv``:
seconds of one trial (50 calls; of ``gemm`` 50 on the CPU, 10 on the GPU). ``lenet.csv``: seconds of
a whole training, batch 200, and its accuracy. How they were taken matters more than what they are:
the clock was Python's process CPU time, over all threads; MXNet's calls return before the work is
done, and nothing waited for them; no warm-up was left out; TensorFlow's LeNet includes validation
after each epoch and MXNet's does not. So only ratios within the report are shown next to a run's.
"""

from __future__ import annotations

import csv
from importlib import resources


def rows(name: str, device: str) -> list[dict[str, str]]:
    """A table, as it is written.

    Args:
        name: ``operations`` or ``lenet``.
        device: ``cpu`` or ``gpu``.
    """
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    return [row for row in csv.DictReader(text.splitlines()) if row["device"] == device]
