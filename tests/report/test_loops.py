"""Tables and notes of training loops at the end of a session."""

from collections.abc import Sequence
from typing import Any

import pytest

from fwbench.records.measurement import Measurement
from fwbench.records.stored import just_measured
from fwbench.report import training
from fwbench.report.terminal import training as shown
from fwbench.terms.toggles import TOGGLES, Toggle, known
from support.tables import tabled
from support.terminals import IN_FULL, entry, texts
from support.terminals import shown as screened


def loop(
    framework: str = "torch",
    execution: str = "eager",
    losses: tuple[float, ...] = (2.0, 1.0),
    step_s: float = 0.25,
    compile_s: float = 0.0,
    **changes: Any,
) -> dict[str, Any]:
    """The entry of a training loop.

    Args:
        losses: after each epoch of the first repetition.
        changes: other facts; a toggle that is among them was requested.
    """
    facts: dict[str, Any] = {
        "execution": execution,
        "workload": "lenet",
        "direction": "train",
        "size": 200,
        "toggles": {"workers": "0", "decay": "off"},
        "data": {"name": "mnist", "source": "real", "digest": "d"},
        "steps_per_epoch": 4,
        "warmup_epochs": 1,
        "epochs": [
            {"repetition": repetition, "epoch": number, "train_loss": loss / repetition}
            for repetition in (1, 2)
            for number, loss in enumerate(losses, 1)
        ],
        "epoch_s": 4 * step_s,
        "step_s": step_s,
        "compile_s": compile_s,
        "first_epoch_excess": 1.52,
        "images_per_s": 3200.0,
        "test_accuracy": [{"repetition": 1, "epoch": 2, "accuracy": 0.9712}],
        "cpu_utilization": 0.5,
        "tested_examples": 2000,
        "data_memory_bytes": 188 * 2**20,
        "host_memory_before_bytes": 2**30,
        "peak_host_memory_bytes": 2**30 + 9 * 2**20,
        **changes,
    }
    requested = {name: changes[name] for name in facts["toggles"] if name in changes}
    return entry(
        framework, params={"workload": "lenet", "framework": framework, **requested}, **facts
    )


def measured(records: Sequence[dict[str, Any]]) -> list[Measurement]:
    return [just_measured(record) for record in records]


def table(*records: dict[str, Any], width: int = 200) -> list[str]:
    (lines,) = shown.loops(measured(records), width, TOGGLES)
    return texts(lines)


def notes(*records: dict[str, Any]) -> str:
    return "\n".join(shown.notes(measured(records), TOGGLES))


def test_loops_have_a_table() -> None:
    warm = {"first_epoch_excess": None, "condition": "contended"}
    other = loop("mxnet", "hybridize", images_per_s=None, tokens_per_s=5e4, **warm)
    assert table(loop(), other) == [
        (
            "lenet cpu float32 200: mnist (real), 2 epochs of 4 steps, the first outside the "
            "statistics; tested on 2,000 examples"
        ),
        "                 epoch  1st epoch     per second  accuracy  CPUs  memory",
        "torch eager        1 s     +152 %   3,200 images   97.12 %   1.0   9 MiB",
        "mxnet hybridize    1 s             50,000 tokens   97.12 %   1.0   9 MiB  contended",
    ]


@pytest.mark.parametrize("width", [20, 40, 75])
def test_loops_are_told_in_words_where_a_table_has_no_room(width: int) -> None:
    """And no figure, and no doubt, is left out."""
    lines = table(loop(), loop("mxnet", "hybridize", condition="contended"), width=width)
    assert max(map(len, lines)) <= width
    text = " ".join(line.strip() for line in lines)
    assert text.endswith(
        "mxnet hybridize: epoch 1 s, 1st epoch +152 %, per second 3,200 images, accuracy 97.12 %, "
        "CPUs 1.0, memory 9 MiB, contended"
    )


def test_operations_are_no_loops() -> None:
    others = [{"extra_info": {}}, {"extra_info": {"fwbench": {}}}]
    assert shown.loops(measured(others), 80, TOGGLES) == []


