"""``mx.profiler``: the times of operators, added up by MXNet itself.

Its engine runs operators of a hybridized block in bulks, which the profiler knows by one name made
of all of theirs; :mod:`fwbench.frameworks.mxnet.framework` switches bulks off before the import
where a case is to be profiled.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import mxnet as mx

from fwbench.frameworks.mxnet.operator_classes import PREFIXES
from fwbench.frameworks.profiler import Operator, Profiler, class_of

#: How the gradient of an operator is named: by this and the operator.
_BACKWARD = "_backward_"

#: What the engine does in addition to operators.
_NO_OPERATORS = ("WaitForVar", "DeleteVariable", "ResourceParallelRandomSetSeed", "SetValueOp")


class MXNetProfiler(Profiler):
    """What MXNet's profiler says of operators."""

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
        table = json.loads(mx.profiler.dumps(format="json"))
        mx.profiler.dump()
        milliseconds = table["Unit"]["Time"] == "ms"
        seconds = 1e-3 if milliseconds else 1e-6
        return [
            Operator(name, _class_of(name), row["Total"] * seconds, row["Count"])
            for name, row in table["Time"].get("operator", {}).items()
            if not name.startswith(_NO_OPERATORS)
        ]


def _class_of(name: str) -> str:
    """A gradient is of its operator's class."""
    return class_of(name.removeprefix(_BACKWARD), PREFIXES)
