"""The statements of 2020: what a run must hold for each to be judged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from runs_of_2020 import (
    ABOUT,
    EAGER,
    FAILS,
    FIRST_EPOCH,
    HOLDS,
    HYBRIDIZE,
    NAMES,
    NOISE,
    NOISE_TOO,
    STATEMENTS,
    SURE,
    SYNTHETIC,
    TRAINS_FASTER,
    TWICE,
    UNKNOWN,
    WAY_FASTER,
    XLA,
    Entry,
    every_device,
    few_operations,
    graph_lenet,
    judged,
    lenet,
    model,
    of_15,
    pair,
    pairs,
    section,
    sizes_of,
    statements,
)

from fwbench_extras.studies.report_2020 import published
from support.reports import case, column, run_of, runs_of

#: The same, the first size of every operation before the second of any.
_ACROSS = [
    (name, size)
    for several in itertools.zip_longest(
        *([(name, size) for name, size in ABOUT if name == entry] for entry in dict(ABOUT))
    )
    for name, size in filter(None, several)
]


_GRAPH_OF_15 = "tensorflow graph 1322 s, 98.64%"
_WHOLE_EPOCHS = (
    "as many whole epochs of the real MNIST: pytest benchmarks/test_training.py -k lenet "
    "--fw-train epochs=5"
)


def test_all_statements_are_judged() -> None:
    """Each once, in one order; of a run that has nothing of them none can be told."""
    judged_statements = statements(run_of(case("gemm", "torch")))
    assert [*judged_statements] == [WAY_FASTER, TRAINS_FASTER, HYBRIDIZE, XLA, FIRST_EPOCH, EAGER]
    assert {row["verdict"] for row in judged_statements.values()} == {UNKNOWN}
    assert {name: row["today"] for name, row in judged_statements.items()} == {
        WAY_FASTER: few_operations(0, 0),
        TRAINS_FASTER: f"needs LeNet in tensorflow graph and mxnet eager, {_WHOLE_EPOCHS}",
        HYBRIDIZE: f"needs LeNet in mxnet eager and mxnet hybridize, {_WHOLE_EPOCHS}",
        XLA: f"needs LeNet in tensorflow xla and tensorflow graph, {_WHOLE_EPOCHS}",
        FIRST_EPOCH: "needs two or more whole epochs of a loop that is the first case of its "
        "process: pytest benchmarks/test_training.py -k lenet --fw-train epochs=5",
        EAGER: "needs a model, or its step, in tensorflow eager and graph",
    }


@pytest.mark.parametrize(
    ("device", "statement", "figures"),
    [
        ("cpu", TRAINS_FASTER, f"15 epochs: mxnet eager 787 s, 98.71%; {_GRAPH_OF_15}"),
        ("cpu", HYBRIDIZE, "15 epochs: mxnet hybridize 714 s, 98.06%; mxnet eager 787 s, 98.71%"),
        ("cpu", XLA, f"15 epochs: tensorflow xla 1318 s, 98.64%; {_GRAPH_OF_15}"),
        ("gpu", XLA, "50 epochs: tensorflow xla 323 s, 98.76%; tensorflow graph 322 s, 98.77%"),
        ("cpu", FIRST_EPOCH, "the statement itself"),
        ("cpu", EAGER, "no figures were published"),
    ],
)
def test_statements_are_told_with_what_they_were_made_on(
    device: str, statement: str, figures: str
) -> None:
    run = run_of(case("gemm", "torch", device=NAMES[device]))
    assert statements(run, device=device)[statement]["2020"] == figures


@every_device
def test_published_operations_are_told_without_creation(device: str) -> None:
    run = run_of(case("gemm", "torch", device=NAMES[device]))
    verdict = statements(run, device=device)[WAY_FASTER]["2020"]
    title = f"2020, operations on the {device.upper()}: TensorFlow's time over MXNet's"
    cells = column(section([run], title), "2020, published (range)")
    means = {
        name: cell.value
        for name, cell in cells.items()
        if name not in {"from_numpy", "from_list"} and cell.value
    }
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    assert verdict == f"{means[low]:.2f}x ({low}) to {means[high]:.2f}x ({high})"


def test_notes_say_how_statements_are_judged() -> None:
    """All limits that decide are in the text under the table."""
    (note,) = section([run_of(case())], STATEMENTS).notes
    for limit in (
        *("less time for every operation", "2 times less on their geometric mean"),
        *("95 %", "0.1 points", "2 times the others"),
    ):
        assert limit in note


def test_way_faster_holds() -> None:
    """Every operation is; the text says by which, by both clocks."""
    entries = [*pairs(ABOUT, 2.0, 3.0), *pair("gemm", 50, 8.0, 30.0)]
    verdict = judged(WAY_FASTER, *entries)
    assert verdict["verdict"] == HOLDS
    # One of eleven sizes of gemm: 2 times the eleventh root of 4, and 3 times that of 10.
    assert verdict["today"] == (
        "less time for 9 of 9 operations: 2.00x (sigmoid) to 2.27x (gemm) until done; "
        "3.00x (sigmoid) to 3.70x (gemm) until returned"
    )


def test_way_faster_is_about_work_that_is_done() -> None:
    verdict = judged(WAY_FASTER, *pairs(ABOUT, 0.8, 20.0))
    assert verdict["verdict"] == FAILS
    assert verdict["today"].startswith("less time for 0 of 9 operations: 0.80x (")
    assert "20.00x (" in verdict["today"]


def _entries_of(ratios: Mapping[str, float], others: float) -> list[Entry]:
    """All sizes of all operations, TensorFlow ``ratios`` times as long as MXNet."""
    return [entry for name, size in ABOUT for entry in pair(name, size, ratios.get(name, others))]


@pytest.mark.parametrize(
    ("ratio", "verdict", "faster"),
    [(1.001, HOLDS, 9), (1.0, FAILS, 8), (0.999, FAILS, 8), (0.5, FAILS, 8)],
)
def test_way_faster_is_every_operation(ratio: float, verdict: str, faster: int) -> None:
    """One that does not take less time is enough, and the text says how many do."""
    actual = judged(WAY_FASTER, *_entries_of({"dot": ratio}, 4.0))
    assert actual["verdict"] == verdict
    assert actual["today"].startswith(
        f"less time for {faster} of 9 operations: {ratio:.2f}x (dot) to 4.00x ("
    )


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(2.001, HOLDS), (2.0, HOLDS), (1.999, FAILS), (1.5, FAILS)]
)
def test_way_faster_is_twice_as_fast(ratio: float, verdict: str) -> None:
    actual = judged(WAY_FASTER, *pairs(ABOUT, ratio))
    assert actual["verdict"] == verdict
    assert actual["today"].startswith(f"less time for 9 of 9 operations: {ratio:.2f}x (")


@pytest.mark.parametrize(
    ("ratios_of", "others", "verdict"),
    [
        # 2.05 over operations, 1.66 over sizes.
        ({"l2_normalize": 25.0}, 1.5, HOLDS),
        # 1.77 over operations, 2.06 over sizes.
        (dict.fromkeys(("dot", "gemm", "flatten", "l2_normalize"), 1.1), 2.6, FAILS),
        # Their arithmetic mean is 4.0.
        ({"dot": 28.0}, 1.0001, FAILS),
        # The middle one is 1.1.
        (dict.fromkeys(("dot", "gemm", "flatten", "relu"), 20.0), 1.1, HOLDS),
    ],
    ids=["few sizes", "many sizes", "arithmetic", "median"],
)
def test_operations_weigh_the_same(
    ratios_of: Mapping[str, float], others: float, verdict: str
) -> None:
    """However many sizes they have: the mean is the geometric one of the operations' means."""
    assert judged(WAY_FASTER, *_entries_of(ratios_of, others))["verdict"] == verdict


