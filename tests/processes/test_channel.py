"""Messages arrive as they were sent, and other bytes are recognised."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from fwbench.errors import IsolationError
from fwbench.processes.channel import Channel


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    """A channel, and the socket at its other end."""
    near, other = socket.socketpair()
    with closing(Channel(near)) as channel, other:
        yield channel, other


def test_messages_arrive_in_order(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    sender = Channel(other)
    sender.send("first", (1, 2), {"a": None})
    sender.send("second")
    assert channel.readable()
    assert [channel.receive(), channel.receive()] == [["first", [1, 2], {"a": None}], ["second"]]
    assert not channel.readable()


def test_a_message_larger_than_any_buffer(ends: tuple[Channel, socket.socket]) -> None:
    """It is sent while it is received."""
    channel, other = ends
    text = "x" * 2**23
    sending = threading.Thread(target=Channel(other).send, args=("text", text))
    sending.start()
    assert channel.receive() == ["text", text]
    sending.join()


@pytest.mark.parametrize(
    "stray",
    [
        b"a line of a test's own, as long as a header at least",
        b"\0" * 64,
        b"\xf5fwb" + (3).to_bytes(8, "big") + b"[1,",
        b"\xf5fwb" + (2).to_bytes(8, "big") + b"{}",
        b"\xf5fwb" + (2).to_bytes(8, "big") + b"[]",
        b"\xf5fwb" + (100_000).to_bytes(8, "big") + b"[" * 100_000,
    ],
    ids=["text", "zeros", "cut JSON", "an object", "no kind", "deep JSON"],
)
def test_what_is_not_a_message(ends: tuple[Channel, socket.socket], stray: bytes) -> None:
    """It is an error at once: the length that it seems to have is not waited for."""
    channel, other = ends
    other.sendall(stray)
    with pytest.raises(IsolationError, match="received"):
        channel.receive()


def test_less_than_a_header(ends: tuple[Channel, socket.socket]) -> None:
    """A stray byte looks like the beginning of a message: the rest is not waited for."""
    channel, other = ends
    other.sendall(b"x")
    with pytest.raises(TimeoutError):
        channel.receive(0.01)


@pytest.mark.parametrize("sent", [b"", b"\xf5fw", b"\xf5fwb" + (9).to_bytes(8, "big") + b"[1"])
def test_the_end_of_the_connection(ends: tuple[Channel, socket.socket], sent: bytes) -> None:
    """Between messages or within one, it is readable, and an end."""
    channel, other = ends
    other.sendall(sent)
    other.close()
    assert channel.readable(1.0)
    with pytest.raises(EOFError):
        channel.receive()
