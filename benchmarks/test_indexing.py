"""Rows and elements picked, added up, overwritten, masked."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import INDEXING


@pytest.mark.fwbench(*INDEXING, families="representatives")
def test_indexing(case: Case) -> None:
    case.measure()
