"""Images enlarged, and taken apart into patches."""

import pytest

from fwbench.cases.case import Case
from fwbench.workloads import IMAGE


@pytest.mark.fwbench(*IMAGE, families="representatives")
def test_image(case: Case) -> None:
    case.measure()
