"""Which commits of offsets change nothing in a group but the session of their member.

For the lane that takes commits of many groups together (`offsets.commits.service`). What is said here holds while no
timer of the group is due and its deadlines need not start over; the lane finds that out under the lock of the group, in
the same statement in which it compares the version of its copy.

Source: architecture.md 4, "Fast lanes"; classic.md 6; consumer.md 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from groups.core.classic.state import ANSWERS, Api
from groups.core.model.consumer_group import ConsumerGroup
from groups.core.model.group import Group
from groups.core.model.types import ClassicGroup, GroupState, Millis
from kcoord.protocol.errors import Error

_RENEWING = frozenset(
    state for (api, state), verdict in ANSWERS.items()
    if api is Api.COMMIT and verdict.error is Error.NONE and verdict.renews
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SteadyCommit:
    """A commit that `decide` would accept. `client_id`: of its member, "" without one.

    `session_ms`: the session of its member starts again, with this length; None: no session changes.
    """

    client_id: str
    session_ms: Millis | None


_WITHOUT_MEMBER = SteadyCommit("", None)


def steady_commit(
    group: Group, member_id: str, instance_id: str | None, generation_id: int, *, knows_epochs: bool = True
) -> SteadyCommit | None:
    """What `decide` would do for CommitOffsets with these fields; None: something else than to accept it.

    None may also be said of a commit that would be accepted. It costs the same however many members there are.
    """
    if group.hold is not None:
        return None
    if isinstance(group, ConsumerGroup):
        return _consumer(group, member_id, generation_id, knows_epochs=knows_epochs)
    if isinstance(group, ClassicGroup):
        return _classic(group, member_id, instance_id, generation_id)
    return None


def _classic(group: ClassicGroup, member_id: str, instance_id: str | None, generation_id: int) -> SteadyCommit | None:
    if generation_id < 0:
        return _WITHOUT_MEMBER if group.state is GroupState.EMPTY else None
    member = group.members.get(member_id)
    if member is None or generation_id != group.generation_id or group.state not in _RENEWING:
        return None
    if instance_id is not None and group.members.static.get(instance_id) != member_id:
        return None
    # The session of a member whose request is parked depends on the deadline that is stored.
    if member.awaiting_join or member.awaiting_sync or member.session_timeout_ms <= 0:
        return None
    return SteadyCommit(member.client_id, member.session_timeout_ms)


def _consumer(group: ConsumerGroup, member_id: str, epoch: int, *, knows_epochs: bool) -> SteadyCommit | None:
    if epoch < 0:
        return None if group.members else _WITHOUT_MEMBER
    member = group.members.get(member_id)
    if member is None or member.member_epoch != epoch or not (knows_epochs or member.classic):
        return None
    return SteadyCommit(member.client_id, None)
