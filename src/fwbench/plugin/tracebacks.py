"""The frames of a failure that people see: their test's, and not those of fwbench.

``pytest --full-trace`` shows all of them. A debugger (``--pdb``) stops in the user's test, not
where fwbench raised the error.
"""

from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

import pytest

#: The variable by which a module has pytest hide its frames.
_HIDDEN = "__tracebackhide__"

#: The package whose frames are hidden, but for the plugin's, which are around the test, too.
_PACKAGE, _PLUGIN = "fwbench.", "fwbench.plugin."


def hide(error: BaseException, item: pytest.Item) -> None:
    """Hide the frames of fwbench's modules in the traceback of an error, and in what led to it."""
    test = getattr(getattr(item, "function", None), "__globals__", None)
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        for entry in _entries(cause.__traceback__):
            names = entry.tb_frame.f_globals
            module = str(names.get("__name__", ""))
            is_own = module.startswith(_PACKAGE) and not module.startswith(_PLUGIN)
            if is_own and names is not test:
                names[_HIDDEN] = True
        cause = cause.__cause__ or cause.__context__


def end_in_test(error: BaseException) -> None:
    """Let the traceback of an error that fwbench raised end before the first of its own frames.

    A debugger stops there, and a report shows it. The debugger takes frames for hidden that say so
    in their locals, not those of modules that do; neither hides those of the standard library
    between them. What code that fwbench calls has raised stays as it is.
    """
    entries = [*_entries(error.__traceback__)]
    first = next((n for n, entry in enumerate(entries) if _is_hidden(entry.tb_frame)), 0)
    if first and _is_hidden(entries[-1].tb_frame):
        entries[first - 1].tb_next = None


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_hidden(frame: FrameType) -> bool:
    names: dict[str, Any] = frame.f_globals
    return bool(names.get(_HIDDEN, False))
