"""What happens elsewhere when a topic is deleted: whoever keeps something about topics says so here.

As `groups.store.locked.before_deletion` is for groups. In two steps, for the transaction of the topic cannot hold the
locks of all groups that ever read it: what is to be done is written down with the deletion, and done after it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from groups.core.model.types import Millis
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime


@dataclass(frozen=True, slots=True)
class TopicDeletion:
    """A topic whose deletion is about to commit. `principal`: who asked for it, "" for the service. `now` in ms."""

    connection: Connection
    topic: str
    principal: str
    now: Millis


Note = Callable[[TopicDeletion], Awaitable[None]]
FollowUp = Callable[[Runtime, str], Awaitable[None]]

_hooks: list[tuple[Note, FollowUp]] = []


def on_topic_deletion(note: Note, follow_up: FollowUp) -> None:
    """Call `note` in the transaction of every deletion of a topic, and `follow_up` once it is committed.

    The deletion is answered after `follow_up`, which deals with its failures itself: it may not run at all, when the
    process dies. For `AppConfig.ready`.
    """
    if (note, follow_up) not in _hooks:
        _hooks.append((note, follow_up))


async def note_deletion(deletion: TopicDeletion) -> None:
    """Let everybody write down what is to be done."""
    for note, _ in _hooks:
        await note(deletion)


async def follow_up_deletion(runtime: Runtime, topic: str) -> None:
    """Let everybody do it."""
    for _, follow_up in _hooks:
        await follow_up(runtime, topic)
