"""Records of measured cases, as they arrive in the parent."""

from __future__ import annotations

import json
from typing import Any

from pytest_benchmark.utils import safe_dumps

from fwbench.cases.case import Case
from fwbench.plugin import host
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation


def sent(case: Case) -> Any:
    """The record of a measured case, as it arrives in the parent."""
    return json.loads(safe_dumps(host.record(case.benchmark)))


def measured(**settings: Any) -> dict[str, Any]:
    """The record of a case of the fake framework, as it arrives in the parent."""
    case = case_of(cell(operation()), FakeFramework(), **settings)
    case.measure()
    return sent(case)
