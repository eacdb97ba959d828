"""Work that joins the transaction of a decision, while the group's row is locked.

Offsets are written this way: what fences a commit and what it writes are one transaction (invariant 2).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groups.core.model.consumer_group import ShareGroup
from groups.core.model.events import GroupEvent
from groups.core.model.group import Group
from groups.core.model.replies import Reply
from groups.core.model.types import Millis, Topic
from kcoord.access.audit.recording import Act
from kcoord.database.pool import Connection


@dataclass(frozen=True, slots=True)
class LockedGroup:
    """A group inside the transaction that holds its lock.

    `pk`: key of its row. `group`: as the command's decision left it. `reply`: what the decision said, a success.
    `events`: what work adds here is stored with the events of all decisions of the transaction. `created`: this
    decision created the group. `acts`: what the audit is to say about the work, with the caller of the command.
    """

    connection: Connection
    group_id: str
    pk: int
    group: Group
    reply: Reply
    now: Millis
    events: list[GroupEvent]
    created: bool
    acts: list[Act]


@dataclass(frozen=True, slots=True)
class Deletion:
    """A group about to be deleted, with the row still there. `principal`: who requested it, "" for the service."""

    connection: Connection
    group_id: str
    pk: int
    principal: str
    now: Millis


@dataclass(frozen=True, slots=True)
class ShareChange:
    """What became of a share group: the members that are gone, and the ids of the topics that the others name."""

    connection: Connection
    group_id: str
    pk: int
    gone: Sequence[str]
    topic_ids: Sequence[str]
    now: Millis


Within = Callable[[LockedGroup], Awaitable[Any]]
"""Work in the transaction of a decision whose reply is a success; what it returns is the caller's result. It does not
refuse by raising, which would undo other requests in the same transaction: it returns the refusal. If no group exists
after the decision, as for a tick that found none or skipped it, the caller gets the reply."""

Guard = Callable[[Connection, int, Millis], Awaitable[Reply | None]]
"""Called under the lock, before the decision: (connection, key of the row, now) -> a reply instead of it, or None."""

DeletionHook = Callable[[Deletion], Awaitable[None]]
ShareHook = Callable[[ShareChange], Awaitable[None]]

_deletion_hooks: list[DeletionHook] = []
_share_hooks: list[ShareHook] = []


def before_deletion(hook: DeletionHook) -> None:
    """Call `hook` in the transaction of every deletion of a group, before its rows go. For `AppConfig.ready`."""
    if hook not in _deletion_hooks:
        _deletion_hooks.append(hook)


async def run_deletion_hooks(deletion: Deletion) -> None:
    """Notify all hooks with rows of the group that it is being deleted."""
    for hook in _deletion_hooks:
        await hook(deletion)


def on_share_change(hook: ShareHook) -> None:
    """Call `hook` in the transaction of every decision that moves the epoch of a share group. For `AppConfig.ready`."""
    if hook not in _share_hooks:
        _share_hooks.append(hook)


async def run_share_hooks(change: ShareChange) -> None:
    """Notify all hooks with rows of the group of what became of it."""
    for hook in _share_hooks:
        await hook(change)


async def tell_items(
    connection: Connection,
    pk: int,
    before: Group | None,
    after: ShareGroup,
    topics: Mapping[str, Topic],
    now: Millis,
) -> None:
    """Items that members who are gone have locked go back; partitions that are new to a share group begin."""
    old = before if isinstance(before, ShareGroup) else None
    if old is not None and old.group_epoch == after.group_epoch:
        return
    gone = [member_id for member_id in (() if old is None else old.members) if member_id not in after.members]
    names = {name for member in after.members.values() for name in member.subscribed_topic_names}
    topic_ids = [topics[name].topic_id for name in sorted(names) if name in topics]
    await run_share_hooks(ShareChange(connection, after.group_id, pk, gone, topic_ids, now))
