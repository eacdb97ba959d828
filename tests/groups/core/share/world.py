"""One share group in virtual time, as `tests.groups.core.consumer.world` has a consumer group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from groups.core.model.commands import ShareHeartbeat
from groups.core.model.consumer_group import ConsumerMember, ShareGroup
from groups.core.model.types import GroupConfig, Limits
from tests.groups.core.consumer.world import GROUP, Call, World
from tests.groups.core.share.invariants import check

SESSION_MS = 45_000


def config(**limits: Any) -> GroupConfig:
    """Targets are computed at once unless `limits` say otherwise."""
    usual = {
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": 5_000,
        "assignment_interval_ms": 0,
        "max_size": 200,
    }
    return GroupConfig(share=Limits(**{**usual, **limits}))


@dataclass(slots=True)
class ShareWorld(World):
    """As `World`, with the heartbeats of a share group."""

    config: GroupConfig = field(default_factory=config)

    def _decide(self, call: Call) -> None:
        before, env = self.group, self.env
        World._decide(self, call)
        assert self.last is not None
        check(before, call.command, self.last, env)

    def beat(self, member_id: str, epoch: int, *names: str, **fields: Any) -> Call:
        """A heartbeat; without names it leaves them unchanged."""
        named = frozenset(names) if names else None
        given = {"client_id": "client", "client_host": "10.0.0.1", "subscribed_topic_names": named, **fields}
        return self.send(ShareHeartbeat(GROUP, member_id, epoch, **given))

    @property
    def share(self) -> ShareGroup:
        assert isinstance(self.group, ShareGroup), self.group
        return self.group

    @property
    def both_epochs(self) -> tuple[int, int]:
        """Of the group and of its target."""
        return self.share.group_epoch, self.share.assignment_epoch

    def of(self, member_id: str) -> ConsumerMember:
        return self.share.members[member_id]

    def has(self, member_id: str) -> dict[str, list[int]]:
        """What a member has, by topic name."""
        assigned = self.of(member_id).assigned
        return {topic_id.split("#")[0]: sorted(partitions) for topic_id, partitions in assigned.items()}

    def settle(self) -> None:
        """Everybody sends heartbeats until nothing changes any more."""
        for _ in range(2):
            for member_id in list(self.share.members):
                assert self.beat(member_id, self.of(member_id).member_epoch).error.name == "NONE"
