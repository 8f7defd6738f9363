"""fwbench: benchmarks of deep-learning frameworks that can be trusted."""

from __future__ import annotations

__version__ = "0.1.0"

from fwbench.case import Case
from fwbench.errors import FwbenchError
from fwbench.frameworks.framework import Device, Framework
from fwbench.workloads.operation import Cost, Operation, Sizes

__all__ = ["Case", "Cost", "Device", "Framework", "FwbenchError", "Operation", "Sizes"]
