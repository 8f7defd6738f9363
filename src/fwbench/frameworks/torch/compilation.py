"""Phases of ``torch.compile``, by its own timers (``torch._dynamo.utils.compile_times``)."""

import sys
from collections.abc import Callable
from typing import Any

from fwbench.frameworks.contract import Compilation

#: All of a compilation; the compiler behind Dynamo; and in that, what was compiled before, files
#: that this process compiles, and the wait for those that others compile.
_TIMERS = (
    *("_compile.compile_inner", "OutputGraph.call_user_compiler"),
    *("AOTAutogradCache.inductor_load", "compile_file", "async_compile.wait"),
)


def watch() -> Callable[[], Compilation]:
    """Begin to note compilations; see ``Framework.watch_compilation``."""
    before = _seconds()

    def compiled() -> Compilation:
        # Timers are not reset meanwhile, and each has a value for each time that it was used.
        now = {timer: values[len(before[timer]) :] for timer, values in _seconds().items()}
        whole_s, behind_s, loaded_s, files_s, wait_s = (sum(now[timer]) for timer in _TIMERS)
        # Each of these may be within another one: what is loaded may have to be compiled.
        compile_s = min(max(files_s, wait_s), behind_s)
        loaded_s = min(loaded_s, behind_s - compile_s)
        phases_s = {
            "trace": whole_s - behind_s,
            "lower": behind_s - compile_s - loaded_s,
            "compile": compile_s,
            "load from cache": loaded_s,
        }
        return Compilation(len(now[_TIMERS[0]]), phases_s)

    return compiled


def _seconds() -> dict[str, list[float]]:
    """Seconds of each use of each timer; none where nothing has been compiled."""
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    rows = {} if dynamo is None else dict(zip(*dynamo.compile_times("csv"), strict=True))
    texts = {timer: rows.get(timer, "").split(", ") for timer in _TIMERS}
    return {timer: [*map(float, filter(None, values))] for timer, values in texts.items()}
