"""Other plugins of pytest: installed for the tests beside them, and blocked in all other tests."""

from collections.abc import Callable

#: As ``-p`` takes them: the names of their entry points.
NAMES = ("timeout", "codspeed", "rerunfailures", "pytest_cov", "randomly", "repeat")

#: Lets the sessions of a test have these plugins, and none of the others.
Beside = Callable[..., None]


def blocking(*wanted: str) -> str:
    """The options of pytest that block the plugins, but for those that are wanted.

    What is blocked is not imported either, so that sessions start as fast as without it.
    """
    return " ".join(f"-p no:{name}" for name in NAMES if name not in wanted)
