"""Answers to the requests of `frames`: whether one is whole, and without an error; and a login."""

from __future__ import annotations

import socket
import struct

from tests.bench import requests
from tests.bench.kafka import frames

PARTITIONS = 5
"""Of a commit."""
_COMMIT_SIZE = len(frames.commit_well(requests.TOPIC, range(PARTITIONS)))


def is_whole(read: bytes) -> bool:
    """A whole response has been read."""
    return len(read) >= 4 and len(read) - 4 >= int(struct.unpack_from(">i", read)[0])


def is_well(read: bytes) -> bool:
    """A heartbeat or a commit of PARTITIONS partitions was answered without an error."""
    if read == frames.HEARTBEAT_WELL:
        return True
    errors = [read[-1 - 6 * place - 1 : len(read) - 6 * place] for place in range(PARTITIONS)]
    return len(read) == _COMMIT_SIZE and errors == [b"\0\0"] * PARTITIONS


def log_in(connection: socket.socket, token: str) -> None:
    """Log in on a connection that blocks. Raises AssertionError if that is refused."""
    connection.sendall(frames.log_in(token))
    for what in ("SaslHandshake", "SaslAuthenticate"):
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        (error,) = struct.unpack_from(">h", _exactly(connection, size), 4)
        assert not error, f"{what} was answered with error {error}"


def _exactly(connection: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        more = connection.recv(size - len(read))
        assert more, "the server closed a connection during the login"
        read += more
    return read
