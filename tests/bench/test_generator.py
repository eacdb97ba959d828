"""The load generator against small servers: it counts, times, and notices refusals."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from tests.bench import generator, wire
from tests.bench.prober import Beats, Prober
from tests.bench.usage import Spent, Watched

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nx: y\r\n\r\n{}"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives these answers in turns, in two pieces each; its port, and the requests."""
    read: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        with connection:
            while request := connection.recv(65_536):
                read.append(request)
                answer = answers[len(read) % len(answers)]
                connection.sendall(answer[:20])
                connection.sendall(answer[20:])

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1], read
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("size", range(len(WELL)))
def test_a_part_of_a_response_is_not_whole(size: int) -> None:
    assert not generator.http_is_whole(WELL[:size])
    assert generator.http_is_whole(WELL)


def test_every_answer_is_counted_and_timed() -> None:
    with answering(WELL) as (port, read):
        found = generator.measure({port: [b"GET /a", b"GET /b"]}, 0.2, Watched([]), connections=4)
    assert found.requests == len(read) > 8
    assert list(found.times) == sorted(found.times)
    assert 0 < found.quantile(0.5) <= found.quantile(0.99) <= found.quantile(1) < 1
    assert abs(read.count(b"GET /a") - read.count(b"GET /b")) <= 1, "in turns"
    assert 0 < found.generator < found.seconds
    assert found.rate == pytest.approx(found.requests / found.seconds)


def test_one_server_at_a_time() -> None:
    with answering(WELL) as (port, read):
        found = wire.measure(port, [b"GET /a"], 0.2, os.getpid(), [os.getpid()])
    assert found.requests == len(read) == len(found.times)
    assert found.server_cpu > 0
    assert found.postgres_cpu > 0


def test_connections_are_shared_out_over_ports() -> None:
    with answering(WELL) as (one, first), answering(WELL) as (other, second):
        generator.once({one: [b"a"] * 5, other: [b"b"] * 7}, 4)
    assert first == [b"a"] * 5
    assert second == [b"b"] * 7


def test_a_refusal_fails_the_measurement_unless_it_may_be() -> None:
    with answering(WELL, REFUSED) as (port, _):
        with pytest.raises(AssertionError, match=r"refused: b'HTTP/1\.1 503"):
            generator.once({port: [b"a"] * 4}, 1)
        going = generator.Generator({port: [b"a"]}, 10, 1, limit=4)
        going.start()
        assert going.result(Spent(0.0), may_fail=True).refused == 2


def test_a_probe_is_timed_from_when_it_was_due() -> None:
    with answering(WELL) as (port, read):
        prober = Prober(port, [b"a", b"b"], 0.005)
        threading.Event().wait(0.2)
        found = prober.stop()
    assert len(found.times) == len(read) >= 10
    assert found.lost == 0
    due = sorted(at for at, _ in found.times)
    assert all(later - earlier == pytest.approx(0.005, abs=1e-4) for earlier, later in pairwise(due))


def test_quantiles_of_windows() -> None:
    beats = Beats([(number / 10, number / 1_000) for number in range(100)], 0)
    assert beats.quantile(0.5, (0.0, 1.0)) == 0.005
    assert beats.quantile(0.99, (0.0, 1.0), (5.0, 5.2)) == 0.051
    with pytest.raises(AssertionError, match="no heartbeat"):
        beats.quantile(0.5, (100.0, 101.0))
