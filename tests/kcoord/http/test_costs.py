"""What a request costs grows with its size and not with its square: the event loop serves everybody else too."""

from __future__ import annotations

import pytest

from groups.core.machine import decide
from groups.core.model.commands import JoinGroup
from groups.core.model.replies import JoinReply
from groups.core.model.types import Env, Protocol
from kcoord.door.http import body as bodies
from kcoord.protocol.errors import Error, ProtocolError
from tests.support.members import join

SIZE = 2_000
FEW = 20 * SIZE
"""Comparisons that a linear look for duplicates may take, with room for collisions of hashes."""


class Counted(str):
    """A text that counts how often it is compared with another."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.fixture(autouse=True)
def _from_zero() -> None:
    Counted.comparisons = 0


def names() -> list[str]:
    """Different names, the last of them twice."""
    return [Counted(f"name-{min(n, SIZE - 2)}") for n in range(SIZE)]


def test_a_key_given_twice_among_many() -> None:
    with pytest.raises(ProtocolError) as raised:
        bodies._pairs([(name, None) for name in names()])
    assert raised.value.fields == {"field": f"name-{SIZE - 2}"}
    assert 0 < Counted.comparisons < FEW


def test_a_protocol_listed_twice_among_many() -> None:
    command: JoinGroup = join(protocols=tuple(Protocol(name, b"") for name in names()))
    reply = decide(None, command, Env(now=0, fresh_id=str)).reply
    assert isinstance(reply, JoinReply)
    assert reply.error is Error.INVALID_REQUEST
    assert 0 < Counted.comparisons < FEW