def test_the_largest_deviation_of_loss_curves_is_found() -> None:
    records = [
        loop("torch"),
        loop("mxnet", losses=(2.0, 1.25)),
        loop("tensorflow", losses=(2.125, 1.0)),
    ]
    assert training.loss_curves(measured(records)) == [
        {
            "group": "lenet cpu float32 200",
            "max_deviation": 0.25,
            "epoch": 2,
            "between": ["torch eager", "mxnet eager"],
        }
    ]
    assert "at most 0.25 nats apart (torch eager and mxnet eager, epoch 2)" in notes(*records)


@tabled
def test_curves_of_other_work_are_not_compared(changes: dict[str, Any]) -> None:
    loops = [loop(), loop("mxnet", losses=(9.0, 9.0), **changes)]
    assert training.loss_curves(measured(loops)) == []


def test_compiling_pays_after_some_steps_or_never() -> None:
    """The whole steps in which the gain is as large as the cost."""
    records = [
        loop(step_s=0.25),
        loop(execution="compile", step_s=0.125, compile_s=1.0625),
        loop("mxnet", "hybridize", step_s=0.125, compile_s=1.0),
        loop("tensorflow", "eager", step_s=0.25),
        loop("tensorflow", "xla", step_s=0.25, compile_s=1.0),
    ]
    assert training.break_even(measured(records)) == [
        {
            "group": "lenet cpu float32 200",
            "name": "torch compile",
            "compile_s": 1.0625,
            "steps": 9,
        },
        {
            "group": "lenet cpu float32 200",
            "name": "tensorflow xla",
            "compile_s": 1.0,
            "steps": None,
        },
    ]
    text = notes(*records)
    assert "torch compile: compiling (1.06 s) breaks even after 9 steps" in text
    assert "tensorflow xla: compiling (1 s) does not pay: no faster than eager" in text


def test_loops_are_compared_with_those_of_the_same_toggles() -> None:
    """A loop with four workers does not pay for what one without has gained."""
    toggles = {"workers": "4", "decay": "off"}
    records = [loop(), loop(execution="compile", toggles=toggles, workers="4")]
    assert training.break_even(measured(records)) == []
    assert any("torch compile workers=4" in line for line in table(*records))


def _with(name: str, value: str, **changes: Any) -> dict[str, Any]:
    """A loop for which a toggle was asked for."""
    return loop(toggles={"workers": "0", "decay": "off", name: value}, **{name: value}, **changes)


def test_a_toggle_that_is_not_known_here_is_a_part_of_the_name() -> None:
    """A newer fwbench, or a framework that is not installed, may have measured it."""
    records = [_with("flux", "low"), _with("flux", "high", losses=(2.0, 1.5))]
    (curve,) = training.loss_curves(measured(records))
    assert curve["between"] == ["torch eager flux=low", "torch eager flux=high"]
    assert curve["max_deviation"] == 0.5


def test_loops_of_other_values_of_an_unknown_toggle_do_not_break_even() -> None:
    records = [_with("flux", "low"), _with("flux", "high", execution="compile", step_s=0.1)]
    assert training.break_even(measured(records)) == []
    assert len(training.break_even(measured([*records, _with("flux", "high")]))) == 1


@pytest.mark.parametrize("changes_work", [True, False])
def test_a_toggle_says_whether_it_changes_the_work(changes_work: bool) -> None:
    flux = Toggle("flux", ("low", "high"), "", "m", process=True, changes_work=changes_work)
    records = [_with("flux", "low"), _with("flux", "high")]
    curves = training.loss_curves(measured(records), known([flux]))
    names = [["torch eager flux=low", "torch eager flux=high"]]
    assert [curve["between"] for curve in curves] == ([] if changes_work else names)


def test_a_parameter_of_the_user_s_own_is_not_in_the_name() -> None:
    made = loop()
    made["params"]["mine"] = "x"
    assert table(made)[-1].startswith("torch eager    1 s")


def test_loops_beside_operations_are_left_out() -> None:
    """Their tables stand alone, or where all is shown."""
    said = "training: median times (-v: rates, accuracy, memory)"
    assert said in screened(loop(), entry("torch"))
    assert said not in screened(loop())
    assert said not in screened(loop(), entry("torch"), view=IN_FULL)
