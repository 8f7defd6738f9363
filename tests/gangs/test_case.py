"""A case that a gang does: what enters its times, what is recorded, and what fails it."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.cases import learning
from fwbench.errors import TooLargeToVerify, WrongGradient, WrongResult, WrongTraining
from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Place, RoleCopies
from fwbench.gangs import loops
from fwbench.gangs.case import GangCase
from fwbench.gangs.pool import case_kinds
from fwbench.gangs.rounds import GangClock
from fwbench.gangs.shares import Task, TrainedShare
from fwbench.plugin import host
from fwbench.plugin.host import FixtureBenchmark
from fwbench.records.facts import CaseFacts
from fwbench.terms.presets import Schedule
from fwbench.testing import FakeFramework
from fwbench.workloads.collectives import (
    all_gather,
    all_reduce,
    broadcast,
    null_step,
    reduce_scatter,
)
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import Conv, Dense, Flatten, MaxPool
from fwbench.workloads.models.networks import TRAININGS
from fwbench.workloads.models.reference import gradients
from fwbench.workloads.models.stable_weights import tie_breaks_flipped
from fwbench.workloads.models.trajectories import expected_losses
from fwbench.workloads.objective import SGD, Objective
from support import fakes
from support.fake_learner import FOUND, Trainer, data_set
from support.gangs import ScriptedGang
from support.tables import tabled

_MLP = next(training for training in TRAININGS if training.name == "mlp")
_GANG = (("replicas", "2"), ("strategy", "allreduce"))


def _case(gang: Any, workload: Any = all_reduce, **changes: Any) -> GangCase:
    """A case that this gang does, with pytest-benchmark's own fixture."""
    facts = {"toggles": _GANG, "size": 1000, **changes}
    disabled = facts.pop("disabled", False)
    cell = fakes.cell(workload, **facts)
    clock, framework = GangClock(), FakeFramework()
    fixture = fakes.fixture(clock, cell, max_time=0.5, disabled=disabled)
    made = case_kinds(cell)[type(workload)](
        cell, framework, framework.manifest("Fake CPU"), clock, FixtureBenchmark(fixture), 0.1
    )
    return made.with_gangs(lambda _: gang, "local", 1)


def test_replicas_may_choose_between_elements_of_windows_that_are_as_good_as_equal() -> None:
    """A gradient depends on the choice; one that chooses neither is wrong."""
    graph = sequential(Conv(2, 1, relu=False), MaxPool(), Flatten(), Dense(3, relu=False))
    drawn = Objective("nearly_equal", graph, (4, 4, 1), 3, SGD())
    (kernel, bias), *others = drawn.initial()
    weights = [[1e-7 * kernel, bias + 1.0], *others]
    objective = replace(drawn, weights=weights)
    ((x, labels),) = objective.check_batches(2, 1)
    given = (objective.graph, weights, x.astype(float), labels)
    _, of_nodes = gradients(*given, layer=tie_breaks_flipped(1e-5))
    chosen = [array for arrays in of_nodes for array in arrays]
    share: Any = object.__new__(TrainedShare)
    share.task = Task("nearly_equal", 2, "cpu", "eager", "float32", sparse=False, synchronized=True)
    share.member = SimpleNamespace(place=Place(0, 2, "allreduce"))
    share._training = objective
    share._learner = SimpleNamespace(trained=lambda nodes: [a for arrays in nodes for a in arrays])
    for factor, wrong in ((1.0, False), (4.0, True)):
        share._model = SimpleNamespace(gradients=lambda: [factor * chosen[0], *chosen[1:]])  # noqa: B023
        found = share._exchanged()
        assert bool(found["wrong_gradient"]) == wrong
        assert wrong or found["gradient_error"] > 0.01


@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_repeat_what_was_timed(replicas: int) -> None:
    """On batches by turns; updates that timed steps have left out are missing in their weights."""
    share: Any = object.__new__(TrainedShare)
    share.member = SimpleNamespace(place=Place(0, replicas, "allreduce"))
    share._learner = Trainer().learner(Job(_MLP, "cpu", "eager", "float32", 8))
    share._batches = share._placed = [*_MLP.check_batches(8, learning.TURNS)]
    share._made = 0
    assert share._wrong_steps() == ""  # of epochs
    for _ in range(10):
        share._step()
    assert share._wrong_steps() == ""
    share._learner.updates = 7
    assert share._wrong_steps().startswith("after the timing, 10 timed steps have not trained")


