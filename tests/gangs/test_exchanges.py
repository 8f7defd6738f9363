"""Checks of an exchange by replicas: right results, and none that is left out."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from fwbench.errors import WrongResult
from fwbench.frameworks.member import Member
from fwbench.frameworks.numpy.framework import NumPy
from fwbench.frameworks.numpy.replicas import Ring
from fwbench.gangs import shares
from fwbench.gangs.role import share_of
from fwbench.gangs.shares import Share, Task
from fwbench.workloads import COLLECTIVES
from support.gangs import in_ring

_NAMES = [collective.name for collective in COLLECTIVES]


def _share(name: str, ring: Ring) -> Any:
    return share_of(Task(name, 12, "cpu", "eager", "float32", sparse=False), NumPy(), ring)


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("replicas", [2, 3])
def test_right_exchanges_pass(name: str, replicas: int) -> None:
    def check(ring: Ring) -> None:
        share = _share(name, ring)
        share.check(3)
        for _ in range(4):
            share.run()
        share.verify_last()
        share.check(3)

    in_ring(replicas, check)


def _stale(ring: Ring, name: str) -> Callable[..., Any]:
    """An exchange that returns for ever what its first call has."""
    bound = getattr(Ring, name)

    def bind(source: Any) -> Any:
        run, kept = bound(ring, source), []

        def first(*root: int) -> Any:
            result = run(*root)
            kept.append(np.array(result))
            return kept[0]

        return first

    return bind


def _own(ring: Ring, name: str) -> Callable[..., Any]:
    """An exchange that gives every replica what it has itself."""
    bound = getattr(Ring, name)

    def bind(source: Any) -> Any:
        like = np.shape(bound(ring, source)(*([0] if name == "broadcast" else [])))
        return lambda *_: np.resize(source, like)

    return bind


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("cheat", [_stale, _own])
def test_wrong_exchanges_fail(name: str, cheat: Callable[[Ring, str], Any]) -> None:
    """On a replica at least, and the message says which exchange it was."""

    def check(ring: Ring) -> str:
        setattr(ring, name, cheat(ring, name))
        share = _share(name, ring)
        try:
            share.check(2)
        except WrongResult as error:
            ring.close()  # the other may be waiting for this replica
            return str(error)
        except OSError:
            return ""
        return ""

    message = "".join(in_ring(2, check))
    assert f"{name} of 2 replicas is wrong after step " in message


class _Slow:
    """A replica whose link sends nothing until all replicas meet."""

    queued, sent = 0, 0

    def barrier(self) -> None:
        """All have what this replica was to send them."""
        self.queued, self.sent = 0, self.sent + self.queued


class _Queueing(Share):
    def _check(self, steps: int) -> dict[str, Any]:
        self.member.queued += 100 * steps  # type: ignore[attr-defined]
        return {}

    def verify_last(self) -> dict[str, Any]:
        return {}


def test_what_a_slow_link_has_yet_to_send_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica may have its own results before it has sent what others need for theirs."""
    member = _Slow()
    monkeypatch.setattr(shares, "sent_bytes", lambda: member.sent)
    task = Task("all_reduce", 12, "cpu", "eager", "float32", sparse=False)
    share = _Queueing(task, NumPy(), cast("Member", member))
    assert share.check(3) == {"sent_bytes": 300}
