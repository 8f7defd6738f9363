"""The import of each framework, in processes that do nothing else."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import STARTUP


@pytest.mark.fwbench(*STARTUP, families="representatives")
def test_startup(case: Case) -> None:
    case.measure()
