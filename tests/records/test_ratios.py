"""Ratios of cases that took turns are those of their adjacent visits."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from fwbench.gate.budget import History, Result
from fwbench.records.facts import CaseFacts, Launch, RowVisits
from fwbench.records.measurement import Measurement, blur, ratio, took_turns, uncertainty

#: A machine that changes its speed in the middle, for both alike.
_SPEED = (1.0, 1.0, 1.0, 3.0, 3.0)


def _visits(time_s: float, row: str = "row") -> RowVisits:
    return RowVisits(row=row, visits_s=[time_s * speed for speed in _SPEED])


def _case(median_s: float, *visits: RowVisits, launched: bool = False, **facts: Any) -> Measurement:
    """A case with its visits, of one process or of launches."""
    launches = [
        Launch(launch=number, value_s=median_s, rounds_s=[median_s], turns=each)
        for number, each in enumerate(visits)
    ]
    known = CaseFacts(framework="torch", execution="eager", **facts)
    if launched:
        known |= CaseFacts(launches=launches)
    elif visits:
        known |= CaseFacts(turns=visits[0])
    return Measurement(known, (median_s,) * max(1, len(visits)))


def test_the_ratio_is_that_of_adjacent_visits() -> None:
    """Whatever the medians are: one may have met the slower speed more often."""
    base, case = _case(1.0, _visits(1.0)), _case(3.3, _visits(1.1))
    assert ratio(base, case).value == pytest.approx(1.1)
    assert ratio(case, base).value == pytest.approx(1 / 1.1)
    assert blur([(base, case)]) == pytest.approx(math.exp(1.96 * 0.06), rel=0.01)


@pytest.mark.parametrize(
    "other", [_visits(1.1, "another row"), None], ids=["another row", "no turns"]
)
def test_cases_of_other_rows_are_compared_by_medians(other: RowVisits | None) -> None:
    base, case = _case(1.0, _visits(1.0)), _case(3.3, *filter(None, [other]))
    assert ratio(base, case).value == pytest.approx(3.3)


@pytest.mark.parametrize("launched", [True, False])
def test_several_cases_of_one_row_took_turns(launched: bool) -> None:
    """A case whose rivals all failed has visits and no ratios of them."""
    base, case = (_case(1.0, _visits(1.0), launched=launched) for _ in range(2))
    assert took_turns([base, case])
    assert not took_turns([base])
    assert not took_turns([base, _case(1.0, _visits(1.0, "another row")), _case(1.0)])


def _launched(*times_s: float) -> Measurement:
    return _case(1.0, *map(_visits, times_s), launched=True)


@pytest.mark.parametrize(
    ("times_s", "sd"), [((1.2, 1.2, 1.2), 0.0), ((1.1, 1.2, 1.3), 0.0604), ((1.2,), 0.06)]
)
def test_launches_tell_how_far_it_repeats(times_s: Sequence[float], sd: float) -> None:
    """Three or more; fewer repeat as those of others do."""
    between = ratio(_launched(*[1.0] * len(times_s)), _launched(*times_s))
    assert between.value == pytest.approx(1.2)
    assert between.sd == pytest.approx(sd, abs=1e-3)


def test_a_race_judges_adjacent_visits() -> None:
    """A launch without turns has its medians."""
    history = History()
    for visits in (True, False):
        for name, time_s, in_visits_s in (("a", 1.0, 1.0), ("b", 2.0, 1.1)):
            facts = CaseFacts(turns=_visits(in_visits_s)) if visits else CaseFacts()
            history.add(name, Result(1.0, time_s, facts=facts))
        history.end_launch(2.0)
    assert history.paired("a", "b") == pytest.approx([math.log(1.1), math.log(2)])


def test_both_uncertainties_are_said() -> None:
    """The ratios' is that of the ratios; a case alone has none."""
    assumed = "medians are assumed to repeat to within 5 %: --fw-revisit 12 measures it"
    said = "half of the ratios of cases that took turns, which are not those of their medians, to "
    alone, other = (_case(1.0, _visits(time_s)) for time_s in (1.0, 1.1))
    assert uncertainty([alone]) == assumed
    assert uncertainty([alone, other]) == f"{assumed}; {said}within 10 %"
    launched = [_launched(1.0, 1.0, 1.0), _launched(1.1, 1.2, 1.3)]
    assert uncertainty(launched).endswith("within 19 %")
    assert uncertainty([_case(1.0)]) == assumed
