"""Replicas of a framework train as one worker does; each way not to is found before any timing."""

import itertools
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fwbench import errors
from fwbench.errors import WrongGradient, WrongResult, WrongTraining
from fwbench.gangs import checks
from fwbench.gangs.checks import Answers
from fwbench.gangs.gang import Gang
from fwbench.gangs.launch import Local
from fwbench.gangs.shares import Task
from fwbench.workloads import COLLECTIVES, lenet_step, mlp_step, word_lm_sampled_step, word_lm_step
from fwbench.workloads.models.stable_weights import to_share
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.training import Step, Trains
from support.cheats import normalized_step
from support.forkserver import Forking
from support.gangs import SOON, composition, installed, running
from support.real_training import if_installed
from support.tables import tabled

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 300.0
_BEFORE = "before the timing"
_AFTER = "after the timing"

#: Gangs that work in lock-step, and those whose workers do not wait for each other.
_WAITING: dict[str, dict[str, Any]] = {
    "mxnet": {"strategy": "ps_sync", "servers": 1, "coordinator": "scheduler", "updating": True},
    "tensorflow": {},
    "torch": {},
}
_UNWAITING: dict[str, dict[str, Any]] = {
    "mxnet": _WAITING["mxnet"] | {"strategy": "ps_async"},
    "tensorflow": {"strategy": "ps_async", "servers": 2, "coordinator": "coordinator"},
}

_EXECUTIONS = {"mxnet": ("eager", "hybridize"), "tensorflow": ("graph",), "torch": ("eager",)}

#: The roles that take no steps, of which each tells what it has sent.
_SERVING = {
    "mxnet": ["server 0 of 1", "the scheduler"],
    "tensorflow": ["worker 0 of 2", "worker 1 of 2", "server 0 of 2", "server 1 of 2"],
}

_EXCHANGES = {
    "mxnet": COLLECTIVES[:1],
    "tensorflow": [
        collective for collective in COLLECTIVES if collective.name in ("all_reduce", "all_gather")
    ],
    "torch": COLLECTIVES,
}

# Those with servers come first in both: tests of one framework follow each other.
_with_servers = pytest.mark.parametrize(
    "framework", [*map(if_installed, _UNWAITING)], indirect=True
)