def _facts(case: GangCase) -> CaseFacts:
    return CaseFacts.checked(case.benchmark.extra_info["fwbench"])


def test_the_control_plane_is_in_no_time() -> None:
    """Every question takes the controller 50 ms; a step takes 1/256 s by worker 0's clock."""
    gang = ScriptedGang(control_s=0.05)
    case = _case(gang)
    case.measure()
    record = host.record(case.benchmark)
    assert record is not None
    assert {*record["entry"]["stats"]["data"]} == {2.0**-8}
    assert gang.clock.now_s > 0.5
    facts = _facts(case)
    assert facts.completion_s == 2.0**-8
    assert facts.statistic == "median"


def test_rounds_have_ten_steps_at_least_and_fill_the_time() -> None:
    """A step of 1/256 s: 13 of them are 50 ms, and ten such rounds half a second."""
    gang = ScriptedGang()
    _case(gang).measure()
    rounds = [request[1] for request in gang.requests if request[0] == "round"]
    assert rounds == [1, 3, *[13] * 12]  # a first step, a pilot, two to warm up, ten timed
    slow = ScriptedGang(step_s=(0.25, 0.25))
    _case(slow).measure()
    assert [request[1] for request in slow.requests if request[0] == "round"][2:] == [10] * 6


def test_everything_is_asked_in_order() -> None:
    """Built, taken a step, checked, timed, looked at, checked again."""
    gang = ScriptedGang()
    _case(gang).measure()
    kinds = [request[0] for request in gang.requests]
    assert [kind for n, kind in enumerate(kinds) if kind != kinds[n - 1]] == [
        *("bind", "round", "check", "round", "verify_last", "check")
    ]


def test_what_is_recorded_of_a_gang() -> None:
    """Replica by replica; the bus bandwidth is nccl-tests'."""
    case = _case(ScriptedGang())
    case.measure()
    facts = _facts(case)
    gang = facts.gang
    assert gang is not None
    assert (gang.replicas, gang.strategy, gang.engine, gang.network) == (
        *(2, "allreduce", "local", "loopback"),
    )
    assert [rank.step_s for rank in gang.ranks] == [2.0**-8, 2.0**-7]
    assert gang.skew == 1.0
    assert gang.least_bytes_per_step == 2 * 4000
    assert gang.bus_bytes_per_s == 4000 * 2.0**8
    assert gang.verified.steps == gang.verified.steps_timed == 3
    assert gang.start_s == 1.5
    assert facts.toggles is not None
    assert facts.toggles["replicas"] == "2"
    assert facts.threads == 1


@pytest.mark.parametrize(
    ("collective", "sent", "bus"),
    [(reduce_scatter, 1, 0.5), (all_gather, 1, 0.5), (broadcast, 1, 1.0)],
    ids=lambda value: getattr(value, "name", None),
)
def test_bus_bandwidths_are_those_of_nccl_tests(collective: Any, sent: int, bus: float) -> None:
    """An array of 4000 bytes every 1/256 s."""
    case = _case(ScriptedGang(), collective)
    case.measure()
    gang = _facts(case).gang
    assert gang is not None
    assert gang.least_bytes_per_step == sent * 4000
    assert gang.bus_bytes_per_s == bus * 4000 * 2.0**8


def test_nothing_is_timed_where_benchmarks_are_disabled() -> None:
    """It is checked, and has no record."""
    gang = ScriptedGang()
    case = _case(gang, disabled=True)
    case.measure()
    assert [request[0] for request in gang.requests] == ["bind", "round", "check", "round"]
    assert case.benchmark.extra_info == {}


def test_replicas_that_send_too_little_fail() -> None:
    """Before anything is timed; the gang is ended, as its state is unknown."""
    gang = ScriptedGang(answers={"check": [{"sent_bytes": 4000}, {"sent_bytes": 0}]})
    message = (
        "3 steps of 2 replicas sent 4,000 bytes, and an exchange of 1,000 numbers takes 24,000"
    )
    fakes.fails(_case(gang), WrongResult, message)
    assert not gang.alive
    assert [request[1] for request in gang.requests if request[0] == "round"] == [1]


