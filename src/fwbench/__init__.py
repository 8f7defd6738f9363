"""fwbench: benchmarks of deep-learning frameworks that can be trusted.

PYTEST_DONT_REWRITE: a worker has imported this package before its pytest session begins.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fwbench.version import __version__ as __version__

if TYPE_CHECKING:
    from fwbench.cases.case import Case
    from fwbench.errors import FwbenchError
    from fwbench.frameworks.contract import Framework
    from fwbench.manifest import Device
    from fwbench.presets import Sizes
    from fwbench.workloads.operation import Operation
    from fwbench.workloads.training import Training
    from fwbench.workloads.workload import Cost

# Imported when they are asked for: pytest imports this package in every session, and those that
# measure nothing must not pay for NumPy.
_PUBLIC = {
    "Case": "fwbench.cases.case",
    "Cost": "fwbench.workloads.workload",
    "Device": "fwbench.manifest",
    "Framework": "fwbench.frameworks.contract",
    "FwbenchError": "fwbench.errors",
    "Operation": "fwbench.workloads.operation",
    "Sizes": "fwbench.presets",
    "Training": "fwbench.workloads.training",
}

__all__ = ["Case", "Cost", "Device", "Framework", "FwbenchError", "Operation", "Sizes", "Training"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