@pytest.fixture(scope="module", params=[*map(if_installed, _WAITING)])
def framework(
    request: pytest.FixtureRequest, forking_with: Forking, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A framework: gangs are of one like it whose mistakes depend on the batch."""
    folder = tmp_path_factory.mktemp("installed")
    names = {"mxnet": "MXNet", "tensorflow": "TensorFlow", "torch": "Torch"}
    name = request.param
    installed(folder, "cheating", f"support.cheating_{name}:Cheating{names[name]}")
    with pytest.MonkeyPatch.context() as patch, forking_with(name):
        path = [str(folder), str(_TESTS), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        yield name


class Used(NamedTuple):
    """Answers, and what processes without steps had used before and after."""

    answers: Answers
    before: Answers
    after: Answers

    def refuse_silence(self, steps: int, least_bytes: float) -> None:
        """All processes together have sent as much as these steps must.

        The last step of a round does not count, as in records: its bytes may be on their way.
        """
        sent = checks.sent(self.answers, self.before, self.after)
        checks.refuse_silence(f"{steps} steps", sent, steps * least_bytes, "numbers")


class Replicas(Gang):
    """A gang of a framework that makes mistakes.

    Attributes:
        executions: in which it trains; cases are in the first where none is asked for.
        waits: whether its workers wait for each other.
        copies: how often a step of all replicas moves all parameters.
    """

    def __init__(self, framework: str, replicas: int = 2, **more: Any) -> None:
        super().__init__(composition(replicas, "cheating", **more), Local(), SOON)
        self.executions = _EXECUTIONS[framework]
        self.waits = self.composition.strategy != "ps_async"
        self.copies = 2 * replicas if self.composition.servers else 2 * (replicas - 1)

    def request(self, kind: str, *values: Any) -> list[Any]:
        return self.ask(kind, *values, limit_s=_PATIENCE_S, doing=kind)

    def used(self, kind: str, steps: int) -> Used:
        before = self.usage()
        return Used(self.request(kind, steps), before, self.usage())

    def bind(self, name: str, size: int, **changes: Any) -> None:
        task = Task(name, size, "cpu", self.executions[0], "float32", sparse=False)
        self.request("bind", asdict(task) | changes)

    def updates(self, steps: int, alone: int = 0) -> int:
        """The updates of each array in some steps of all, and in steps of one worker alone."""
        return steps if self.waits else steps * self.composition.replicas + alone

    def trains(self, step: Trains, size: Any, parts: int = 0, **changes: Any) -> None:
        """Check training from the initial weights on.

        Args:
            parts: of a batch that are normalized; 0 for one of each replica.

        Raises:
            VerificationError: this is not the work of one worker.
        """
        batch = size["batch"] if isinstance(size, Mapping) else size
        shape = "" if batch is size else str(size)
        together = self.composition.replicas
        checked_as = (batch, parts or together) if self.waits else (batch // together, 1)
        objective = to_share(step.at(size), *checked_as)
        steps = int(objective.checked_steps)
        self.bind(step.name, batch, shape=shape, **changes)
        used = self.used("check", steps)
        if self.waits:
            judged = checks.training(used.answers, objective, checked_as, "float32", _BEFORE)
        else:
            share = batch // together
            judged = checks.asynchronous(used.answers, objective, share, "float32", _BEFORE)
        checks.served(used.before, used.after, self.updates(steps, steps), _BEFORE)
        used.refuse_silence(steps, self.copies * 4 * objective.parameters)
        facts, checked = judged
        assert facts.max_loss_deviation is not None
        assert facts.max_loss_deviation < 1e-5
        assert checked.gradient_error is not None
        assert checked.gradient_error < 2e-4
        assert checked.updates in (None, self.updates(steps, steps))


@pytest.fixture(scope="module")
def gang(framework: str) -> Iterator[Replicas]:
    """Two replicas that wait for each other, started once."""
    with running(Replicas(framework, **_WAITING[framework])) as made:
        yield made


@pytest.fixture(scope="module")
def unwaiting(framework: str) -> Iterator[Replicas]:
    """Two workers that do not wait for each other, with parameter servers."""
    with running(Replicas(framework, **_UNWAITING[framework])) as made:
        yield made


@pytest.mark.parametrize("step", [lenet_step, mlp_step], ids=lambda step: step.name)
def test_two_replicas_train_as_one_worker(gang: Replicas, step: Step) -> None:
    """The same losses, gradients and weights, of several models in the same processes.

    Timed steps send as many bytes, and servers update once in each. All executions share servers.
    """
    for execution in gang.executions:
        gang.trains(step, 80, execution=execution)
    used = gang.used("round", 7)
    used.refuse_silence(7 - 1, gang.copies * 4 * step.training.parameters)
    checks.served(used.before, used.after, 7, "timed")
    checks.same_weights(gang.request("verify_last"), _AFTER)


@pytest.mark.parametrize("step", [word_lm_step, word_lm_sampled_step], ids=lambda step: step.name)
def test_a_language_model_is_shared(framework: str, gang: Replicas, step: ModelStep) -> None:
    """With a softmax over all words, or over a few; a worker of PyTorch's can step alone."""
    gang.trains(step, step.smallest)
    alone = gang.request("alone", 3)
    if framework != "torch":
        assert alone == [None, None]
        return
    assert all(rank["seconds"] > 0 for rank in alone)
    sent = checks.sent(alone)
    # The barrier's, and once what a layer holds beside its parameters; gradients have 390 KB.
    assert sent is None or sent < 5000


def test_a_network_that_normalizes_by_batch_is_shared(gang: Replicas) -> None:
    """Each replica normalizes its share; one worker, the whole batch, which has other losses."""
    gang.trains(normalized_step, normalized_step.smallest, execution=gang.executions[-1])


def test_replicas_normalize_the_batch_of_all_together(framework: str, gang: Replicas) -> None:
    """They train as one worker where they can; who normalizes a share instead is found."""
    can = framework == "tensorflow"
    message = "what 2 replicas exchange is wrong"
    with nullcontext() if can else pytest.raises(WrongGradient, match=message):
        size, execution = normalized_step.smallest, gang.executions[-1]
        gang.trains(normalized_step, size, parts=1, synchronized=True, execution=execution)


def test_three_replicas_train_as_one_worker(framework: str) -> None:
    """Two models: an uneven number of replicas."""
    with running(Replicas(framework, 3, **_WAITING[framework])) as gang:
        for step in (lenet_step, mlp_step):
            gang.trains(step, 120)


@tabled
def test_cheats_are_found(gang: Replicas, batch: int, error: str, message: str) -> None:
    with pytest.raises(getattr(errors, error), match=message):
        gang.trains(lenet_step, batch)


def test_exchanges_of_arrays_are_right(framework: str, gang: Replicas) -> None:
    """Before and after steps that are timed; they send what they must.

    MXNet's servers add up until they are to update what they have.
    """
    with ExitStack() as stack:
        if gang.composition.updating:
            more = _WAITING[framework] | {"updating": False}
            gang = stack.enter_context(running(Replicas(framework, **more)))
        for exchange, dtype in itertools.product(_EXCHANGES[framework], ("float32", "float64")):
            gang.bind(exchange.name, 1002, dtype=dtype)
            copies = gang.copies if gang.composition.servers else exchange.sent(2)
            least_bytes = copies * 1002 * np.dtype(dtype).itemsize
            gang.used("check", 3).refuse_silence(3, least_bytes)
            gang.request("round", 3)
            assert gang.request("verify_last") == [{}, {}]


@_with_servers
@pytest.mark.parametrize("step", [lenet_step, mlp_step], ids=lambda step: step.name)
def test_workers_that_do_not_wait_learn(framework: str, unwaiting: Replicas, step: Step) -> None:
    """One alone does the work of one process; together every update is made, also when timed."""
    gang = unwaiting
    before = gang.usage()
    gang.trains(step, 80)
    sent = [[answer["sent_bytes"] for answer in used] for used in (before, gang.usage())]
    assert [place.name for place, _ in gang.serving] == _SERVING[framework]
    assert None in sent[0] or all(map(operator.lt, *sent)), "a process has sent nothing"
    used = gang.used("round", 10)
    assert all(answer["seconds"] > 0.0 for answer in used.answers)
    checks.served(used.before, used.after, 20, "timed")
    left = gang.request("verify_last")
    checks.all_made(left, _AFTER)
    assert framework != "tensorflow" or left == [{"updates": [20, 20]}]


_OTHER_GRADIENT = "what a worker sends is wrong: the gradient by parameter 0"


#: By framework: batches of gangs that wait for each other or do not, and what is found.
_WITH_SERVERS = {
    "mxnet": [("gang", 96, WrongTraining, "array 10 times, and have done so 0 times")],
    "tensorflow": [
        ("unwaiting", 16, WrongGradient, _OTHER_GRADIENT),
        ("unwaiting", 32, WrongTraining, "sent 30 updates, and the servers have made 29"),
        ("unwaiting", 48, WrongGradient, _OTHER_GRADIENT),
    ],
}


@_with_servers
def test_cheats_with_servers_are_found(framework: str, request: pytest.FixtureRequest) -> None:
    """MXNet's workers update themselves; TensorFlow's add up, lose a step, and never update."""
    for name, batch, error, message in _WITH_SERVERS[framework]:
        gang: Replicas = request.getfixturevalue(name)
        with pytest.raises(error, match=message):
            gang.trains(lenet_step, batch)


@pytest.fixture
def served(framework: str, request: pytest.FixtureRequest) -> list[Replicas]:
    """The gangs with parameter servers: in lock-step or not."""
    names = ["gang", "unwaiting"] if framework == "mxnet" else ["unwaiting"]
    return [*map(request.getfixturevalue, names)]


_OTHER_NUMBERS = f"{_BEFORE}, worker [01] fetched other numbers than "


@_with_servers
@pytest.mark.parametrize(
    ("name", "size", "bytes_each"),
    [("null_step", 16 * 250, 2 * 4 * 16 * 250), ("sparse_read", 500, 4 * 32 * 64)],
)
def test_steps_that_compute_nothing_are_right(
    served: Sequence[Replicas], name: str, size: int, bytes_each: int
) -> None:
    """Before the timing and after it, twice; they move all parameters, or some rows of a table."""
    for gang in served:
        gang.bind(name, size)
        for _ in range(2):
            check = gang.used("check", 3)
            checks.refuse_wrong(check.answers, _BEFORE)
            check.refuse_silence(3, 2 * bytes_each)
            gang.used("round", 10).refuse_silence(10 - 1, 2 * bytes_each)
            checks.refuse_wrong(gang.request("verify_last"), _AFTER)


@_with_servers
@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("null_step", 32, _OTHER_NUMBERS + "the updates of"),
        ("null_step", 48, _OTHER_NUMBERS + "the updates of"),
        ("sparse_read", 96, _OTHER_NUMBERS + "32 rows of the table"),
    ],
    ids=["fetches nothing", "loses an update", "reads the step before"],
)
def test_steps_that_leave_something_out_are_found(
    served: Sequence[Replicas], name: str, size: int, message: str
) -> None:
    for gang in served:
        gang.bind(name, size)
        with pytest.raises(WrongResult, match=message):
            checks.refuse_wrong(gang.request("check", 3), _BEFORE)
