"""A gang as its controller sees it: started, sent requests, ended when one of its roles fails."""

import math
import platform
import re
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from typing import Any, NamedTuple, NoReturn

import psutil

from fwbench import errors
from fwbench.errors import FwbenchError, GangFailed, TooLargeToVerify
from fwbench.frameworks.member import SERVER, WORKER, Place
from fwbench.gangs.launch import Engine, Hosts, RoleProcess, ready
from fwbench.records.units import gibibytes
from fwbench.terms.names import framework_of
from fwbench.terms.replicas import LOOPBACK, REAL, WITH_SERVERS
from fwbench.version import __version__
from fwbench.workers.process import START_TIMEOUT_S
from fwbench.workloads.grid import Cell

#: How long the consequences of a role's failure in other roles are waited for.
_CONSEQUENCES_S = 0.5

#: How long roles get to write their tracebacks, and to end by themselves.
_TRACEBACK_S = 0.5
_STOP_S = 2.0

#: How long a role that has nothing to do may take to answer.
_IDLE_S = 1.0

#: How often roles are checked for being asleep while nothing is timed, and the processors that all
#: of them use at least if they are not. Gangs of two that wait use 0.01, as threads of JAX look now
#: and then, and those that take steps use 1. States of threads at the moment of a look would say
#: less: where steps are short, all often wait for each other.
_POLL_S = 0.25
_AWAKE_CPUS = 0.05

#: How processes report that another one has taken a port between its choice and its use: sockets,
#: MXNet's scheduler, TensorFlow's server, JAX's and, before that crashes, its gRPC.
_PORT_TAKEN = re.compile(
    "address already in use|EADDRINUSE|bind failed|could not start gRPC server"
    "|failed to start RPC server|failed to add port to server",
    re.IGNORECASE,
)

#: How many times a gang is started if that happens.
_STARTS = 3

#: The share of free memory that a gang may take.
_AT_MOST = 0.9


@dataclass(frozen=True)
class Composition:
    """Properties that cases of one gang have in common."""

    #: Its name, as its own process knows it.
    framework: str
    strategy: str
    replicas: int
    threads: int
    servers: int = 0
    #: The framework's name for the process that it has in addition; empty if it has none.
    coordinator: str = ""
    #: That joins them, as the toggle ``network`` calls it.
    network: str = LOOPBACK
    #: Of the framework, as the controller has it; empty if it has none.
    version: str = ""
    #: Whether servers update parameters: those that do cannot go back to adding up.
    updating: bool = False

    @property
    def places(self) -> list[Place]:
        """The place of every process, without its host: workers, servers, and the coordinator."""
        counts = {WORKER: self.replicas, SERVER: self.servers, self.coordinator: 1}
        return [
            Place(rank, self.replicas, self.strategy, role=role, servers=self.servers)
            for role, count in counts.items()
            if role
            for rank in range(count)
        ]


def composition_of(
    cell: Cell, coordinator: str, threads: int = 1, version: str = ""
) -> Composition:
    """The composition of the gang of a cell with several replicas."""
    composition = Composition(
        cell.framework,
        cell.toggle("strategy"),
        cell.replicas,
        threads,
        network=cell.toggle("network"),
        version=version,
    )
    if composition.strategy not in WITH_SERVERS:
        return composition
    return replace(composition, servers=int(cell.toggle("servers")), coordinator=coordinator)


def refuse_too_large(composition: Composition, arrays_bytes: float) -> None:
    """Refuse a gang that does not fit into the machine's memory.

    Args:
        composition: of the gang; each role takes as much as this process has of its own, too.
        arrays_bytes: the size of the arrays that a role has at once.
    """
    memory = psutil.Process().memory_info()
    role_bytes = memory.rss - getattr(memory, "shared", 0) + arrays_bytes
    needed = len(composition.places) * role_bytes
    most = _AT_MOST * psutil.virtual_memory().available
    if needed > most:
        raise TooLargeToVerify(
            f"{composition.replicas} replicas take about {gibibytes(int(needed))} of memory, and "
            f"90 % of what is free are {gibibytes(int(most))}: ask for fewer --fw-replicas or a "
            "smaller --fw-size"
        )


def is_loopback(address: str) -> bool:
    """Return whether an address means the machine itself."""
    with suppress(ValueError):
        return ip_address(address).is_loopback
    return address == "localhost"


