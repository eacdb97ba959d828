"""What HTTP and the wire protocol do alike with transactional commits: count commands, and raise what was refused."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from kcoord.metrics import COMMANDS
from kcoord.protocol.errors import Error, ProtocolError
from offsets.core.types import OffsetCommitReply

T = TypeVar("T")


async def accepted(work: Awaitable[OffsetCommitReply]) -> OffsetCommitReply:
    """The reply to a commit. Raises ProtocolError if it was refused as a whole."""
    reply = await work
    if reply.error is not Error.NONE:
        raise ProtocolError(reply.error, reply.detail)
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
