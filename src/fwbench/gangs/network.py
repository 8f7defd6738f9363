"""Networks of one machine: replicas in namespaces of their own, each at a link of a given rate.

Every replica has one end of a veth pair, a switch (a bridge in a namespace of its own) the other.
Both ends pass a token bucket, so a link has its rate in each direction. As long as the link is the
limit, and not a processor, times are those of as many machines at such a switch.
"""

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from functools import cache

from fwbench.errors import NetworkUnavailable
from fwbench.processes.namespace import Namespace
from fwbench.terms.replicas import Link, link_of

#: The end of the link in a replica's namespace.
_INTERFACE = "eth0"

#: What a token bucket lets pass at once: two packets of the largest size that the kernel hands on.
_BURST_BYTES = 128 * 1024

#: How long a packet may wait for the bucket before it is dropped; no sender waits so long.
_QUEUE_S = 0.4

#: Packets that are on their way where there is a delay: those of 0.4 s at 10 Gbit/s.
_DELAYED_PACKETS = 350_000

_KINDS = {"tbf": "a rate", "netem": "a delay"}


class ShapedNetwork:
    """Namespaces that are joined by a switch; addresses and traffic stay within."""

    def __init__(self, link: Link, places: int) -> None:
        with ExitStack() as unfinished:
            self._switch = Namespace()
            unfinished.callback(self._switch.close)
            self._places: list[Namespace] = []
            for _ in range(places):
                self._places.append(Namespace(self._switch))
                unfinished.callback(self._places[-1].close)
            self._connect(link)
            self._open = unfinished.pop_all()

    def _connect(self, link: Link) -> None:
        ports = range(len(self._places))
        commands = ["link add name switch type bridge", "link set dev switch up"]
        for port, place in enumerate(self._places):
            commands += [
                f"link add name port{port} type veth peer name {_INTERFACE} netns {place.pid}",
                f"link set dev port{port} master switch up",
            ]
        self._switch.configure("ip", commands)
        _shape(self._switch, [f"port{port}" for port in ports], Link(link.rate_bits_per_s))
        for port, place in enumerate(self._places):
            place.configure(
                "ip",
                [
                    "link set dev lo up",
                    f"address add {self.address(port)}/16 dev {_INTERFACE}",
                    f"link set dev {_INTERFACE} up",
                ],
            )
            _shape(place, [_INTERFACE], link)

    def address(self, place: int) -> str:
        """The address of a replica, which means nothing outside."""
        return f"10.77.{place // 250}.{place % 250 + 1}"

    def prefix(self, place: int) -> list[str]:
        """Prefix of a command that is to run in a replica's namespace."""
        return self._places[place].prefix

    def traffic_bytes(self, place: int) -> int | None:
        """Received and sent bytes of a replica's link; None if it has gone."""
        with suppress(OSError):
            return sum(self._places[place].traffic_bytes(_INTERFACE))
        return None

    def cut(self, place: int) -> None:
        """Take a replica's link down at the switch, without closing any connection."""
        self._switch.configure("ip", [f"link set dev port{place} down"])

    def close(self) -> None:
        """Let everything go."""
        self._open.close()


def _shape(namespace: Namespace, interfaces: list[str], link: Link) -> None:
    """Give interfaces the rate of a link, and its delay."""
    for kind, commands in _queues(link).items():
        try:
            namespace.configure("tc", [c.format(dev) for c in commands for dev in interfaces])
        except NetworkUnavailable as error:
            if "qdisc kind is unknown" not in str(error):
                raise
            without = "; leave out the delay" if kind == "netem" else ""
            raise NetworkUnavailable(
                f"network {link} needs {_KINDS[kind]}, and this kernel has no {kind} queue "
                f"(sch_{kind}): load the module, or use a kernel that has it{without}"
            ) from None


def _queues(link: Link) -> dict[str, list[str]]:
    """Queues for ``tc``, by kind: the delay comes before the rate."""
    limit_bytes = round(link.bytes_per_s * _QUEUE_S) + _BURST_BYTES
    bucket = f"tbf rate {link.rate_bits_per_s}bit burst {_BURST_BYTES}b limit {limit_bytes}b"
    if not link.delay_s:
        return {"tbf": [f"qdisc add dev {{}} root {bucket}"]}
    delay = f"netem delay {link.delay_s * 1e6:.0f}us limit {_DELAYED_PACKETS}"
    return {
        "netem": [f"qdisc add dev {{}} root handle 1: {delay}"],
        "tbf": [f"qdisc add dev {{}} parent 1:1 {bucket}"],
    }


@cache
def missing(link: Link) -> str:
    """Why there can be no network of such links here, and what to do; empty if there can."""
    try:
        ShapedNetwork(link, 1).close()
    except NetworkUnavailable as error:
        return str(error)
    return ""


def refuse_impossible(names: Iterable[str]) -> None:
    """Refuse networks that cannot be made here, before anything is measured."""
    for link in filter(None, map(link_of, names)):
        reason = missing(link)
        if reason:
            raise NetworkUnavailable(f"--fw-network {link} cannot be had here: {reason}")
