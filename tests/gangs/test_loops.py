"""Training loops that replicas share."""

from __future__ import annotations

import re

import pytest

from fwbench.workloads import lenet, lenet_step
from support import shared_loops
from support.projects import Project

_DEFAULTS = {"replicas": "2", "strategy": "allreduce", "workers": "0", "decay": "off"}


@pytest.mark.parametrize(
    ("fw", "asked"),
    [
        ("torch", ()),
        ("mxnet", ("--fw-execution=eager", "--fw-strategy=ps_sync", "--fw-servers=1")),
        ("tensorflow", ("--fw-execution=graph",)),
    ],
)
def test_replicas_train_as_one_worker(project: Project, fw: str, asked: tuple[str, ...]) -> None:
    """Epoch by epoch, on their shares of the same batches; what they learn is as good."""
    shared_loops.assert_alike(project, fw, *asked)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"replicas": "1", "workers": "2", "decay": "on"}, None),
        ({"strategy": "ps_async"}, "no loop is written whose workers do not wait .* lenet_step"),
        ({"straggler": "1@20ms"}, "nobody can be late in a loop; measure lenet_step"),
        ({"workers": "2"}, r"a replica loads its own batches \(--fw-toggle workers=0\)"),
        ({"decay": "on"}, r"do not change their learning rate \(--fw-toggle decay=off\)"),
    ],
)
def test_what_replicas_of_a_loop_lack(given: dict[str, str], said: str | None) -> None:
    """A gap with the reason; one worker lacks nothing of it."""
    gap = lenet.gang_gap(_DEFAULTS | given)
    assert (gap is None) == (said is None)
    assert said is None or re.search(said, str(gap))


def test_a_batch_is_shared_evenly_or_not_at_all() -> None:
    """As that of a step; a loader alone has nothing to share."""
    assert lenet.share_gap(200, 2) is None
    assert lenet.share_gap(200, 3) == lenet_step.share_gap(200, 3) is not None
    assert (lenet.shared, lenet_step.shared, lenet.loader.shared) == (True, True, False)
