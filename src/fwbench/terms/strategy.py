"""How replicas agree."""

from __future__ import annotations

#: By an all-reduce among themselves.
ALLREDUCE = "allreduce"

#: By servers that have the parameters.
WITH_SERVERS = ("ps_sync", "ps_async")

#: Those in which workers do not wait for each other: they compute gradients from other weights than
#: one worker would, so their work equals nobody's.
ASYNCHRONOUS = ("ps_async",)