def test_sizes_of_an_operation_are_one_mean() -> None:
    """An operation takes less time if it does so on the geometric mean of its sizes."""
    slow = sizes_of()["l2_normalize"][0]
    verdict = judged(
        WAY_FASTER,
        *pairs([entry for entry in ABOUT if entry != ("l2_normalize", slow)], 4.0),
        *pair("l2_normalize", slow, 0.01),
    )
    # The fifth root of 4^4 / 100.
    assert verdict["verdict"] == HOLDS
    assert verdict["today"].startswith("less time for 9 of 9 operations: 1.21x (l2_normalize) to ")


@every_device
def test_the_figures_of_2020_keep_the_statement(device: str) -> None:
    """Who measures today what was published finds MXNet way faster, by the published means."""
    entries = [
        case(
            row["operation"],
            row["framework"],
            size=int(row["size"]),
            device=NAMES[device],
            completion_s=float(row["median_s"]),
            dispatch_s=float(row["median_s"]),
        )
        for row in published.rows("operations", device)
    ]
    judged_statements = statements(run_of(*entries), device=device)[WAY_FASTER]
    assert judged_statements["verdict"] == HOLDS
    then = judged_statements["2020"]
    assert judged_statements["today"] == (
        f"less time for 9 of 9 operations: {then} until done; {then} until returned"
    )