def test_a_gang_that_memory_does_not_hold_is_refused() -> None:
    """By its arrays and by what this process has; nothing is started."""
    gang = ScriptedGang()
    message = r"^2 replicas take about .* GiB of memory, and 90 % of what is free are .* smaller"
    fakes.fails(_case(gang, size=10**12), TooLargeToVerify, message)
    assert gang.requests == []


def test_a_batch_that_memory_does_not_hold_is_refused() -> None:
    """By what the layers answer to a share of it; the parameters alone are few."""
    gang = ScriptedGang()
    case = _case(gang, _MLP.step, direction="train", size=10**10)
    fakes.fails(case, TooLargeToVerify, r"^2 replicas take about .* smaller")
    assert gang.requests == []


def _trained(**changes: Any) -> list[dict[str, Any]]:
    """The answers of two replicas that train as one would."""
    expected = expected_losses(_MLP, 8, update="dense")[:10]
    return [
        {
            "losses": [loss + sign * 0.1 for loss in expected],
            "weights": [*range(11)],
            "gradient_error": 1e-7 if sign < 0 else None,
            "wrong_gradient": "",
            "notes": {},
            "sent_bytes": None,
            **(changes if sign > 0 else {}),
        }
        for sign in (-1, 1)
    ]


def _train(answers: list[dict[str, Any]], left: Any = ((6, 7), (6, 7)), **alone: Any) -> GangCase:
    looked = [{"weights": [*weights]} for weights in left]
    gang = ScriptedGang(answers={"check": answers, "verify_last": looked}, alone=alone)
    return _case(gang, _MLP.step, direction="train", size=8)


def test_the_first_epoch_of_replicas_is_cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trained before it; the copies are checked once all epochs are over."""
    monkeypatch.setattr(loops, "read", lambda *_: data_set())
    epoch = {
        "seconds": 2.0,
        "cpu_s": 1.0,
        "preempted": 0,
        "sent_bytes": 10**7,
        "losses": [2.0, 1.0],
    }
    answers = {
        "epoch": [epoch, epoch],
        "examine": [{"loss": 1.0, "accuracy": 0.5, "seconds": 0.5}],
        "check": _trained(),
        "verify_last": [{"weights": [6, 7]}] * 2,
    }
    gang = ScriptedGang(answers=answers)
    facts = {"direction": "train", "size": 8, "schedule": Schedule(2), "data": FOUND}
    case = _case(gang, _MLP, **facts)
    case.measure()
    kinds = [kind for kind, *_ in gang.requests if kind != "examine"]
    assert kinds == ["bind", "epoch", "epoch", "verify_last", "check"]
    record = _facts(case)
    assert record.gang is not None
    assert (record.gang.verified.steps, record.gang.verified.steps_timed) == (10, 10)
    assert (record.first_epoch_excess, record.compile_s) == (0.0, None)  # eager
    assert (record.parameters, record.checked_steps) == (_MLP.parameters, 10)


def test_replicas_that_train_as_one_pass() -> None:
    """Their mean losses are the reference's, and their weights equal."""
    case = _train(_trained())
    case.measure()
    facts = _facts(case)
    assert facts.gang is not None
    checked = facts.gang.verified
    assert checked.weights_equal
    assert checked.shard_loss_spread == pytest.approx(0.2)
    assert facts.max_loss_deviation == pytest.approx(0.0, abs=1e-9)
    assert facts.images_per_s == pytest.approx(8 * 2**8)
    assert (facts.parameters, facts.checked_steps) == (_MLP.parameters, 10)
    assert facts.gang.alone_s == 2.0**-8
    assert facts.gang.communication_share == 0.0


@pytest.mark.parametrize("alone", [{"trained": False}, {"sent_bytes": 10**8}, {"seconds": 1.0}])
def test_steps_without_an_exchange_that_are_something_else_are_not_recorded(alone: Any) -> None:
    """They do not train, they exchange, or they take much longer than steps with an exchange."""
    case = _train(_trained(), **alone)
    case.measure()
    facts = _facts(case).gang
    assert facts is not None
    assert facts.alone_s is facts.communication_share is None


