"""Where real data is, if anywhere."""

import os
from pathlib import Path

from fwbench.workloads import data

_BESIDE = Path(__file__).parents[3] / "shared" / "data"

#: A list of folders, as ``FWBENCH_DATA`` names them; empty where there are none.
REAL = os.environ.get(data.VARIABLE) or (str(_BESIDE) if _BESIDE.is_dir() else "")
