"""``fwbench report --sentiment-post``: statements and settings of the PyTorch / MXNet post."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs_of_2020 import FAILS, HOLDS, SYNTHETIC, UNKNOWN, Entry, model

from fwbench import cli
from fwbench_extras.studies import post_2018
from support.launched_runs import write
from support.reports import case, run_of
from support.section_parts import rows

_USAGE_ERROR = 2
_FIRST, _OSCILLATES = (
    "the first epoch takes 30 to 900 % longer",
    "losses oscillate after 17 epochs",
)


def _lstm(framework: str = "torch", epoch_s: float = 1.0, **facts: Any) -> Entry:
    size = facts.setdefault("size", 64)
    facts.setdefault("steps_per_epoch", 48_000 // size)
    losses = facts.pop("losses", ())
    made: Entry = model("sentiment_lstm", framework)(epoch_s, **facts)
    if losses:
        made["extra_info"]["fwbench"]["epochs"] = [
            {"repetition": 1, "epoch": number, "seconds": epoch_s, "train_loss": loss}
            for number, loss in enumerate(losses, 1)
        ]
    return made


def _judged(*entries: Entry) -> dict[str, tuple[str, str]]:
    section, *_ = post_2018.sections([run_of(*entries)])
    return {row["statement"]: (row["verdict"], row["today"]) for row in rows(section)}


@pytest.mark.parametrize(
    ("firsts_s", "verdict", "ratios"),
    [
        ((1.3, 10.0), HOLDS, ("1.30x", "10.00x")),
        ((1.2, 10.1), FAILS, ("1.20x", "10.10x")),
        ((1.2, 2.0), UNKNOWN, ("1.20x", "2.00x")),
    ],
)
def test_first_epochs_of_cold_processes_judge(
    firsts_s: tuple[float, float], verdict: str, ratios: tuple[str, str]
) -> None:
    torch, mxnet = (
        _lstm(framework, first_s=first_s)
        for framework, first_s in zip(("torch", "mxnet"), firsts_s, strict=True)
    )
    least, most = ratios
    assert _judged(torch, mxnet)[_FIRST] == (
        verdict,
        f"{least} (sentiment_lstm torch eager 64) to {most} (sentiment_lstm mxnet eager 64)",
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"first_in_process": False},
        {"condition": "contended"},
        {"steps_per_epoch": 3},
        {"data": {**SYNTHETIC, "train": 48_000}},
        {"values_s": ()},
    ],
    ids=["warm", "contended", "cut short", "generated", "one epoch"],
)
def test_what_judges_no_first_epoch(facts: dict[str, Any]) -> None:
    verdict, text = _judged(_lstm(first_s=5.0, **facts))[_FIRST]
    assert verdict == UNKNOWN
    assert text.startswith("needs two or more whole epochs of a loop that is the first case")
    assert ("1 contended case left out" in text) == ("condition" in facts)


_FALLING = [1.0 - 0.04 * epoch for epoch in range(20)]


@pytest.mark.parametrize(
    ("losses", "verdict", "text"),
    [
        ([*_FALLING[:17], 0.5, 0.4, 0.45], HOLDS, "torch eager 64: from epoch 18 on of 20"),
        ([*_FALLING[:16], 0.5, 0.4, 0.3, 0.2], FAILS, "torch eager 64: from epoch 17 on of 20"),
        (_FALLING, FAILS, "torch eager 64: never of 20"),
    ],
    ids=["after 17", "after 16", "never"],
)
def test_losses_that_rise_after_17_epochs_oscillate(
    losses: list[float], verdict: str, text: str
) -> None:
    assert _judged(_lstm(losses=losses))[_OSCILLATES] == (verdict, text)


def test_few_epochs_do_not_show_oscillation() -> None:
    verdict, text = _judged(_lstm(losses=_FALLING[:19]))[_OSCILLATES]
    assert (verdict, text[:30]) == (UNKNOWN, "needs whole epochs, 20 of them")


def test_settings_are_compared_one_at_a_time() -> None:
    """By the time of an example, in one framework, execution and run."""
    run = run_of(
        _lstm(epoch_s=1.0),
        _lstm(epoch_s=0.5, size=256),
        _lstm(epoch_s=2.0, toggles={"workers": "2"}, toggles_asked={"workers": "2"}),
        _lstm(epoch_s=9.0, toggles={"workers": "2"}, toggles_asked={"workers": "2"}, size=512),
        _lstm("mxnet", epoch_s=4.0, toggles={"sparse": "on"}, toggles_asked={"sparse": "on"}),
        _lstm("mxnet", epoch_s=5.0, values_s=(5.0, 5.0)),
        _lstm("mxnet", epoch_s=5.0, size=1024, condition="contended"),
    )
    _, settings = post_2018.sections([run])
    assert [(row["case"], row["setting"], row["ratio"]) for row in rows(settings)] == [
        ("torch eager", "batch 256, not 64", "0.50x"),
        ("torch eager", "workers 2, not 0", "2.00x"),
        ("torch eager", "batch 512, not 64", "4.54x"),
        ("mxnet eager", "sparse on, not off", "0.80x"),
    ]
    assert [row["interval"] for row in rows(settings)][-2:] == ["4.28x to 4.81x", ""]


def test_runs_without_such_trainings_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run.json", case())
    arguments = ["report", "run.json", "--sentiment-post", "--markdown", "x.md"]
    assert cli.main(arguments) == _USAGE_ERROR
    assert "these runs have none; measure some: pytest" in capsys.readouterr().err
