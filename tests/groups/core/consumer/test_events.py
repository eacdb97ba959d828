"""The timeline of a consumer group: what its operators are told."""

from __future__ import annotations

from typing import Any

from groups.core.model.events import EventKind, GroupEvent, events_of
from tests.groups.core.consumer.world import World


class Told:
    """A world that keeps the events of every decision."""

    def __init__(self) -> None:
        self.world = World()
        self.world.set_topics(foo=6, bar=2)

    def of(self, act: str, *args: Any, **fields: Any) -> list[GroupEvent]:
        before = self.world.group
        getattr(self.world, act)(*args, **fields)
        assert self.world.last is not None
        return list(events_of(before, self.world.last.records))


def brief(events: list[GroupEvent]) -> list[tuple[str, int, str | None]]:
    return [(event.kind.value, event.generation_id, event.member_id) for event in events]


def test_the_life_of_a_group() -> None:
    told = Told()
    assert brief(told.of("join", "m1", "foo")) == [
        ("group_created", 0, None),
        ("member_joined", 0, "m1"),
        ("group_epoch_bumped", 1, "m1"),
        ("target_computed", 1, None),
        ("member_reconciled", 1, "m1"),
    ]
    assert brief(told.of("heartbeat", "m1", 1)) == []
    assert brief(told.of("join", "m2", "foo")) == [
        ("member_joined", 1, "m2"),
        ("group_epoch_bumped", 2, "m2"),
        ("target_computed", 2, None),
    ]
    assert brief(told.of("heartbeat", "m1", 1)) == []
    assert brief(told.of("heartbeat", "m1", 1, {"foo": [0, 1, 2]})) == [("member_reconciled", 2, "m1")]
    assert brief(told.of("heartbeat", "m2", 2)) == [("member_reconciled", 2, "m2")]
    assert brief(told.of("heartbeat", "m2", -1)) == [("member_left", 2, "m2"), ("group_epoch_bumped", 3, "m2")]


def test_details() -> None:
    told = Told()
    joined = {event.kind: event.detail for event in told.of("join", "m1", "foo", instance_id="i")}
    assert joined[EventKind.MEMBER_JOINED] == {"instance_id": "i", "client_id": "client", "client_host": "10.0.0.1"}
    assert joined[EventKind.GROUP_EPOCH_BUMPED] == {"cause": "group_created"}
    assert joined[EventKind.TARGET_COMPUTED] == {"assignor": "range", "assignment_epoch": 1, "members": 1}
    assert joined[EventKind.MEMBER_RECONCILED] == {"member_epoch": 1, "partitions": 6}
    assert brief(told.of("heartbeat", "m1", -2, instance_id="i")) == [("member_departed", 1, "m1")]
    back = {event.kind: event.detail for event in told.of("join", "m2", "foo", instance_id="i")}
    assert back[EventKind.MEMBER_REPLACED] == {"instance_id": "i", "old_member_id": "m1"}
    expired = {event.kind: event.detail for event in told.of("advance", 45_000)}
    assert expired[EventKind.MEMBER_EXPIRED] == {
        "instance_id": "i",
        "cause": "session_expired",
        "session_timeout_ms": 45_000,
    }


def test_topics_and_expressions() -> None:
    told = Told()
    told.of("join", "m1", "foo", subscribed_topic_regex="b.*")
    resolved = told.of("resolve_regexes")
    assert [(event.kind, event.detail) for event in resolved] == [
        (EventKind.REGEXES_RESOLVED, {"topics": 1}),
        (EventKind.GROUP_EPOCH_BUMPED, {"cause": "regexes_resolved"}),
    ]
    told.world.heartbeat("m1", 1)
    told.world.set_topics(foo=7)
    grown = {event.kind: event.detail for event in told.of("heartbeat", "m1", 2)}
    assert grown[EventKind.GROUP_EPOCH_BUMPED] == {"cause": "topics_changed"}


def test_expressions_that_match_the_same_topics_as_before_are_no_event() -> None:
    """They are matched again as long as there are members: each time it would displace an event that says something."""
    told = Told()
    told.of("join", "m1", "foo", subscribed_topic_regex="b.*")
    assert told.of("resolve_regexes")
    for epoch, topics, expected in ((1, {}, []), (2, {"baz": 1}, [{"topics": 2}])):
        told.world.set_topics(foo=6, bar=2, other=1, **topics)
        told.world.advance(40_000)
        told.world.heartbeat("m1", epoch)
        resolved = told.of("resolve_regexes")
        assert [event.detail for event in resolved if event.kind is EventKind.REGEXES_RESOLVED] == expected


def test_who_holds_on_is_removed() -> None:
    told = Told()
    told.world.join("m1", "foo")
    told.world.join("m2", "foo")
    told.world.heartbeat("m1", 1)
    removed = told.of("advance", 5_000)
    assert brief(removed) == [("member_removed", 2, "m1"), ("group_epoch_bumped", 3, "m1")]
    assert removed[0].detail == {"cause": "rebalance_timed_out"}