@dataclass(frozen=True)
class GangTimeouts:
    """The limits of the answers of a gang, in seconds."""

    #: Until every role has imported its framework.
    start_s: float = START_TIMEOUT_S
    #: Until all are connected.
    join_s: float = 30.0
    #: The least limit of any other request.
    least_s: float = 5.0
    #: Its limit as a multiple of the expected time.
    times: float = 20.0

    def limit_s(self, expected_s: float) -> float:
        """The limit of a request that is expected to take ``expected_s``."""
        return max(self.least_s, self.times * expected_s)


class _Failure(NamedTuple):
    """The failure of a role; the others are consequences of the smallest."""

    #: 0 if its process has ended, 1 if it raised an error, 2 if that is of a connection.
    order: int
    rank: int
    text: str
    #: The name of the error that it raised.
    kind: str = ""


class Gang:
    """The processes that do cases together, one case at a time.

    Attributes:
        greetings: the answer of every role that takes steps to ``prepare``, by rank.
        serving: the places of the other roles, each with its answer.
        network: that joins them: of the composition, or a real one.
    """

    def __init__(
        self, composition: Composition, engine: Engine, limits: GangTimeouts | None = None
    ) -> None:
        self.composition = composition
        self.engine = engine
        self.limits = limits or GangTimeouts()
        self.greetings: Sequence[dict[str, Any]] = ()
        self.start_s = 0.0
        self.network = composition.network
        self.serving: Sequence[tuple[Place, dict[str, Any]]] = ()
        self._roles: list[RoleProcess] = []
        self._stepping: list[RoleProcess] = []
        self._hosts: Hosts | None = None

    @property
    def all_greetings(self) -> list[dict[str, Any]]:
        """The answer of every role to ``prepare``."""
        return [*self.greetings, *(greeting for _, greeting in self.serving)]

    @property
    def is_alive(self) -> bool:
        """True if it has been started, and no role has ended."""
        return bool(self._roles) and all(role.ending() is None for role in self._roles)

    @property
    def pids(self) -> list[int]:
        """The IDs of its processes."""
        return [role.pid for role in self._roles]

    def start(self) -> None:
        """Start all roles, and have them connect; again if other processes take their ports."""
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
        start_s = time.monotonic()
        places = self.composition.places
        hosts = self._hosts = self.engine.hosts(len(places), self.composition.network)
        self._start_roles(places, hosts)
        self._stepping = [*self._roles]
        addresses = [hosts.address(host) for host in range(len(places))]
        if self.composition.network == LOOPBACK and not all(map(is_loopback, addresses)):
            self.network = REAL
        key = secrets.token_hex(16)
        places = [
            replace(at, host=host, key=key) for at, host in zip(places, addresses, strict=True)
        ]
        self.greetings = self.ask(
            "prepare",
            role_values=[*map(asdict, places)],
            limit_s=self.limits.start_s,
            doing="starting",
        )
        self._refuse_versions()
        addresses = [greeting["address"] for greeting in self.greetings]
        self.ask("join", addresses, limit_s=self.limits.join_s, doing="joining the others")
        self._divide(places)
        self.start_s = time.monotonic() - start_s

    def _start_roles(self, places: Sequence[Place], hosts: Hosts) -> None:
        gang = self.composition
        try:
            for host, place in enumerate(places):
                self._roles.append(hosts.start(host, place.name, gang.framework, gang.threads))
        except OSError as error:
            self.kill()
            raise GangFailed(
                f"{gang.replicas} replicas of {gang.framework} cannot be started: {error}; ask for "
                "fewer --fw-replicas, or allow more processes (ulimit -u) and open files "
                "(ulimit -n)"
            ) from error
        except FwbenchError:
            self.kill()
            raise

    def _divide(self, places: Sequence[Place]) -> None:
        """Tell apart the roles that take steps, which get requests from now on, and the others."""
        roles = [*zip(self._roles, places, self.greetings, strict=True)]
        self._stepping = [role for role, _, greeting in roles if greeting["takes_steps"]]
        self.serving = [
            (place, greeting) for _, place, greeting in roles if not greeting["takes_steps"]
        ]
        self.greetings = [greeting for _, _, greeting in roles if greeting["takes_steps"]]

    def usage(self) -> list[dict[str, Any]]:
        """Resources used by each process without steps, in the order of :attr:`serving`."""
        serving = [role for role in self._roles if role not in self._stepping]
        doing = "reporting the resources that it has used"
        return self._ask(serving, "usage", [()] * len(serving), self.limits.least_s, doing)

    def _refuse_versions(self) -> None:
        """Refuse roles that might measure differently."""
        places = zip(self.composition.places, self.greetings, strict=True)
        versions = {
            f"{place.name} on {greeting['host']}": greeting["versions"]
            for place, greeting in places
        }
        controller_versions = versions["their controller"] = self._own_versions
        if all(others == controller_versions for others in versions.values()):
            return
        self.kill()
        listed = "; ".join(
            f"{name}: {', '.join(f'{what} {version}' for what, version in place_versions.items())}"
            for name, place_versions in versions.items()
        )
        raise GangFailed(f"the workers of a gang must have the same versions, and have {listed}")

    @property
    def _own_versions(self) -> dict[str, str]:
        name = framework_of(self.composition.framework)
        return {
            "fwbench": __version__,
            name: self.composition.version or self.greetings[0]["versions"][name],
            "Python": platform.python_version(),
        }

    def ask(
        self,
        kind: str,
        *values: Any,
        limit_s: float,
        doing: str,
        role_values: Sequence[Any] | None = None,
        quiet_s: float = math.inf,
    ) -> list[Any]:
        """Send the same request to every role that takes steps, and wait for all answers.

        Args:
            kind: of the request; see :mod:`fwbench.gangs.role`.
            quiet_s: how long all roles may sleep, while nothing is timed: building or compiling
                may take its time, but roles that all sleep wait for an event that never comes.
            role_values: instead of ``values``, one for each role.

        Raises:
            GangFailed: a role ended, raised an error, or did not answer in time; none is left.
            VerificationError: a role found its result wrong.
        """
        roles = [*self._stepping]
        requests = (
            [values] * len(roles) if role_values is None else [(value,) for value in role_values]
        )
        return self._ask(roles, kind, requests, limit_s, doing, quiet_s)

    def _ask(
        self,
        roles: Sequence[RoleProcess],
        kind: str,
        requests: Sequence[Sequence[Any]],
        limit_s: float,
        doing: str,
        quiet_s: float = math.inf,
    ) -> list[Any]:
        """Send each of some roles its own values; all roles are watched meanwhile."""
        if not self._roles:
            raise GangFailed(f"the gang has ended, and was to begin {doing}; start another one")
        for role in self._roles:
            role.mark()
        for role, values in zip(roles, requests, strict=True):
            with suppress(OSError):  # it has ended, which shows below
                role.send(kind, *values)
        answers: dict[RoleProcess, Any] = {}
        until_s = time.monotonic() + limit_s
        while missing := [role for role in roles if role not in answers]:
            arrived = _wait(self._roles, until_s, quiet_s)
            if not arrived:
                idle = [role for role in self._roles if role not in roles]
                over = time.monotonic() >= until_s
                when = (
                    f"within {limit_s:.3g} s while {doing}"
                    if over
                    else f"while {doing}, and nothing in the gang has run for {quiet_s:.3g} s"
                )
                self._end_hanging([*self._unresponsive(idle), *missing], when)
            received = {role: self._answer(role) for role in arrived}
            failed = [answer for answer in received.values() if isinstance(answer, _Failure)]
            if failed:
                self._fail(failed, doing)
            answers.update({role: answer[0] for role, answer in received.items()})
        return [answers[role] for role in roles]

    def _unresponsive(self, idle: Sequence[RoleProcess]) -> list[RoleProcess]:
        """The roles with nothing to do that do not even report their usage."""
        stopped = [role for role in idle if role.is_stopped()]  # they would take all the time
        silent = [role for role in idle if role not in stopped]
        for role in silent:
            with suppress(OSError):
                role.send("usage")
        until_s = time.monotonic() + _IDLE_S
        while arrived := silent and ready(silent, max(0.0, until_s - time.monotonic())):
            silent = [role for role in silent if role not in arrived]
        return [role for role in idle if role in stopped or role in silent]

    def _answer(self, role: RoleProcess) -> _Failure | tuple[Any]:
        """The answer of a role, in a tuple, or how it failed."""
        rank = self._roles.index(role)
        try:
            kind, *values = role.receive()
        except (EOFError, OSError, FwbenchError):
            return _Failure(0, rank, role.ending(_STOP_S) or "closed its connection")
        if kind == "done":
            return (values[0],)
        name, connection, text = values
        return _Failure(2 if connection else 1, rank, f"raised {name}: {text}", name)

    def _end_hanging(self, missing: Sequence[RoleProcess], when: str) -> NoReturn:
        stopped = _stopped(self._roles)
        for role in self._roles:
            role.ask_for_traceback()
        before = self._traffic_bytes()
        time.sleep(_TRACEBACK_S)
        moved = _traffic(self._roles, before, self._traffic_bytes())
        names = " and ".join(role.name for role in missing)
        tails = "".join(f"\n{role.name}{role.tail()}" for role in self._roles)
        self.kill()
        raise GangFailed(
            f"{names} did not answer {when}: {stopped or _CUT}; the gang was ended{moved}{tails}"
        )

    def _traffic_bytes(self) -> list[int | None]:
        """The bytes that the host of every role has received and sent, if that is known."""
        if self._hosts is None:
            return []
        return [self._hosts.traffic_bytes(host) for host in range(len(self._roles))]

    def _fail(self, failures: list[_Failure], doing: str) -> NoReturn:
        until_s = time.monotonic() + _CONSEQUENCES_S
        known = {failure.rank for failure in failures}
        while others := [role for rank, role in enumerate(self._roles) if rank not in known]:
            arrived = ready(others, max(0.0, until_s - time.monotonic()))
            if not arrived:
                break
            for role in arrived:
                known.add(self._roles.index(role))
                answer = self._answer(role)
                if isinstance(answer, _Failure):
                    failures.append(answer)
        cause, *consequences = sorted(failures)
        role = self._roles[cause.rank]
        tail = role.tail() if cause.order == 0 else ""
        later = ((self._roles[failure.rank].name, failure.text) for failure in consequences)
        rest = "".join(f"\nas a consequence, {name} {text}" for name, text in later)
        stopped = _stopped(self._roles)
        self.kill()
        raise _error_of(cause.kind)(
            f"{role.name} {cause.text} while {doing}{stopped and f'; {stopped}'}{tail}{rest}"
        )

    def close(self) -> None:
        """Let all roles end by themselves; end them if they do not."""
        for role in self._roles:
            role.stop()
        for role in self._roles:
            role.ending(_STOP_S)
        self.kill()

    def kill(self) -> None:
        """End all roles at once, and release their hosts."""
        while self._roles:
            self._roles.pop().kill()
        if self._hosts is not None:
            self._hosts.close()
            self._hosts = None


