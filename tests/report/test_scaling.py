"""Work that several numbers of replicas shared: who is compared with whom, and by what."""

from dataclasses import replace
from typing import Any

import pytest

from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import Measurement
from fwbench.report.scaling import Scaling, Shared, is_scaling, scalings
from support.gangs import gang
from support.tables import tabled


def shared(replicas: int, time_s: float, alone: str = "torch eager", **facts: Any) -> Shared:
    """A step of training, by one replica or several."""
    gang_facts = (
        {} if replicas == 1 else {"gang": gang(replicas, time_s, **facts.pop("of_gang", {}))}
    )
    what = {
        "workload": "lenet_step",
        "framework": alone.split(maxsplit=1)[0],
        "execution": "eager",
        "device": "cpu",
        "direction": "train",
        "dtype": "float32",
        "size": 48,
        "threads": 1,
        **gang_facts,
        **facts,
    }
    return Shared(Measurement(CaseFacts.checked(what), (time_s,)))


def _only(*cases: Shared) -> Scaling:
    (work,) = scalings(cases)
    return work


def test_names_lose_what_says_how_many_processes_there_are() -> None:
    plain, gangs = {"sparse": "on"}, {"replicas": "2", "strategy": "allreduce"}
    case = replace(shared(1, 1.0).record, requested={**plain, **gangs})
    assert is_scaling(case)
    assert not is_scaling(replace(case, requested=plain))
    assert Shared(case).alone == "torch eager sparse=on"


def test_a_single_replica_begins_every_line() -> None:
    servers = {"of_gang": {"strategy": "ps_sync", "servers": 2}}
    wire = {"of_gang": {"network": "100mbit", "straggler": "1@20ms"}}
    wire["toggles"] = {"normalization": "synchronized"}
    section = _only(
        *(shared(4, 0.3), shared(1, 1.0), shared(2, 0.5), shared(2, 0.6, **servers)),
        *(shared(2, 0.6, **wire), shared(1, 9.0, "mx eager")),
    )
    assert {name: [*line] for name, line in section.lines.items()} == {
        "torch eager": [1, 2, 4],
        "mx eager": [1],
        "torch eager ps_sync servers=2": [1, 2],
        "torch eager 100mbit straggler=1@20ms synchronized": [1, 2],
    }
    assert section.title == "lenet_step cpu train float32 48"


def test_efficiency_is_the_gain_by_the_number_of_replicas() -> None:
    """Equal work: two replicas in 0.625 of the time are 80 % efficient."""
    one, two = shared(1, 1.0), shared(2, 0.625)
    assert _only(one, two).efficiency(two) == pytest.approx(0.8)
    assert _only(one, two).efficiency(one) is None


def test_efficiency_is_by_rates_where_workers_do_not_wait_for_each_other() -> None:
    """The first of them is done after half the time, and the others are not."""
    one, two = shared(1, 1.0, images_per_s=48.0), shared(2, 0.5, images_per_s=72.0)
    assert _only(one, two).efficiency(two) == pytest.approx(0.75)


@tabled
def test_no_efficiency_where_it_would_say_something_else(
    one: dict[str, Any], two: dict[str, Any]
) -> None:
    case = shared(2, 0.5, **two)
    assert _only(shared(1, 1.0, **one), case).efficiency(case) is None


def test_without_a_single_replica_there_is_no_efficiency() -> None:
    """Two against four says nothing of what an exchange takes from one."""
    two, four = shared(2, 0.5), shared(4, 0.25)
    assert _only(two, four).efficiency(four) is None


def test_batches_that_grow_with_the_replicas_are_one_work() -> None:
    """Each replica has the same share (-ofw_scaling=weak); the ideal is the same time."""
    one, two = shared(1, 1.0, size=24), shared(2, 1.25, size=48)
    section = _only(one, two)
    assert section.weak
    assert section.title == "lenet_step cpu train float32 24 a replica"
    assert section.efficiency(two) == pytest.approx(0.8)
    assert two.rate == pytest.approx(48 / 1.25)


def test_works_without_replicas_are_not_shown() -> None:
    assert scalings([shared(1, 1.0)]) == []


@pytest.mark.parametrize(
    ("facts", "step_s"),
    [({}, 5.0), ({"steps_per_epoch": 10}, 5.0), ({"steps_per_epoch": 10, "epoch_s": 5.0}, 0.5)],
)
def test_epochs_are_divided_into_steps(facts: dict[str, Any], step_s: float) -> None:
    """A table of replicas shows steps; the pass of a loader is not divided."""
    assert shared(2, 5.0, **facts).time_s == step_s
