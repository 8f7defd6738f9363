"""Where real data is, if anywhere."""

import os
from pathlib import Path

import pytest

from fwbench.workloads import data
from fwbench.workloads.data import Found

_BESIDE = Path(__file__).parents[3] / "shared" / "data"

#: A list of folders, as ``FWBENCH_DATA`` names them; empty where there are none.
REAL = os.environ.get(data.VARIABLE) or (str(_BESIDE) if _BESIDE.is_dir() else "")


def find_real(name: str) -> Found:
    """Where a real data set is; skips the test where there is none."""
    for folder in filter(None, REAL.split(os.pathsep)):
        found = data.find(name, Path(folder))
        if found.source == "real":
            return found
    pytest.skip(f"no real {name} here: name its folder in {data.VARIABLE}")