def test_way_faster_is_not_about_creation() -> None:
    creation = [(name, size) for name in ("from_numpy", "from_list") for size in sizes_of()[name]]
    verdict = judged(WAY_FASTER, *pairs(creation, 0.1), *pairs(ABOUT, 2.0))
    assert verdict["verdict"] == HOLDS
    assert "0.10x" not in verdict["today"]
    verdict = judged(WAY_FASTER, *pairs(creation, 9.0))
    assert (verdict["verdict"], verdict["today"]) == (UNKNOWN, few_operations(0, 0))


@pytest.mark.parametrize(
    ("number", "done", "verdict"),
    [(69, 2.0, HOLDS), (69, 1.0, FAILS), (68, 2.0, UNKNOWN), (68, 1.0, UNKNOWN)],
)
def test_half_of_the_sizes_are_enough(number: int, done: float, verdict: str) -> None:
    assert len(_ACROSS) == len(ABOUT) == 137
    actual = judged(WAY_FASTER, *pairs(_ACROSS[:number], done))
    assert actual["verdict"] == verdict
    if verdict == UNKNOWN:
        assert actual["today"] == few_operations(9, number)


@pytest.mark.parametrize("missing", [*dict(ABOUT)])
def test_all_operations_are_needed(missing: str) -> None:
    others = [(name, size) for name, size in ABOUT if name != missing]
    verdict = judged(WAY_FASTER, *pairs(others, 4.0))
    assert verdict["verdict"] == UNKNOWN
    assert verdict["today"] == few_operations(8, len(others))
    missing_pair = pair(missing, sizes_of()[missing][-1], 4.0)
    verdict = judged(WAY_FASTER, *pairs(others, 4.0), missing_pair[0])
    assert verdict["verdict"] == UNKNOWN
    assert judged(WAY_FASTER, *pairs(others, 4.0), *missing_pair)["verdict"] == HOLDS


def test_intervals_hold_their_ratios() -> None:
    verdict = judged(TRAINS_FASTER, graph_lenet(NOISE), lenet(values_s=NOISE_TOO))["today"]
    match = re.search(r": (\S+)x \((\S+)x to (\S+)x\)$", verdict)
    assert match is not None
    ratio, low, high = map(float, match.groups())
    assert low < ratio < high
    assert low < 1 < high


def test_the_accuracy_is_that_of_the_median_training() -> None:
    def repeated(execution: str, values_s: Sequence[float], *accuracies: float) -> Entry:
        tested = [
            {"repetition": number, "epoch": epoch, "accuracy": accuracy - (5 - epoch) / 10}
            for number, accuracy in enumerate(accuracies, 1)
            for epoch in (1, 5)
        ]
        return lenet("mxnet", execution, values_s, test_accuracy=tested)

    verdict = judged(
        HYBRIDIZE,
        repeated("eager", TWICE, 0.9, 0.98, 0.99),
        repeated("hybridize", SURE, 0.97, 0.99, 0.9),
    )
    assert verdict["verdict"] == HOLDS
    assert verdict["today"].endswith("accuracy 98.00% and 97.00%")


_QUICK = lenet("mxnet", "eager", SURE, data=SYNTHETIC, steps_per_epoch=10)
_SLOW = [10 * seconds for seconds in NOISE]


def _hybridized(
    eager_s: Sequence[float], hybridized_s: Sequence[float], *accuracies: float, **facts: Any
) -> list[Entry]:
    """LeNet in MXNet, eager and hybridized, with the accuracy of either."""
    sides = (("eager", eager_s, accuracies[0]), ("hybridize", hybridized_s, accuracies[1]))
    return [
        lenet("mxnet", execution, values_s, accuracy=accuracy, **facts)
        for execution, values_s, accuracy in sides
    ]


@pytest.mark.parametrize(
    ("statement", "entries", "verdict"),
    [
        (TRAINS_FASTER, [graph_lenet((1.001,)), lenet(values_s=(1.0,))], UNKNOWN),
        # An epoch of 240 steps takes longer than one of 10.
        (TRAINS_FASTER, [graph_lenet(TWICE), _QUICK], UNKNOWN),
        # 0.9884 - 0.9874 is less than 0.001 in floating point.
        (HYBRIDIZE, _hybridized(TWICE, SURE, 0.9884, 0.9874), HOLDS),
        (HYBRIDIZE, _hybridized(TWICE, SURE, 0.5, 0.4, data=SYNTHETIC), UNKNOWN),
        (HYBRIDIZE, _hybridized(TWICE, (1.0,), 0.98, 0.98), UNKNOWN),
        # Fifteen epochs of one and five of the other.
        (HYBRIDIZE, _hybridized((2.0,) * 14, SURE, 0.987, 0.981), UNKNOWN),
        # An interval on one side of 1 is enough, however wide.
        (XLA, [lenet("tensorflow", "xla", _SLOW), graph_lenet(NOISE_TOO)], HOLDS),
        (XLA, [lenet("tensorflow", "xla", NOISE_TOO), graph_lenet(_SLOW)], FAILS),
    ],
    ids=[
        *("one value", "other steps", "ten images of ten thousand", "generated data"),
        *("few values", "other epochs", "slower in noise", "faster in noise"),
    ],
)
def test_verdicts(statement: str, entries: Sequence[Entry], verdict: str) -> None:
    assert judged(statement, *entries)["verdict"] == verdict