@tabled
def test_replicas_that_train_otherwise_fail(changes: dict[str, Any], message: str) -> None:
    fakes.fails(_train(_trained(**changes)), WrongTraining, f"^before the timing, {message}")


def test_a_wrong_gradient_comes_first() -> None:
    """It says more than the losses that follow from it."""
    message = "^before the timing, what 2 replicas exchange is wrong: twice as large"
    answers = _trained(wrong_gradient="twice as large", losses=[2.0] * 10)
    fakes.fails(_train(answers), WrongGradient, message)


def test_an_update_that_all_leave_out_is_noticed() -> None:
    answers = _trained()
    for answer in answers:
        answer["weights"] = [0, 1, 1, *range(3, 11)]
    message = "^before the timing, an update is missing: step 2 left all weights of worker 0"
    fakes.fails(_train(answers), WrongTraining, message)


def test_replicas_with_the_same_examples_fail() -> None:
    """Each would compute the gradient of the whole batch, and need not exchange it."""
    answers = _trained()
    answers[0]["losses"] = answers[1]["losses"]
    fakes.fails(_train(answers), WrongTraining, "all 2 replicas have the same losses")


@tabled
def test_weights_after_the_timing_leave_no_record(left: Any, message: str) -> None:
    """They differ, or are those of before: the timed steps were other ones than those checked."""
    case = _train(_trained(), left=left)
    with pytest.raises(WrongTraining, match=f"^after the timing, {message}"):
        case.measure()
    assert host.record(case.benchmark) is None


_SERVED = (("replicas", "2"), ("strategy", "ps_sync"), ("servers", "1"))
_ASYNCHRONOUS = (("replicas", "2"), ("strategy", "ps_async"), ("servers", "1"))
_SERVER = (
    Place(0, 2, "ps_sync", role="server", servers=1),
    {"host": "here", "cpus": 2, "threads": 1},
)


def test_servers_are_part_of_a_gang() -> None:
    """A worker sends all to them and gets all from them; what they use is recorded."""
    gang = ScriptedGang(answers={"check": [{"sent_bytes": 24_000}] * 2}, serving=[_SERVER])
    case = _case(gang, toggles=_SERVED)
    assert [place.name for place in case._composition.places] == [
        *("worker 0 of 2", "worker 1 of 2", "server 0 of 1")
    ]
    gang.composition = case._composition
    case.measure()
    result = _facts(case).gang
    assert result is not None
    assert (result.replicas, result.servers, result.equal_work) == (2, 1, True)
    assert result.least_bytes_per_step == 2 * 2 * 4000
    assert result.verified.sent_bytes == 2 * 24_000 + 6400
    (server,) = result.serving
    assert (server.role, server.rank, server.preempted) == ("server", 0, 1)
    assert server.cpu_s == pytest.approx(1 / 130)
    assert server.sent_bytes == pytest.approx(6400 / 130)
    assert result.bytes_per_step == pytest.approx(2 * gang.sent_bytes + 6400 / 130)


def test_servers_that_are_sent_too_little_fail() -> None:
    """The bytes of all processes together count."""
    gang = ScriptedGang(answers={"check": [{"sent_bytes": 20_000}] * 2}, serving=[_SERVER])
    message = (
        "3 steps of 2 replicas sent 46,400 bytes, and an exchange of 1,000 numbers takes 48,000"
    )
    fakes.fails(_case(gang, toggles=_SERVED), WrongResult, message)


def _null_step(sent_bytes: int, *, wrong: str = "", left: str = "") -> GangCase:
    """Two workers, each of which has 1,600 numbers to fetch and to send."""
    check = [{"sent_bytes": None, "wrong": difference} for difference in ("", wrong)]
    answers = {"check": check, "verify_last": [{"wrong": ""}, {"wrong": left}]}
    gang = ScriptedGang(answers=answers, sent_bytes=sent_bytes, serving=[_SERVER])
    return _case(gang, null_step, size=1600, toggles=_SERVED)


