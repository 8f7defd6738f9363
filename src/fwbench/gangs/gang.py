"""A gang as its controller sees it: started, asked, and ended when one of its roles fails it."""

from __future__ import annotations

import math
import platform
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, NamedTuple, NoReturn

from fwbench import errors
from fwbench.errors import FwbenchError, GangFailed
from fwbench.frameworks.member import Seat
from fwbench.gangs import waiting
from fwbench.gangs.engines import Engine, Hosts
from fwbench.gangs.places import Composition, Place
from fwbench.gangs.waiting import USUAL, GangTimeouts
from fwbench.names import framework_of
from fwbench.processes.meeting import is_loopback
from fwbench.processes.role import RoleProcess, ready
from fwbench.terms.link import LOOPBACK, REAL
from fwbench.version import __version__

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

#: What the others run into when a role has failed follows within this time.
_CONSEQUENCES_S = 0.5

#: How long roles get to write where they hang, and to end by themselves.
_TRACEBACK_S = 0.5
_STOP_S = 2.0

#: How long a role that has nothing to do may take to say so.
_IDLE_S = 1.0

#: How processes say that somebody else has taken a port between its choice and its use: sockets,
#: MXNet's scheduler, TensorFlow's server, JAX's and, before that crashes, its gRPC.
_PORT_TAKEN = re.compile(
    "address already in use|EADDRINUSE|bind failed|could not start gRPC server"
    "|failed to start RPC server|failed to add port to server",
    re.IGNORECASE,
)

#: How many times a gang is started for that.
_STARTS = 3


class _Failure(NamedTuple):
    """What became of one role; the smallest is what the others are consequences of.

    Attributes:
        order: 0 if its process has ended, 1 if it raised an error, 2 if that is of a connection.
        rank: which role.
        text: how it failed.
        kind: the name of the error that it raised.
    """

    order: int
    rank: int
    text: str
    kind: str = ""


