"""What happens elsewhere when a topic is deleted: modules that store data about topics register their hooks here.

Like `groups.store.locked.before_deletion` for groups, but in two steps, because the transaction of the topic cannot
hold the locks of all groups that ever read it: the work is recorded with the deletion, and done after it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from groups.core.model.types import Millis
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """A topic whose deletion is about to commit. `principal`: who requested it, "" for the service. `now` in ms."""

    connection: Connection
    topic: str
    topic_id: UUID
    principal: str
    now: Millis


Note = Callable[[TopicDeletion], Awaitable[None]]
FollowUp = Callable[[Runtime, str], Awaitable[None]]

_hooks: list[tuple[Note, FollowUp]] = []


def on_topic_deletion(note: Note, follow_up: FollowUp) -> None:
    """Call `note` in the transaction of every deletion of a topic, and `follow_up` once it is committed.

    The deletion is answered after `follow_up`, which handles its own failures; it may not run at all if the process
    dies. For `AppConfig.ready`.
    """
    if (note, follow_up) not in _hooks:
        _hooks.append((note, follow_up))


async def note_deletion(deletion: TopicDeletion) -> None:
    """Call every `note` hook."""
    for note, _ in _hooks:
        await note(deletion)


async def follow_up_deletion(runtime: Runtime, topic: str) -> None:
    """Call every `follow_up` hook."""
    for _, follow_up in _hooks:
        await follow_up(runtime, topic)
