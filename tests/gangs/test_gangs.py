"""One gang at a time, kept while cases need the same."""

from typing import Any

from fwbench.gangs.pool import GangPool
from support.gangs import ScriptedGang, composition


def _gangs() -> tuple[GangPool, list[ScriptedGang]]:
    made: list[ScriptedGang] = []

    def make(asked: Any, _: Any) -> Any:
        assert all(not gang.alive for gang in made), "two gangs live at once"
        made.append(ScriptedGang(asked))
        return made[-1]

    return GangPool("local", make), made


def test_cases_of_one_composition_share_a_gang() -> None:
    """It is started once."""
    gangs, made = _gangs()
    assert gangs(composition(2)) is gangs(composition(2))
    assert [gang.asked for gang in made] == [[("start",)]]


def test_another_composition_ends_the_gang_before() -> None:
    """Before it is started itself."""
    gangs, made = _gangs()
    gangs(composition(2))
    gangs(composition(3))
    assert made[0].asked == [("start",), ("close",)]
    gangs.close()
    gangs.close()
    assert made[1].asked == [("start",), ("close",)]


def test_a_gang_that_has_died_is_replaced() -> None:
    """The next case gets a new one."""
    gangs, made = _gangs()
    gangs(composition(2)).kill()
    gangs(composition(2))
    assert [gang.alive for gang in made] == [False, True]