def _wait(roles: Sequence[RoleProcess], until_s: float, quiet_s: float) -> list[RoleProcess]:
    """The roles that have answered, or ended; none if the time is over, or all slept too long.

    Args:
        roles: of the whole gang, also those that have answered: others may wait for them.
        quiet_s: how long all roles may sleep; infinite while they are timed, and not checked.
    """
    awake_s, had_s = time.monotonic(), 0.0
    while True:
        left_s = max(0.0, until_s - time.monotonic())
        arrived = ready(roles, left_s if quiet_s == math.inf else min(_POLL_S, left_s))
        now_s = time.monotonic()
        if arrived or now_s >= until_s:
            return arrived
        have_s = sum(role.processors_s() for role in roles)
        if have_s - had_s > _AWAKE_CPUS * quiet_s:
            awake_s, had_s = now_s, have_s
        elif now_s - awake_s > quiet_s:
            return []


def _traffic(
    roles: Sequence[RoleProcess], before: Sequence[int | None], after: Sequence[int | None]
) -> str:
    """The bytes that links have carried while roles wrote tracebacks, if known, as a clause."""
    carried = [
        f"{role.name}: {now - then:,} B"
        for role, then, now in zip(roles, before, after, strict=True)
        if then is not None and now is not None
    ]
    return f"; moved in its last {_TRACEBACK_S} s: {', '.join(carried)}" if carried else ""


def _stopped(roles: Sequence[RoleProcess]) -> str:
    """The roles that are stopped, as a clause; empty if none is."""
    stopped = [role.name for role in roles if role.is_stopped()]
    are = "is" if len(stopped) == 1 else "are"
    return f"{' and '.join(stopped)} {are} stopped (SIGSTOP, or a debugger)" if stopped else ""


#: A likely reason why roles do not answer, where none is stopped.
_CUT = (
    "the connection between two of them is cut, or one waits for an exchange that another does not "
    "make"
)


def _error_of(name: str) -> type[FwbenchError]:
    """The class of a role's error if it is a verification's; GangFailed otherwise."""
    kind = getattr(errors, name, GangFailed)
    return kind if issubclass(kind, errors.VerificationError) else GangFailed
