"""Training loops that replicas share."""

import re

import pytest

from fwbench.workloads import lenet, lenet_step
from support import shared_loops
from support.forkserver import Forking
from support.grids import SHARED, gap_of
from support.projects import Project
from support.tables import tabled

_TWO = {"replicas": "2", "strategy": "allreduce"}


@tabled
@pytest.mark.usefixtures("started")  # forked they are from a process with the framework
def test_replicas_train_as_one_worker(
    project: Project, forking_with: Forking, fw: str, asked: tuple[str, ...]
) -> None:
    """Epoch by epoch, on their shares of the same batches; what they learn is as good."""
    with forking_with(fw):
        shared_loops.assert_alike(project, fw, *asked)


@tabled
def test_what_replicas_of_a_loop_lack(given: dict[str, str], message: str | None) -> None:
    """A gap with the reason; one worker lacks nothing of it."""
    gap = gap_of(lenet, SHARED, direction="train", size=200, toggles=(*(_TWO | given).items(),))
    assert (gap is None) == (message is None)
    assert message is None or re.search(message, str(gap))


def test_a_batch_is_shared_evenly_or_not_at_all() -> None:
    """Like that of a step; a loader alone has nothing to share."""
    for workload in (lenet, lenet_step):
        for replicas, gap in (("2", None), ("3", "a batch of 200 cannot be shared evenly by 3")):
            toggles = (*(_TWO | {"replicas": replicas}).items(),)
            why = gap_of(workload, SHARED, direction="train", size=200, toggles=toggles)
            assert (why is None) == (gap is None)
            assert gap is None or gap in str(why)
    assert (lenet.shared, lenet_step.shared, lenet.loader.shared) == (True, True, False)
