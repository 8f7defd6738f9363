"""What is done with each kind of workload that replicas share, by the controller and by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fwbench import workloads
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.member import Member
from fwbench.gangs.case import GangCase
from fwbench.gangs.epochs import LoopShare
from fwbench.gangs.exchanges import CollectiveCase, exchanged
from fwbench.gangs.loops import SharedLoopCase
from fwbench.gangs.served import NullShare, NullStepCase, ReadShare, SparseReadCase
from fwbench.gangs.shares import AsynchronousShare, Share, Task, TrainedShare
from fwbench.gangs.trainings import AsynchronousStepCase, SharedStepCase
from fwbench.grid import Cell
from fwbench.terms.strategy import ASYNCHRONOUS
from fwbench.toggles import asynchronous
from fwbench.workloads.collectives import Collective
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.serving import NullStep, SparseRead
from fwbench.workloads.training import Step, Training
from fwbench.workloads.workload import Workload

_Kinds = Mapping[type[Workload], type[GangCase]]
_Shares = Mapping[type[Workload], Callable[[Task, Framework, Member], Share]]

#: What measures steps with servers, whether or not workers wait for each other.
_SERVED_CASES: _Kinds = {NullStep: NullStepCase, SparseRead: SparseReadCase}

#: What measures a workload that replicas share.
_CASES: _Kinds = {
    Collective: CollectiveCase,
    Step: SharedStepCase,
    ModelStep: SharedStepCase,
    Training: SharedLoopCase,
    **_SERVED_CASES,
}

#: The same of workers that do not wait for each other.
_ASYNCHRONOUS_CASES: _Kinds = {
    Step: AsynchronousStepCase,
    ModelStep: AsynchronousStepCase,
    **_SERVED_CASES,
}

#: What a replica does of it.
_SERVED_SHARES: _Shares = {NullStep: NullShare, SparseRead: ReadShare}
_SHARES: _Shares = {
    Collective: exchanged,
    Step: TrainedShare,
    ModelStep: TrainedShare,
    Training: LoopShare,
    **_SERVED_SHARES,
}

#: The same of workers that do not wait for each other.
_ASYNCHRONOUS_SHARES: _Shares = {
    Step: AsynchronousShare,
    ModelStep: AsynchronousShare,
    **_SERVED_SHARES,
}


def kinds_of(cell: Cell) -> _Kinds:
    """What measures each kind of workload by the gang of a cell."""
    return _ASYNCHRONOUS_CASES if asynchronous(cell.toggles) else _CASES


def share_of(task: Task, framework: Framework, member: Member) -> Share:
    """A replica's share of a case, built.

    Args:
        task: the case.
        framework: loaded in this process.
        member: this replica.
    """
    shares = _ASYNCHRONOUS_SHARES if member.seat.strategy in ASYNCHRONOUS else _SHARES
    return shares[type(getattr(workloads, task.workload))](task, framework, member)
