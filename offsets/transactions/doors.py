"""What HTTP and the wire protocol do alike with transactional commits: count commands, and raise what was refused."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from kcoord.metrics import COMMANDS
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.transactions import before_epochs
from offsets.core.types import OffsetCommitReply

T = TypeVar("T")


async def accepted(work: Awaitable[OffsetCommitReply], *, knows_epochs: bool = False) -> OffsetCommitReply:
    """The reply to a commit. Raises ProtocolError if it was refused as a whole.

    `knows_epochs`: the client knows the errors of TxnOffsetCommit 6; HTTP has those of the versions before.
    """
    reply = await work
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error if knows_epochs else before_epochs(reply.error), reply.detail)
    return reply


async def counted(command: str, work: Awaitable[T]) -> T:
    """Count a command with its outcome. Raises what the work raises."""
    try:
        result = await work
    except ProtocolError as error:
        COMMANDS.labels(command, error.error.name).inc()
        raise
    COMMANDS.labels(command, Error.NONE.name).inc()
    return result
