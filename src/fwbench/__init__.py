"""fwbench: benchmarks of deep-learning frameworks that can be trusted.

PYTEST_DONT_REWRITE: a worker has imported this package before its pytest session begins.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fwbench.version import __version__ as __version__

if TYPE_CHECKING:
    from fwbench.cases.case import Case
    from fwbench.claims import at_most, faster, no_slower
    from fwbench.errors import (
        CannotTell,
        ClaimFailed,
        DeclarationError,
        FrameworkBroken,
        FrameworkMissing,
        FwbenchError,
    )
    from fwbench.frameworks.contract import BoundCall, Framework
    from fwbench.frameworks.layout import Layout, axes
    from fwbench.frameworks.learner import Job, Learner, Loader, Order, Predictor
    from fwbench.frameworks.table import Call, Laid, Table
    from fwbench.terms.manifest import Capabilities, Device, Gap
    from fwbench.terms.presets import Form, Schedule, Shape, Sizes
    from fwbench.terms.toggles import Toggle
    from fwbench.workloads.function import function
    from fwbench.workloads.input import Input
    from fwbench.workloads.model import Model
    from fwbench.workloads.operation import Implementation, Operation
    from fwbench.workloads.training import SGD, Adam, RMSprop, Training
    from fwbench.workloads.workload import Cost, Workload

# Imported on first use: pytest imports this package in every session, and those that measure
# nothing must not pay for NumPy.
_MODULES = {
    "fwbench.cases.case": ("Case",),
    "fwbench.claims": ("at_most", "faster", "no_slower"),
    "fwbench.errors": (
        *("CannotTell", "ClaimFailed"),
        *("DeclarationError", "FrameworkBroken", "FrameworkMissing", "FwbenchError"),
    ),
    "fwbench.frameworks.contract": ("BoundCall", "Framework"),
    "fwbench.frameworks.layout": ("Layout", "axes"),
    "fwbench.frameworks.learner": ("Job", "Learner", "Loader", "Order", "Predictor"),
    "fwbench.frameworks.table": ("Call", "Laid", "Table"),
    "fwbench.terms.manifest": ("Capabilities", "Device", "Gap"),
    "fwbench.terms.presets": ("Form", "Schedule", "Shape", "Sizes"),
    "fwbench.terms.toggles": ("Toggle",),
    "fwbench.workloads.function": ("function",),
    "fwbench.workloads.input": ("Input",),
    "fwbench.workloads.model": ("Model",),
    "fwbench.workloads.operation": ("Implementation", "Operation"),
    "fwbench.workloads.training": ("Adam", "RMSprop", "SGD", "Training"),
    "fwbench.workloads.workload": ("Cost", "Workload"),
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "SGD", "Adam", "BoundCall", "Call", "CannotTell", "Capabilities", "Case", "ClaimFailed",
    "Cost", "DeclarationError", "Device", "Form", "Framework", "FrameworkBroken",
    "FrameworkMissing", "FwbenchError", "Gap", "Implementation", "Input", "Job", "Laid", "Layout",
    "Learner", "Loader", "Model", "Operation", "Order", "Predictor", "RMSprop", "Schedule",
    "Shape", "Sizes", "Table", "Toggle", "Training", "Workload", "at_most", "axes", "faster",
    "function", "no_slower",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; operations and models are in "
            "fwbench.workloads"
        )
    return getattr(import_module(_PUBLIC[name]), name)
