"""Options go over one another field by field, and over a preset's schedule."""

import pytest

from fwbench.errors import UsageError
from fwbench.options.options import Selection
from fwbench.plugin.options import from_config
from fwbench.terms.presets import Schedule
from support.tables import tabled


def test_a_selection_goes_over_another_field_by_field() -> None:
    over = Selection(frameworks=("torch",), sizes=(8,))
    under = Selection(frameworks=("numpy",), dtypes=("float64",))
    expected = Selection(frameworks=("torch",), sizes=(8,), dtypes=("float64",))
    assert over.over(under) == expected


PRESET = Schedule(epochs=4, warmup_epochs=1, repetitions=2, steps=30)


@tabled
def test_a_schedule_is_the_preset_but_for_what_is_asked(
    pytester: pytest.Pytester, arguments: tuple[str, ...], expected: tuple[int, ...]
) -> None:
    """A number of epochs asks for whole ones, unless a number of steps is given too."""
    assert from_config(pytester.parseconfig(*arguments)).schedule(PRESET) == Schedule(*expected)


@tabled
def test_a_schedule_leaves_an_epoch_to_measure(
    pytester: pytest.Pytester, arguments: tuple[str, ...], numbers: str
) -> None:
    """Where every epoch would be a warm-up epoch, the message has both numbers and the options."""
    with pytest.raises(UsageError) as caught:
        from_config(pytester.parseconfig(*arguments)).schedule(PRESET)
    assert str(caught.value) == (
        f"{numbers} leave none to measure; give --fw-train more epochs, or fewer warmup-epochs"
    )
