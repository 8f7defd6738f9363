"""How long cases still take, from what is known and from what was found meanwhile."""

from __future__ import annotations

from fwbench.plugin.progress.hooks import Estimate


def _planned(expected_s: dict[str, float | None], times: int = 1) -> Estimate:
    estimate = Estimate(expected_s)
    estimate.plan(dict.fromkeys(expected_s, times))
    return estimate


def test_what_is_expected_is_left() -> None:
    """All cases at first; of the running one what it has not used yet; nothing at last."""
    estimate = _planned({"a": 10.0, "b": 20.0})
    assert estimate.left("a", 0.0) == "30 s left"
    assert estimate.left("a", 4.0) == "26 s left"
    assert estimate.left("a", 15.0) == "20 s left"  # late; the others are not
    estimate.finish("a", 15.0)
    assert estimate.left("b", 0.0) == "20 s left"
    assert estimate.left("b", 30.0) == "0 s left"
    assert estimate.took_s == {"a": 15.0}


def test_every_launch_counts() -> None:
    """A case that will be measured five times takes five times as long."""
    estimate = _planned({"a": 10.0, "b": 20.0}, times=5)
    assert estimate.left("a", 0.0) == "2 min 30 s left"
    estimate.finish("a", 10.0)
    estimate.plan(dict.fromkeys("ab", 4))
    assert estimate.left("a", 0.0) == "2 min left"


def test_finished_cases_correct_the_others() -> None:
    """Three that took a tenth of their limit: the others will, too."""
    names = [f"case {i}" for i in range(10)]
    estimate = _planned(dict.fromkeys(names, 10.0))
    for name in names[:2]:
        estimate.finish(name, 1.0)
    assert estimate.left(names[2], 0.0) == "1 min 20 s left"
    estimate.finish(names[2], 1.0)
    assert estimate.left(names[3], 0.0) == "7 s left"


def test_what_is_not_known_is_said() -> None:
    """A training loop of which nothing is known takes some time, too, until its epochs say how
    much."""
    estimate = _planned({"a": 10.0, "loop": None})
    assert estimate.left("a", 0.0) == "more than 10 s left"
    assert estimate.left("loop", 5.0) == "more than 10 s left"
    assert estimate.left("loop", 5.0, share=0.25) == "25 s left"
    estimate.finish("a", 10.0)
    assert estimate.left("loop", 5.0) == ""
    assert estimate.left("loop", 20.0, share=0.5) == "20 s left"


def test_epochs_say_more_than_earlier_runs() -> None:
    """The share that is done counts, where it is known."""
    assert _planned({"loop": 100.0}).left("loop", 5.0, share=0.5) == "5 s left"


def test_where_nothing_is_known_nothing_is_said() -> None:
    """As in a session that times nothing."""
    estimate = Estimate({})
    estimate.plan({"a": 1, "b": 1})
    assert estimate.left("a", 3.0) == ""