def test_null_steps_are_recorded() -> None:
    """Servers update what they have, but nothing that is trained."""
    case = _null_step(12_800)
    case.measure()
    result = _facts(case).gang
    assert result is not None
    assert case._composition.updating
    assert result.least_bytes_per_step == 2 * 2 * 6400
    assert (result.verified.steps, result.verified.updates) == (3, None)


def test_each_kind_of_role_holds_parameters_of_its_own() -> None:
    """Servers divide theirs; the machine is asked for what all roles hold together."""
    case = _null_step(0)
    case.framework.null_step_copies = RoleCopies(worker=3.0, servers=2.0, coordinator=1.0)
    places = len(case._composition.places)
    assert case.role_numbers * places == (2 * 3 + 2 + 1) * 1600


def test_what_is_wrong_in_the_check_of_null_steps_fails_them() -> None:
    fakes.fails(_null_step(12_800, wrong="it is"), WrongResult, "^before the timing, it is$")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (_null_step(11_000), "130 timed steps of .* sent 2,866,400 bytes, .* takes 3,072,000 at "),
        (_null_step(12_800, left="it is"), "^after the timing, it is$"),
    ],
    ids=["sent too little", "fetched wrongly"],
)
def test_wrong_null_steps_in_the_timing_leave_no_record(case: GangCase, message: str) -> None:
    """The timed steps were other ones than the checked steps."""
    with pytest.raises(WrongResult, match=message):
        case.measure()
    assert host.record(case.benchmark) is None


def _asynchronous(step_s: Sequence[float] = (2.0**-8,), **changes: Any) -> GangCase:
    """The report of a coordinator about two workers that have taken steps of batches of 4 each."""
    answers = {
        "alone": expected_losses(_MLP, 4, update="dense")[:10],
        "weights": [*range(11)],
        "losses": [[2.5 - 0.1 * step, 2.4 - 0.1 * step] for step in range(10)],
        "gradient_error": 1e-7,
        "wrong_gradient": "",
        "updates": [20, 20],
        "notes": {},
        "sent_bytes": None,
        **changes,
    }
    look = [{"updates": changes.get("left", [1000, 1000])}]
    gang = ScriptedGang(answers={"check": [answers], "verify_last": look}, step_s=step_s)
    return _case(gang, _MLP.step, direction="train", size=8, toggles=_ASYNCHRONOUS)


def test_workers_that_do_not_wait_are_recorded_as_unequal_work() -> None:
    """One of them alone has the reference's losses; together they learn."""
    case = _asynchronous()
    case.measure()
    facts = _facts(case)
    assert facts.gang is not None
    assert not facts.gang.equal_work
    assert facts.gang.verified.updates == 20
    assert facts.gang.verified.gradient_error == 1e-7
    assert facts.gang.verified.weights_equal is None
    assert facts.max_loss_deviation == pytest.approx(0.0, abs=1e-9)
    assert facts.images_per_s == pytest.approx(8 * 2**8)


def test_the_rates_of_workers_that_do_not_wait_are_added() -> None:
    """One of them is four times as slow: two clocks, and half of the batch by each."""
    case = _asynchronous(step_s=(2.0**-8, 2.0**-6))
    case.measure()
    assert _facts(case).images_per_s == pytest.approx(4 * 2**8 + 4 * 2**6)


@tabled
def test_workers_that_do_not_wait_and_do_something_else_fail(
    changes: dict[str, Any], message: str
) -> None:
    fakes.fails(_asynchronous(**changes), WrongTraining, f"^before the timing, .*{message}")


def test_a_wrong_gradient_of_a_worker_that_does_not_wait_comes_first() -> None:
    """It says more than the losses that follow from it."""
    case = _asynchronous(wrong_gradient="twice as large", alone=[2.0] * 10)
    message = "^before the timing, what a worker sends is wrong: twice as large"
    fakes.fails(case, WrongGradient, message)


def test_updates_that_are_lost_in_the_timing_leave_no_record() -> None:
    """Servers have counted them."""
    case = _asynchronous(left=[1000, 998])
    with pytest.raises(WrongTraining, match=r"^after the timing, .* 1,000 updates, .* made 998"):
        case.measure()
    assert host.record(case.benchmark) is None
