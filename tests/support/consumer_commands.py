"""Random but sensible traffic of the consumer protocol for one group, with a classic member now and then."""

from __future__ import annotations

from random import Random

from groups.core.model.commands import (
    ApplyRegexResolution,
    Command,
    ConsumerHeartbeat,
    DeleteGroup,
    LeaveGroup,
    LeavingMember,
    Tick,
)
from groups.core.model.consumer_group import ConsumerGroup, plain
from groups.core.model.group import Group
from groups.core.model.types import UNLIMITED, Topic, TopicRights, TopicView
from tests.support.commands import random_command, random_operator

NAMES = ("a", "b", "c")
MEMBERS = tuple(f"m{n}" for n in range(6))
RIGHTS = UNLIMITED, TopicRights("no-a", lambda name: name != "a")


def random_topics(random: Random, version: int) -> TopicView:
    """A catalogue in which any of three topics exist, with one to five partitions."""
    topics = [Topic(f"id-{name}", name, random.randint(1, 5)) for name in NAMES if random.random() < 0.8]
    return TopicView(version, {topic.name: topic for topic in topics}, {topic.topic_id: topic for topic in topics})


def random_consumer_command(random: Random, group_id: str, group: Group | None) -> Command:
    """What members of a consumer group, or some that would like to be, might send next."""
    if random.random() < 0.08 or (group is not None and not isinstance(group, ConsumerGroup) and random.random() < 0.6):
        return random_command(random, group_id, None if isinstance(group, ConsumerGroup) else group)
    match random.choices(("heartbeat", "leave", "tick", "delete", "operator"), (83, 6, 8, 1, 2))[0]:
        case "leave":
            return LeaveGroup(group_id, (LeavingMember(random.choice(MEMBERS), None),))
        case "tick":
            return Tick(group_id)
        case "delete":
            return DeleteGroup(group_id)
        case "operator":
            return random_operator(random, group_id, list(group.members) if group is not None else ())
    return random_heartbeat(random, group_id, group)


def random_heartbeat(random: Random, group_id: str, group: Group | None) -> ConsumerHeartbeat:
    """A join, a full or short heartbeat, or a leave."""
    member_id = random.choice(MEMBERS)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    instance_id = f"i-{member_id}" if member_id in MEMBERS[:2] else None
    names = frozenset(random.sample(NAMES, random.randint(1, 3)))
    if member is None or random.random() < 0.05:
        return ConsumerHeartbeat(
            group_id,
            member_id,
            0,
            instance_id=instance_id,
            client_id="c",
            client_host="127.0.0.1",
            rebalance_timeout_ms=20_000,
            subscribed_topic_names=names,
            server_assignor=random.choice((None, "range", "uniform")),
            topic_partitions={},
        )
    if random.random() < 0.05:
        return ConsumerHeartbeat(group_id, member_id, -2 if instance_id else -1, instance_id=instance_id)
    return ConsumerHeartbeat(
        group_id,
        member_id,
        member.member_epoch,
        instance_id=instance_id,
        client_id="c",
        client_host="127.0.0.1",
        subscribed_topic_names=names if random.random() < 0.1 else None,
        subscribed_topic_regex=random.choice(("", "a|b", ".*")) if random.random() < 0.1 else None,
        topic_partitions=plain(member.assigned) if random.random() < 0.6 else None,
        max_wait_ms=random.choice((0, 0, 5_000)),
        rights=RIGHTS[member_id in MEMBERS[3:] and random.random() < 0.8],
    )


def random_resolution(random: Random, group: ConsumerGroup, now: int) -> ApplyRegexResolution:
    """The result of one of the resolutions that a group waits for, or one that it does not."""
    rights = random.choice([*group.regex_jobs, "no-a"])
    names = frozenset(random.sample(NAMES, random.randint(0, 3)))
    used = [regex for regex, key in group.members.regexes if key == rights]
    return ApplyRegexResolution(group.group_id, dict.fromkeys(used, names), 1, now, rights)