def test_a_missing_accuracy_is_what_is_missing() -> None:
    """Both trainings are there, and more of them would not help."""
    verdict = judged(HYBRIDIZE, lenet("mxnet", "eager"), lenet("mxnet", "hybridize", accuracy=None))
    assert "needs LeNet" not in verdict["today"]


def _batch(size: int, first_s: float) -> Entry:
    made: Entry = model("sentiment_lstm", "mxnet")(
        1.0, first_s=first_s, size=size, steps_per_epoch=48_000 // size
    )
    return made


@pytest.mark.parametrize(
    ("entries", "verdict"),
    [
        (
            [_batch(64, 3.0), _batch(256, 1.0)],
            "1.00x (sentiment_lstm mxnet eager 256) to 3.00x (sentiment_lstm mxnet eager 64)",
        ),
        (
            [lenet(first_s=3.0, toggles_asked={"workers": "4"}), lenet(first_s=1.0)],
            "1.00x (lenet mxnet eager 200) to 3.00x (lenet mxnet eager workers=4 200)",
        ),
    ],
    ids=["batches", "toggles"],
)
def test_every_first_epoch_counts(entries: list[Entry], verdict: str) -> None:
    """Trainings of one model that differ in batch size or toggles do not replace each other."""
    for order in itertools.permutations(entries):
        actual = judged(FIRST_EPOCH, *order)
        assert actual["verdict"] == UNKNOWN
        assert actual["today"] == verdict


def test_eager_and_graph_have_the_same_toggles() -> None:
    entries = [
        lenet("tensorflow", "eager", SURE, toggles_asked={"onednn": "on"}),
        lenet("tensorflow", "eager", (9.0,) * 4, toggles_asked={"onednn": "off"}),
        graph_lenet(TWICE, toggles_asked={"onednn": "on"}),
    ]
    for order in itertools.permutations(entries):
        verdict = judged(EAGER, *order)
        assert verdict["verdict"] == HOLDS


def test_verdicts_are_of_one_device() -> None:
    run = run_of(
        *(graph_lenet(TWICE), lenet("mxnet", "eager", SURE)),
        *(graph_lenet(SURE, device="gpu:0"), lenet("mxnet", "eager", TWICE, device="gpu:0")),
    )
    assert statements(run, device="cpu")[TRAINS_FASTER]["verdict"] == HOLDS
    assert statements(run, device="gpu")[TRAINS_FASTER]["verdict"] == FAILS
    apart = run_of(graph_lenet(TWICE), lenet("mxnet", "eager", SURE, device="gpu:0"))
    for device in ("cpu", "gpu"):
        assert statements(apart, device=device)[TRAINS_FASTER]["verdict"] == UNKNOWN


def test_operations_are_judged_by_device() -> None:
    """MXNet may be way faster on the one and not on the other."""
    entries = [*pairs(ABOUT, 1.0), *pairs(ABOUT, 2.0, device="gpu:0")]
    run = run_of(*entries)
    judged_statements = {
        device: statements(run, device=device)[WAY_FASTER] for device in ("cpu", "gpu")
    }
    assert {device: row["verdict"] for device, row in judged_statements.items()} == {
        "cpu": FAILS,
        "gpu": HOLDS,
    }
    assert judged_statements["cpu"]["today"].startswith("less time for 0 of 9 operations: 1.00x (")
    assert judged_statements["gpu"]["today"].startswith("less time for 9 of 9 operations: 2.00x (")


def test_the_longest_trainings_of_as_many_epochs_decide() -> None:
    """Runs of 5 and of 15 epochs can be given together, and one of 20 has no counterpart."""
    short = [lenet("tensorflow", "xla", SURE), graph_lenet(TWICE)]
    long = [of_15("tensorflow", "xla", 2.0), of_15("tensorflow", "graph", 1.0)]
    longest = lenet("tensorflow", "xla", (0.1,) * 19, 0.1)
    row = statements(*runs_of(short=short, long=long, longest=[longest]))[XLA]
    assert row["verdict"] == HOLDS
    assert "2.00x" in row["today"]
