"""fwbench: benchmarks of deep-learning frameworks that can be trusted.

PYTEST_DONT_REWRITE: a worker has imported this package before its pytest session begins.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fwbench.version import __version__ as __version__

if TYPE_CHECKING:
    from fwbench.cases.case import Case
    from fwbench.errors import DeclarationError, FrameworkBroken, FrameworkMissing, FwbenchError
    from fwbench.frameworks.contract import BoundCall, Framework
    from fwbench.frameworks.layout import Layout, axes
    from fwbench.frameworks.learner import Job, Learner, Loader, Order, Predictor
    from fwbench.frameworks.table import Call, Laid, Table
    from fwbench.terms.manifest import Capabilities, Device, Gap
    from fwbench.terms.presets import Form, Schedule, Shape, Sizes
    from fwbench.terms.toggles import Toggle
    from fwbench.workloads.input import Input
    from fwbench.workloads.model import Model
    from fwbench.workloads.operation import Implementation, Operation
    from fwbench.workloads.training import SGD, Adam, RMSprop, Training
    from fwbench.workloads.workload import Cost, Workload

# Imported on first use: pytest imports this package in every session, and those that measure
# nothing must not pay for NumPy.
_PUBLIC = {
    "Adam": "fwbench.workloads.training",
    "BoundCall": "fwbench.frameworks.contract",
    "Call": "fwbench.frameworks.table",
    "Case": "fwbench.cases.case",
    "Cost": "fwbench.workloads.workload",
    "DeclarationError": "fwbench.errors",
    "Capabilities": "fwbench.terms.manifest",
    "Device": "fwbench.terms.manifest",
    "Form": "fwbench.terms.presets",
    "Framework": "fwbench.frameworks.contract",
    "FrameworkBroken": "fwbench.errors",
    "FrameworkMissing": "fwbench.errors",
    "FwbenchError": "fwbench.errors",
    "Gap": "fwbench.terms.manifest",
    "Implementation": "fwbench.workloads.operation",
    "Input": "fwbench.workloads.input",
    "Job": "fwbench.frameworks.learner",
    "Laid": "fwbench.frameworks.table",
    "Layout": "fwbench.frameworks.layout",
    "Learner": "fwbench.frameworks.learner",
    "Loader": "fwbench.frameworks.learner",
    "Model": "fwbench.workloads.model",
    "Operation": "fwbench.workloads.operation",
    "Order": "fwbench.frameworks.learner",
    "Predictor": "fwbench.frameworks.learner",
    "RMSprop": "fwbench.workloads.training",
    "SGD": "fwbench.workloads.training",
    "Schedule": "fwbench.terms.presets",
    "Shape": "fwbench.terms.presets",
    "Sizes": "fwbench.terms.presets",
    "Table": "fwbench.frameworks.table",
    "Toggle": "fwbench.terms.toggles",
    "Training": "fwbench.workloads.training",
    "Workload": "fwbench.workloads.workload",
    "axes": "fwbench.frameworks.layout",
}

__all__ = [
    "SGD",
    "Adam",
    "BoundCall",
    "Call",
    "Capabilities",
    "Case",
    "Cost",
    "DeclarationError",
    "Device",
    "Form",
    "Framework",
    "FrameworkBroken",
    "FrameworkMissing",
    "FwbenchError",
    "Gap",
    "Implementation",
    "Input",
    "Job",
    "Laid",
    "Layout",
    "Learner",
    "Loader",
    "Model",
    "Operation",
    "Order",
    "Predictor",
    "RMSprop",
    "Schedule",
    "Shape",
    "Sizes",
    "Table",
    "Toggle",
    "Training",
    "Workload",
    "axes",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
