"""The ring of NumPy arrays: right sums, and as few bytes as the theory allows."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from fwbench.frameworks.member import Place
from fwbench.frameworks.numpy.replicas import Ring
from fwbench.measure.resources import sent_bytes
from fwbench.processes.greeting import GuardedListener
from support.gangs import in_ring


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("elements", [1, 2, 3, 7, 1000])
def test_every_replica_has_the_sum(replicas: int, elements: int) -> None:
    """Also of fewer elements than replicas, and again of other numbers; sources stay."""

    def exchange(ring: Ring) -> None:
        source = np.empty(elements)
        run = ring.all_reduce(source)
        for factor in (1.0, 10.0):
            source[:] = factor * (ring.place.rank + 1) + np.arange(elements)
            kept = source.copy()
            total = factor * replicas * (replicas + 1) / 2 + replicas * np.arange(elements)
            np.testing.assert_array_equal(run(), total)
            np.testing.assert_array_equal(source, kept)

    in_ring(replicas, exchange)


@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_every_replica_has_its_part_of_the_sum(replicas: int) -> None:
    """The first one the first part; sources stay."""

    def exchange(ring: Ring) -> None:
        source = (ring.place.rank + 1) * np.arange(12.0)
        run = ring.reduce_scatter(source)
        total = np.arange(12.0) * replicas * (replicas + 1) / 2
        for _ in range(2):
            np.testing.assert_array_equal(run(), np.split(total, replicas)[ring.place.rank])
        np.testing.assert_array_equal(source, (ring.place.rank + 1) * np.arange(12.0))

    in_ring(replicas, exchange)


@pytest.mark.parametrize("replicas", [2, 3, 4])
def test_every_replica_has_all_arrays(replicas: int) -> None:
    """One behind the other, by rank; again of other numbers."""

    def exchange(ring: Ring) -> None:
        source = np.empty(5)
        run = ring.all_gather(source)
        for factor in (1.0, 10.0):
            source[:] = factor * ring.place.rank
            np.testing.assert_array_equal(run(), factor * np.repeat(np.arange(replicas), 5))

    in_ring(replicas, exchange)


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("elements", [1, 30_000])
def test_every_replica_has_the_array_of_the_root(replicas: int, elements: int) -> None:
    """Each is the root in turn, in one piece and in several."""

    def exchange(ring: Ring) -> None:
        source = np.arange(float(elements)) + 1000 * ring.place.rank
        run = ring.broadcast(source)
        for root in range(replicas):
            np.testing.assert_array_equal(run(root), np.arange(elements) + 1000 * root)
        np.testing.assert_array_equal(source, np.arange(elements) + 1000 * ring.place.rank)

    in_ring(replicas, exchange)


def test_messages_larger_than_all_buffers_do_not_block() -> None:
    """Replicas send and receive at once: two that sent first would wait for ever."""

    def exchange(ring: Ring) -> float:
        return float(ring.all_reduce(np.ones(4_000_000))().min())

    assert in_ring(2, exchange) == [2.0, 2.0]


def test_it_sends_what_an_all_reduce_must_send() -> None:
    """2 (W - 1) times the array, all replicas together; a barrier adds W - 1 bytes each."""
    replicas, source = 3, np.ones(9999)
    in_ring(replicas, lambda ring: ring.barrier())
    sent = []

    def exchange(ring: Ring) -> None:
        before = sent_bytes()
        ring.barrier()
        ring.all_reduce(source)()
        ring.barrier()
        now = sent_bytes()
        assert before is not None
        assert now is not None
        sent.append(now - before)

    in_ring(replicas, exchange)
    # All replicas are one process here, so each sees what all have sent meanwhile.
    most = 2 * (replicas - 1) * source.nbytes
    assert most <= max(sent) <= most + 6 * replicas * (replicas - 1)


def test_a_socket_with_two_descriptors_is_counted_once() -> None:
    """Replicas in threads of one process copy their sockets to ask them, all at the same time."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        client.dup(),
    ):
        before = sent_bytes()
        client.sendall(b"1234")
        now = sent_bytes()
    assert before is not None
    assert now == before + 4


def test_a_neighbour_that_has_gone_is_named() -> None:
    def leave(ring: Ring) -> str:
        if ring.place.rank == 1:
            ring.close()
            return ""
        with pytest.raises(ConnectionError) as caught:
            ring.all_reduce(np.ones(4_000_000))()
        return str(caught.value)

    message, _ = in_ring(2, leave)
    assert (
        "replica 1 has closed its connection" in message or "reset" in message or "pipe" in message
    )


@pytest.mark.filterwarnings("ignore:connections to a gang")
def test_a_replica_of_another_gang_is_refused() -> None:
    other = GuardedListener("127.0.0.1", "other", [(0, 0)])
    ring = Ring(Place(0, 2, "allreduce", "127.0.0.1", key="secret"))
    with ThreadPoolExecutor(1) as threads:
        joining = threads.submit(ring.join, [ring.address, f"127.0.0.1:{other.port}"])
        while not joining.done():
            assert not other.wait([(0, 0)], time.monotonic() + 0.05)
    with pytest.raises(ConnectionError, match="does not know the secret"):
        joining.result()
    other.close()
