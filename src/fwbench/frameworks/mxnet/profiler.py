"""``mx.profiler``: the times of operators, added up by MXNet itself.

Its engine runs operators of a hybridized block in bulks, which the profiler knows by one name made
of all of theirs; :mod:`fwbench.frameworks.mxnet.framework` switches bulks off before the import
where a case is to be profiled.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import mxnet as mx

from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Operator, Profiler, class_of

#: How the gradient of an operator is named: by this and the operator.
_BACKWARD = "_backward_"

#: Events in what MXNet dumps; it begins and ends an object in a process' first and last dump only.
_EVENTS = re.compile(r" {4}\{\n.*\n {4}\}", re.DOTALL)

#: What the engine does in addition to operators.
_NO_OPERATORS = ("WaitForVar", "DeleteVariable", "ResourceParallelRandomSetSeed", "SetValueOp")


class MXNetProfiler(Profiler):
    """Times of operators by MXNet's profiler."""

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """From the table that MXNet adds up."""
        mx.profiler.set_config(
            profile_symbolic=True,
            profile_imperative=True,
            profile_memory=False,
            profile_api=False,
            aggregate_stats=True,
            filename=str(trace),
        )
        mx.profiler.set_state("run")
        work()
        mx.nd.waitall()
        mx.profiler.set_state("stop")
        table = json.loads(mx.profiler.dumps(reset=True, format="json"))
        mx.profiler.dump(finished=False)
        events = _EVENTS.search(trace.read_text(encoding="utf-8"))
        trace.write_text(f'{{"traceEvents": [{events[0] if events else ""}]}}', encoding="utf-8")
        milliseconds = table["Unit"]["Time"] == "ms"
        seconds = 1e-3 if milliseconds else 1e-6
        return [
            Operator(name, _class_of(name), row["Total"] * seconds, row["Count"])
            for name, row in table["Time"].get("operator", {}).items()
            if not name.startswith(_NO_OPERATORS)
        ]


def _class_of(name: str) -> str:
    """A gradient is of its operator's class."""
    return class_of(name.removeprefix(_BACKWARD), profiler.prefixes("mxnet"))
