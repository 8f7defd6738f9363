"""Addresses of programs: alike for one seed, and the heap elsewhere in each process."""

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from fwbench.processes import addresses, command
from fwbench.processes.guard import PERSONALITY

pytestmark = pytest.mark.skipif(
    not addresses.can_be_given(), reason="this system does not let a process have given addresses"
)

#: Prints the addresses of the C library's code, of the stack, and of an object.
_PRINT = """
import ctypes
{settle}
libc, on_stack = ctypes.CDLL(None), ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ")
print(ctypes.cast(libc.getenv, ctypes.c_void_p).value, on_stack.value, id(object()))
"""

_SETTLE = "from fwbench.processes import addresses; addresses.settle()"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Asks again for what is allowed, and once more afterwards."""
    addresses.can_be_given.cache_clear()
    yield
    addresses.can_be_given.cache_clear()


def _run(text: str, seed: int | None) -> list[str]:
    given = {} if seed is None else addresses.drawn(seed)
    variables = {**os.environ, "PYTHONHASHSEED": "0", **given}
    done = command.capture([sys.executable, "-c", text], variables=variables)
    assert done.status == 0, done.errors
    return done.output.split()


def test_a_seed_gives_addresses() -> None:
    """The system gives others each time."""
    text = _PRINT.format(settle="")
    library, stack, thing = _run(text, 1)
    assert _run(text, 1) == [library, stack, thing]
    for others in (_run(text, 2), _run(text, None)):
        assert others[0] != library
        assert others[1] != stack


def test_the_heap_of_each_process_begins_elsewhere() -> None:
    """Once it has settled; libraries and the stack stay where they are."""
    found = [_run(_PRINT.format(settle=_SETTLE), 1) for _ in range(4)]
    assert len({library for library, _, _ in found}) == 1
    assert len({stack for _, stack, _ in found}) == 1
    assert len({thing for _, _, thing in found}) > 1


def test_new_threads_have_stacks_as_without() -> None:
    """Though glibc makes them as large as the limit of the stack, and that is raised."""
    text = f"""
{_SETTLE}
import resource
print(addresses._stack_bytes(), resource.getrlimit(resource.RLIMIT_STACK)[0])
"""
    usual, limit = map(int, _run(text, None))
    settled, raised = map(int, _run(text, 1))
    assert settled == usual
    assert raised >= 128 << 20 != limit


@pytest.mark.usefixtures("fresh")
def test_the_process_that_asks_keeps_its_own() -> None:
    """Its personality is that of before, and so are its limits."""
    before = ctypes.CDLL(None).personality(PERSONALITY), resource.getrlimit(resource.RLIMIT_STACK)
    assert addresses.drawn(1)
    after = ctypes.CDLL(None).personality(PERSONALITY), resource.getrlimit(resource.RLIMIT_STACK)
    assert after == before


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("limited", [resource.RLIMIT_STACK, resource.RLIMIT_AS])
def test_none_are_given_where_memory_is_limited(
    monkeypatch: pytest.MonkeyPatch, limited: int
) -> None:
    """The stack's limit may not be raised by as much, or threads would not have room for theirs."""
    limits = {limited: (8 << 20, 64 << 20)}
    none = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda asked: limits.get(asked, none))
    assert addresses.drawn(1) == {}


@pytest.mark.usefixtures("fresh")
def test_none_are_given_where_that_is_not_permitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers may ask for the personality, and not change it."""
    libc = SimpleNamespace(personality=lambda asked: 0 if asked == PERSONALITY else -1)
    monkeypatch.setattr(addresses.ctypes, "CDLL", lambda _: libc)
    assert addresses.drawn(1) == {}
