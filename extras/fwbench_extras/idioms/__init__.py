"""Other public ways of frameworks to compute operations: a module a framework, and their page.

They are measured in turns with the ways that are called (``make idioms``), which the tables of
operations name: ``operations.py`` of each framework in :mod:`fwbench.frameworks`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from fwbench_extras.idioms.table import Idioms


def idioms_of(framework: str) -> Idioms:
    """The idioms of a framework's operations; none of one that has no module here."""
    name = f"{__name__}.{framework}"
    if find_spec(name) is None:
        return {}
    idioms: Idioms = import_module(name).IDIOMS
    return idioms