class Gang:
    """The processes that do cases together, one at a time.

    Args:
        composition: what they are.
        engine: what starts them.
        limits: how long they may take to answer.

    Attributes:
        hello: what every role that takes steps said of itself, by rank.
        serving: the places of the others, each with what it said.
        start_s: how long it took until all were connected.
        network: what joins them: that of the composition, or a real one.
    """

    def __init__(
        self,
        composition: Composition,
        engine: Engine,
        limits: GangTimeouts = USUAL,
    ) -> None:
        self.composition = composition
        self.engine = engine
        self.limits = limits
        self.hello: Sequence[dict[str, Any]] = ()
        self.start_s = 0.0
        self.network = composition.network
        self.serving: Sequence[tuple[Place, dict[str, Any]]] = ()
        self._roles: list[RoleProcess] = []
        self._asked: list[RoleProcess] = []
        self._hosts: Hosts | None = None

    @property
    def everyone(self) -> list[dict[str, Any]]:
        """What every role said of itself."""
        return [*self.hello, *(hello for _, hello in self.serving)]

    @property
    def is_alive(self) -> bool:
        """Whether it has been started, and no role has ended."""
        return bool(self._roles) and all(role.body.how_it_ended(0) is None for role in self._roles)

    @property
    def pids(self) -> list[int]:
        """The numbers of its processes."""
        return [role.pid for role in self._roles]

    def start(self) -> None:
        """Start all roles, and have them join each other; again if others take their ports.

        Raises:
            GangFailed: one of them does not start, has other versions, or does not join.
            NetworkUnavailable: what is to join them cannot be made.
        """
        for left in reversed(range(_STARTS)):
            try:
                self._start()
            except GangFailed as error:
                if not _PORT_TAKEN.search(str(error)):
                    raise
                if not left:
                    raise GangFailed(
                        f"other processes took the ports of a gang {_STARTS} times: {error}"
                    ) from error
            else:
                return

    def _start(self) -> None:
        begun_s = time.monotonic()
        own, places = self.composition, self.composition.places
        hosts = self._hosts = self.engine.hosts(len(places), own.network)
        try:
            for host, place in enumerate(places):
                self._roles.append(hosts.start(host, place.name, own.framework, own.threads))
        except OSError as error:
            self.kill()
            raise GangFailed(
                f"{own.replicas} replicas of {own.framework} cannot be started: {error}; ask for "
                "fewer --fw-replicas, or allow more processes (ulimit -u) and open files "
                "(ulimit -n)"
            ) from error
        except FwbenchError:
            self.kill()
            raise
        self._asked = [*self._roles]
        hosted = [hosts.address(host) for host in range(len(places))]
        if own.network == LOOPBACK and not all(map(is_loopback, hosted)):
            self.network = REAL
        seats = [asdict(self._seat(*each)) for each in zip(places, hosted, strict=True)]
        self.hello = self.ask("sit", each=seats, limit_s=self.limits.start_s, doing="starting")
        self._refuse_versions()
        addresses = [hello["address"] for hello in self.hello]
        self.ask("join", addresses, limit_s=self.limits.join_s, doing="joining the others")
        self._divide(places)
        self.start_s = time.monotonic() - begun_s

    def _seat(self, place: Place, address: str) -> Seat:
        own = self.composition
        return Seat(place.rank, own.replicas, own.strategy, address, place.role, own.servers)

    def _divide(self, places: Sequence[Place]) -> None:
        """Tell those that take steps, which are asked from now on, from those that serve them."""
        said = [*zip(self._roles, places, self.hello, strict=True)]
        self._asked = [role for role, _, hello in said if hello["takes_steps"]]
        self.serving = [(place, hello) for _, place, hello in said if not hello["takes_steps"]]
        self.hello = [hello for _, _, hello in said if hello["takes_steps"]]

    def used(self) -> list[dict[str, Any]]:
        """What each process that takes no steps has used so far, in the order of :attr:`serving`.

        Raises:
            GangFailed: as :meth:`ask`.
        """
        serving = [role for role in self._roles if role not in self._asked]
        doing = "telling what it has used"
        return self._ask(serving, "used", [()] * len(serving), self.limits.least_s, doing)

    def _refuse_versions(self) -> None:
        """Refuse roles that might measure differently.

        Raises:
            GangFailed: two have other versions of Python, fwbench or the framework.
        """
        places = [
            (place.name, hello)
            for place, hello in zip(self.composition.places, self.hello, strict=True)
        ]
        versions = {f"{name} on {said['host']}": said["versions"] for name, said in places}
        versions["their controller"] = self._own_versions
        if all(each == versions["their controller"] for each in versions.values()):
            return
        self.kill()
        who = "; ".join(
            f"{name}: {', '.join(f'{what} {version}' for what, version in each.items())}"
            for name, each in versions.items()
        )
        raise GangFailed(f"the workers of a gang must have the same versions, and have {who}")

    @property
    def _own_versions(self) -> dict[str, str]:
        own = self.composition
        name = framework_of(own.framework)
        return {
            "fwbench": __version__,
            name: own.version or self.hello[0]["versions"][name],
            "Python": platform.python_version(),
        }

    def ask(
        self,
        kind: str,
        *values: Any,
        limit_s: float,
        doing: str,
        each: Sequence[Any] | None = None,
        quiet_s: float = math.inf,
    ) -> list[Any]:
        """Ask every role that takes steps for the same, and wait for all answers.

        Args:
            kind: of the request; see :mod:`fwbench.gangs.role`.
            values: of the request.
            limit_s: how long to wait.
            quiet_s: how long no role may run, while nothing is timed: what is being built or
                compiled may take its time, but roles that all sleep wait for what never comes.
            doing: what is asked for, for messages.
            each: instead of ``values``, one for each role.

        Returns:
            The answers, by rank.

        Raises:
            GangFailed: a role ended, raised an error, or did not answer in time; none is left.
            VerificationError: a role found its result wrong.
        """
        asked = [*self._asked]
        requests = [values] * len(asked) if each is None else [(value,) for value in each]
        return self._ask(asked, kind, requests, limit_s, doing, quiet_s)

    def _ask(
        self,
        asked: Sequence[RoleProcess],
        kind: str,
        requests: Sequence[Sequence[Any]],
        limit_s: float,
        doing: str,
        quiet_s: float = math.inf,
    ) -> list[Any]:
        """Ask some roles, each with values of its own; all are watched meanwhile."""
        if not self._roles:
            raise GangFailed(f"the gang has ended, and was to begin {doing}; start another one")
        for role in self._roles:
            role.body.mark()
        for role, values in zip(asked, requests, strict=True):
            with suppress(OSError):  # it has ended, which shows below
                role.send(kind, *values)
        idle = [role for role in self._roles if role not in asked]
        answers: dict[RoleProcess, Any] = {}
        until_s = time.monotonic() + limit_s
        while missing := [role for role in asked if role not in answers]:
            arrived = waiting.arrived(self._roles, until_s, quiet_s)
            if not arrived:
                over = time.monotonic() >= until_s
                self._hang(
                    [*self._silent(idle), *missing],
                    f"within {limit_s:.3g} s while {doing}"
                    if over
                    else f"while {doing}, and nothing in the gang has run for {quiet_s:.3g} s",
                )
            failed = []
            for role in arrived:
                answered = self._answer(role)
                if isinstance(answered, _Failure):
                    failed.append(answered)
                else:
                    answers[role] = answered[0]
            if failed:
                self._fail(failed, doing)
        return [answers[role] for role in asked]

    def _silent(self, idle: Sequence[RoleProcess]) -> list[RoleProcess]:
        """Those of the roles with nothing to do that do not even say what they have used."""
        stopped = [role for role in idle if role.body.is_stopped()]  # they would take all the time
        silent = [role for role in idle if role not in stopped]
        for role in silent:
            with suppress(OSError):
                role.send("used")
        until_s = time.monotonic() + _IDLE_S
        while arrived := silent and ready(silent, max(0.0, until_s - time.monotonic())):
            silent = [role for role in silent if role not in arrived]
        return [role for role in idle if role in stopped or role in silent]

    def _answer(self, role: RoleProcess) -> _Failure | tuple[Any]:
        """What a role answers, in a tuple, or how it failed."""
        rank = self._roles.index(role)
        try:
            kind, *values = role.receive()
        except (EOFError, OSError, FwbenchError):
            return _Failure(0, rank, role.body.how_it_ended(_STOP_S) or "closed its connection")
        if kind == "done":
            return (values[0],)
        name, connection, text = values
        return _Failure(2 if connection else 1, rank, f"raised {name}: {text}", name)

    def _hang(self, missing: Sequence[RoleProcess], when: str) -> NoReturn:
        """End a gang of which nothing is heard any more.

        Raises:
            GangFailed: always.
        """
        stopped = [role.name for role in self._roles if role.body.is_stopped()]
        for role in self._roles:
            role.body.ask_for_traceback()
        before = self._traffic_bytes()
        time.sleep(_TRACEBACK_S)
        moved = waiting.moved(self._roles, before, self._traffic_bytes(), _TRACEBACK_S)
        names = " and ".join(role.name for role in missing)
        tails = "".join(f"\n{role.name}{role.body.tail()}" for role in self._roles)
        self.kill()
        raise GangFailed(
            f"{names} did not answer {when}: {_suspicion(stopped)}; the gang was ended"
            f"{moved}{tails}"
        )

    def _traffic_bytes(self) -> list[int | None]:
        """What has come and gone at the host of every role, if that is known."""
        if self._hosts is None:
            return []
        return [self._hosts.traffic_bytes(host) for host in range(len(self._roles))]

    def _fail(self, failures: list[_Failure], doing: str) -> NoReturn:
        """End a gang of which a role has failed.

        Raises:
            GangFailed: a process ended, or an error is none of a verification.
            VerificationError: a role found its result wrong.
        """
        until_s = time.monotonic() + _CONSEQUENCES_S
        known = {failure.rank for failure in failures}
        while others := [role for rank, role in enumerate(self._roles) if rank not in known]:
            arrived = ready(others, max(0.0, until_s - time.monotonic()))
            if not arrived:
                break
            for role in arrived:
                known.add(self._roles.index(role))
                answered = self._answer(role)
                if isinstance(answered, _Failure):
                    failures.append(answered)
        cause, *consequences = sorted(failures)
        role = self._roles[cause.rank]
        said = f"{role.name} {cause.text} while {doing}"
        tail = role.body.tail() if cause.order == 0 else ""
        rest = "".join(
            f"\nas a consequence, {self._roles[each.rank].name} {each.text}"
            for each in consequences
        )
        self.kill()
        raise _error_of(cause.kind)(f"{said}{tail}{rest}")

    def close(self) -> None:
        """Let all roles end by themselves; end them if they do not."""
        for role in self._roles:
            role.stop()
        for role in self._roles:
            role.body.how_it_ended(_STOP_S)
        self.kill()

    def kill(self) -> None:
        """End all roles at once, and give their hosts back."""
        while self._roles:
            self._roles.pop().kill()
        if self._hosts is not None:
            self._hosts.close()
            self._hosts = None


def _suspicion(stopped: Sequence[str]) -> str:
    """Why roles may not answer."""
    if stopped:
        are = "is" if len(stopped) == 1 else "are"
        return f"{' and '.join(stopped)} {are} stopped (SIGSTOP, or a debugger)"
    return (
        "the connection between two of them is cut, or one waits for an exchange that another does "
        "not make"
    )


def _error_of(name: str) -> type[FwbenchError]:
    """The class of a role's error, if it is a verification's: that of a gang otherwise."""
    kind = getattr(errors, name, GangFailed)
    return kind if issubclass(kind, errors.VerificationError) else GangFailed
