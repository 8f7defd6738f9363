"""Trainings whose losses are another training's are found, and nobody else is accused."""

from typing import Any

import pytest

from fwbench.records import equality
from fwbench.records.facts import CaseFacts, Unequal
from fwbench.records.stored import from_json
from fwbench.terms.toggles import Toggle
from support.terminals import IN_FULL, entry, shown

#: Mean losses of five epochs of LeNet on MNIST, as frameworks have them: they differ as rounding,
#: amplified by training, makes them differ.
TORCH = (0.5466, 0.1546, 0.1011)
OTHERS = {"tensorflow": (0.5470, 0.1456, 0.0930), "mxnet": (0.5481, 0.1469, 0.0932)}
#: Of PyTorch, with every second update left out, and with half of each batch.
SKIPPING = (0.8214, 0.2621)
HALVING = (0.6110, 0.2002)


def training(framework: str = "torch", losses: Any = TORCH, **changes: Any) -> dict[str, Any]:
    """The facts of a training with these mean losses of its epochs, of 240 steps each."""
    epochs = [
        {"repetition": 1, "epoch": number, "seconds": 1.0, "train_loss": loss}
        for number, loss in enumerate(losses, 1)
    ]
    known = {"workload": "lenet", "direction": "train", "size": 200, "steps_per_epoch": 240}
    made = entry(framework, **{**known, "epochs": epochs, **changes})
    facts: dict[str, Any] = made["extra_info"]["fwbench"]
    return facts


def unequal(*facts: dict[str, Any], **known: Any) -> dict[str, Unequal]:
    loops = {record["framework"]: CaseFacts.unchecked(record) for record in facts}
    return equality.unequal(loops, **known)


def test_honest_frameworks_are_equal() -> None:
    honest = [training(), *(training(name, losses) for name, losses in OTHERS.items())]
    assert unequal(*honest) == {}


@pytest.mark.parametrize("losses", [SKIPPING, HALVING], ids=["updates left out", "half a batch"])
def test_a_framework_that_trains_otherwise_is_found(losses: Any) -> None:
    honest = [training(name, losses[:2]) for name, losses in OTHERS.items()]
    (name,) = result = unequal(training("liar", losses), *honest)
    assert name == "liar"
    assert (result[name].to, result[name].epoch) == ("tensorflow eager", 1)
    assert result[name].nats == pytest.approx(losses[0] - OTHERS["tensorflow"][0])
    assert result[name].allowed == equality.allowed_nats(losses[0], 240, 1) < result[name].nats


def test_of_two_that_differ_both_are() -> None:
    """Nobody knows which of them is right."""
    result = unequal(training(losses=TORCH[:2]), training("liar", SKIPPING))
    assert {name: difference.to for name, difference in result.items()} == {
        "torch": "liar eager",
        "liar": "torch eager",
    }


def test_a_training_alone_is_equal() -> None:
    operation = {**training("numpy"), "epochs": None}
    assert unequal(training(losses=SKIPPING), operation) == {}


@pytest.mark.parametrize(
    "other", [{"size": 100}, {"data": {"digest": "e"}}, {"steps_per_epoch": 100}, {"dtype": "x"}]
)
def test_other_work_is_not_compared(other: dict[str, Any]) -> None:
    assert unequal(training(losses=TORCH[:2]), training("liar", SKIPPING, **other)) == {}


def test_toggles_that_change_the_work_set_trainings_apart() -> None:
    known = {"mine": Toggle("mine", ("a", "b"), "a", "x", changes_work=True)}
    two = (
        training(losses=TORCH[:2], toggles={"mine": "a"}),
        training("liar", SKIPPING, toggles={"mine": "b"}),
    )
    assert unequal(*two, known=known) == {}
    assert unequal(*two, known={}).keys() == {"torch", "liar"}


def test_few_steps_leave_more_to_chance() -> None:
    """The allowed difference falls with the root of their number, and grows with the loss."""
    few, many = (equality.allowed_nats(1.0, steps, 1) for steps in (4, 400))
    assert few - many == pytest.approx(0.1 / 2 - 0.1 / 20)
    assert equality.allowed_nats(2.0, 4, 1) > few


def test_later_epochs_may_lie_further_apart() -> None:
    """An LSTM in PyTorch was seen to stumble in its third epoch of 30 steps, and others not."""
    assert equality.allowed_nats(1.0, 4, 2) == 3 * equality.allowed_nats(1.0, 4, 1)
    stumbling = training(losses=(0.6867, 0.6422, 0.5648), steps_per_epoch=30)
    assert unequal(stumbling, training("mxnet", (0.6855, 0.6416, 0.4792), steps_per_epoch=30)) == {}


def test_two_sides_of_a_comparison_differ_or_not() -> None:
    sides = [
        CaseFacts.unchecked(training(losses=losses)) for losses in (TORCH, TORCH[:2], SKIPPING)
    ]
    assert equality.difference(sides[0], sides[1]) == ""
    assert equality.difference(sides[1], sides[2]) == (
        "their loss curves are 0.27 nats apart (epoch 1), and 0.068 are allowed"
    )
    assert equality.difference(CaseFacts(), sides[0]) == ""


def entries() -> list[dict[str, Any]]:
    """Three loops, of which one is unequal and the fastest."""
    all_of = [training("liar", SKIPPING, completion_s=0.5)]
    all_of += [training(name, losses[:2]) for name, losses in OTHERS.items()]
    return [{"param": "p", "extra_info": {"fwbench": facts}} for facts in all_of]


def test_entries_are_annotated() -> None:
    noted = [*entries(), {"extra_info": {}}, {}]
    equality.annotate(noted)
    result = [entry.get("extra_info", {}).get("fwbench", {}).get("unequal") for entry in noted]
    assert result[0]["to"] == "tensorflow eager"
    assert result[1:] == [None] * 4


def test_what_is_unequal_is_in_no_ranking_of_the_terminal() -> None:
    lines = shown(*entries(), view=IN_FULL)
    at = next(i for i, line in enumerate(lines) if line.startswith("training loops: "))
    means = [line.split() for line in lines[at + 1 : at + len(OTHERS) + 2]]
    assert [line[:3] for line in means[:-1]] == [[name, "eager", "1.00x"] for name in OTHERS]
    assert " ".join(means[-1]) == "liar eager not ranked: 0 of 1 case, and 1 unequal"
    (message,) = [line for line in lines if ": unequal" in line]
    assert message == (
        "lenet cpu float32 200: unequal: liar eager: its loss curve is 0.27 nats from that of "
        "tensorflow eager (epoch 1), and 0.068 are allowed: it is not the same training, and left "
        "out of rankings"
    )
    assert lines[-1] == "Fastest here: 1 too close to call"


def test_runs_that_do_not_say_so_are_marked_when_they_are_read() -> None:
    """Files that were recovered from a journal do not have it."""
    stats = {"stats": {"data": [1.0]}}
    benchmarks = [{**entry, **stats, "fullname": f"t[{n}]"} for n, entry in enumerate(entries())]
    deviating, *others = from_json("run.json", {"benchmarks": benchmarks}).records
    assert deviating.facts.unequal is not None
    assert deviating.facts.unequal.to == "tensorflow eager"
    assert [record.facts.unequal for record in others] == [None, None]


def test_loops_that_are_equal_are_not_mentioned() -> None:
    honest = entries()[1:]
    equality.annotate(honest)
    assert not [line for line in shown(*honest, view=IN_FULL) if "unequal" in line]
