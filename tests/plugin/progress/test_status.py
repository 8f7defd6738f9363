"""A status fits into a line, and a time is one to plan with."""

from __future__ import annotations

import pytest

from fwbench.plugin.progress.lines import Status, whole


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (190, "3 min 10 s"),
        (3_599.6, "1 h"),
        (7_500, "2 h 5 min"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    """Whole seconds, so that a line does not change between them; none before the start."""
    assert whole(seconds) == text


def test_what_is_not_known_leaves_no_mark() -> None:
    """No separator stands for nothing."""
    assert str(Status("", "starting torch")) == "starting torch"
    assert str(Status("", "starting torch", "4 s")) == "starting torch, 4 s"
    assert str(Status("case 1 of 2", "a", "4 s")) == "case 1 of 2: a, 4 s"


def test_the_name_is_shortened_first() -> None:
    """What comes before and after it stays as long as there is room."""
    status = Status("case 1 of 2", "gemm-torch-cpu-eager", "4 s")
    assert status.fit(100) == str(status)
    assert status.fit(30) == "case 1 of 2: gemm-torc..., 4 s"
    assert status.fit(20) == "case 1 of 2: gemm-.."
    assert status.fit(0) == status.fit(-1) == ""


@pytest.mark.parametrize("columns", range(50))
def test_nothing_is_longer_than_allowed(columns: int) -> None:
    """Whatever is long in it."""
    for status in (Status("", "a" * 60), Status("b" * 60, "a"), Status("b", "a", "c" * 60)):
        assert len(status.fit(columns)) <= columns
