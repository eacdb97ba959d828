"""Consumer groups as the user sees them: what moves, what the listener hears, what is subscribed to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kcoord.client import Consumer, ConsumerRebalanceListener, IllegalStateError, MemberState, TopicPartition
from kcoord.protocol.errors import Error
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.scripted import WAIT_S, Refusal, consumer_of, stable, wait_until
from tests.kcoord.client.scripted_group import API, ScriptedGroup, member_of, poll_until_owned, poll_until_read, t
from tests.kcoord.client.sources import lettered

LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedGroup:
    return ScriptedGroup()


def reported(*numbers: int) -> list[dict[str, Any]]:
    """Partitions of topic t as a heartbeat reports them."""
    return [{"topic_id": "id-of-t", "partitions": list(numbers)}] if numbers else []


def test_member_gives_up_what_moves_and_keeps_reading_the_rest(server: ScriptedGroup) -> None:
    journal = Journal()
    with member_of(server, source=lettered(4, 2)) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        poll_until_read(consumer, 2)
        server.assign(t(0, 1))
        poll_until_owned(consumer, t(0, 1))
        stable(consumer, generation=2)
        assert [consumer.position(tp) for tp in sorted(consumer.assignment())] == [2, 2]
        server.assign(t(0, 1, 3))
        poll_until_owned(consumer, t(0, 1, 3))
        stable(consumer, generation=3)
        assert server.acknowledged() == [[], reported(0, 1, 2, 3), reported(0, 1), reported(0, 1, 3)]
    assert journal.calls == [
        ("assigned", [0, 1, 2, 3]),
        ("revoked", [2, 3]),
        ("assigned", []),
        ("assigned", [3]),
        ("revoked", [0, 1, 3]),
    ]
    first = server.all("offsets/commit")[0].body["topics"]
    assert [p["partition"] for topic in first for p in topic["partitions"]] == [2, 3]
    assert server.leaves() == [-1]


def test_revocation_is_acknowledged_after_the_listener_returned(server: ScriptedGroup) -> None:
    seen: list[tuple[list[Any], MemberState]] = []

    class Watching(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            server.wait_for_heartbeats(2)
            consumer.commit(dict.fromkeys(revoked, 7))
            seen.append((server.acknowledged(), consumer.state))

        def on_partitions_assigned(self, assigned: Any) -> None:
            server.wait_for_heartbeats(2)
            seen.append((server.acknowledged(), consumer.state))

    with member_of(server, enable_auto_commit=False) as consumer:
        consumer.subscribe(["t"], Watching())
        stable(consumer)
        server.assign(t(0))
        poll_until_owned(consumer, t(0))
        stable(consumer, generation=2)
        assert server.committed == {("t", 1): 7, ("t", 2): 7, ("t", 3): 7}
        before = [[], reported(0, 1, 2, 3)]
        reconciling = MemberState.REBALANCING
        assert seen == [(before[:1], reconciling), (before, reconciling), (before, reconciling)]
        consumer.subscribe(["t"])


@pytest.mark.parametrize("method", ["on_partitions_revoked", "on_partitions_assigned"])
def test_listener_that_raises_keeps_the_member_from_acknowledging(server: ScriptedGroup, method: str) -> None:
    journal = Journal()
    works = getattr(journal, method)
    fails = threading.Event()

    def raise_at_first(partitions: Any) -> None:
        works(partitions)
        if fails.is_set():
            raise ZeroDivisionError

    setattr(journal, method, raise_at_first)
    with member_of(server, source=lettered(6, 1)) as consumer:
        consumer.subscribe(["t"], journal)
        stable(consumer)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        fails.set()
        server.assign(t(2, 3, 4))
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                consumer.poll(LONG_MS)
            server.wait_for_heartbeats(1)
            assert consumer.state is MemberState.REBALANCING
        assert server.acknowledged() == [[], reported(0, 1, 2, 3)]
        changed = t(0, 1) if method == "on_partitions_revoked" else t(4)
        assert not {("t", tp.partition) for tp in consumer._core.subscription.fetchable()} & changed
        fails.clear()
        poll_until_owned(consumer, t(2, 3, 4))
        stable(consumer, generation=2)
        assert server.acknowledged()[-1] == reported(2, 3, 4)
    told = [call for call in journal.calls if call[0] == method.removeprefix("on_partitions_")]
    repeated = ("revoked", [0, 1]) if method == "on_partitions_revoked" else ("assigned", [4])
    assert told.count(repeated) == 4


def test_nothing_is_read_before_the_listener_has_returned(server: ScriptedGroup) -> None:
    """A poll inside of the listener reads what the member has, not what it is about to get or to lose."""
    seen: dict[str, set[int]] = {}

    class Polling(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            consumer.seek_to_beginning()
            seen["revoking"] = {tp.partition for tp in consumer.poll(50)}

        def on_partitions_assigned(self, assigned: Any) -> None:
            consumer.seek_to_beginning()
            seen["assigning"] = {tp.partition for tp in consumer.poll(50)}

    server.target = t(0, 1)
    with member_of(server, "t", source=lettered(4, 1)) as consumer:
        poll_until_owned(consumer, t(0, 1))
        consumer.subscribe(["t"], Polling())
        server.assign(t(1, 2))
        poll_until_owned(consumer, t(1, 2))
        assert seen == {"revoking": {1}, "assigning": {1}}
        consumer.subscribe(["t"])


def test_newer_assignment_waits_until_the_older_is_in_place(server: ScriptedGroup) -> None:
    class Slow(Journal):
        def on_partitions_revoked(self, revoked: Any) -> None:
            super().on_partitions_revoked(revoked)
            if len(revoked) == 1:
                server.assign(t(0))
                server.wait_for_heartbeats(2)

    journal = Slow()
    with member_of(server) as consumer:
        consumer.subscribe(["t"], journal)
        stable(consumer)
        server.assign(t(0, 1, 2))
        poll_until_owned(consumer, t(0))
        stable(consumer, generation=3)
        assert server.acknowledged() == [[], reported(0, 1, 2, 3), reported(0, 1, 2), reported(0)]
    assert journal.calls[1:5] == [("revoked", [3]), ("assigned", []), ("revoked", [1, 2]), ("assigned", [])]


def test_member_that_is_dropped_while_it_reconciles_reports_the_rest_lost(server: ScriptedGroup) -> None:
    class Unlucky(Journal):
        def on_partitions_revoked(self, revoked: Any) -> None:
            super().on_partitions_revoked(revoked)
            if server.epoch == 2:
                server.script(API, Refusal(Error.FENCED_MEMBER_EPOCH))
                wait_until(lambda: consumer.state is MemberState.UNJOINED)

    journal = Unlucky()
    with member_of(server) as consumer:
        consumer.subscribe(["t"], journal)
        stable(consumer)
        server.assign(t(2, 3))
        stable(consumer, generation=3)
        poll_until_owned(consumer, t(2, 3))
    assert journal.calls[1:4] == [("revoked", [0, 1]), ("lost", [2, 3]), ("assigned", [2, 3])]


def test_topic_that_was_made_anew_is_another_topic(server: ScriptedGroup) -> None:
    journal = Journal()
    with member_of(server, source=lettered(4, 3)) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        server.epoch = 2
        poll_until_read(consumer, 3)
        anew = server.answer(2, t(0, 1, 2, 3))
        anew["assignment"]["topic_partitions"][0]["topic_id"] = "another"
        server.script(API, anew)
        acknowledged = [{"topic_id": "another", "partitions": [0, 1, 2, 3]}]
        wait_until(lambda: consumer.poll(5) is not None and server.acknowledged()[-1] == acknowledged)
        assert journal.calls[1:] == [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]


def test_partitions_of_a_deleted_topic_are_not_read(server: ScriptedGroup) -> None:
    with member_of(server, "t") as consumer:
        poll_until_owned(consumer, t(0, 1, 2, 3))
        gone = server.answer(2, t(0))
        gone["assignment"]["topic_partitions"].append({"topic_id": "gone", "topic": None, "partitions": [0, 1]})
        server.script(API, gone)
        poll_until_owned(consumer, t(0))
        wait_until(lambda: server.acknowledged()[-1] == reported(0))


# Long polls


def test_assignment_arrives_while_the_heartbeat_is_held() -> None:
    server = ScriptedGroup(holds=True, interval_ms=60_000)
    with member_of(server, "t") as consumer:
        stable(consumer)
        poll_until_owned(consumer, t(0, 1, 2, 3))
        wait_until(lambda: server.heartbeats()[-1]["max_wait_ms"] == 30_000)
        assert "topic_partitions" not in server.heartbeats()[-1] or len(server.heartbeats()) == 2
        server.assign(t(0, 1))
        poll_until_owned(consumer, t(0, 1))
        stable(consumer, generation=2)


def test_member_without_partitions_waits_for_some_at_the_service() -> None:
    server = ScriptedGroup(holds=True, interval_ms=60_000)
    server.target = t()
    with member_of(server, "t") as consumer:
        stable(consumer)
        wait_until(lambda: server.heartbeats()[-1]["max_wait_ms"] == 30_000)
        server.assign(t(2))
        poll_until_owned(consumer, t(2))


def test_service_that_does_not_hold_is_asked_once_an_interval(server: ScriptedGroup) -> None:
    server.interval_ms = 60_000
    with member_of(server, "t") as consumer:
        poll_until_owned(consumer, t(0, 1, 2, 3))
        wait_until(lambda: len(server.heartbeats()) >= 2)
        stable(consumer)
        join, acknowledgement = server.heartbeats()
        assert (join["max_wait_ms"], acknowledgement["max_wait_ms"]) == (0, 30_000)
        consumer.poll(50)
        assert len(server.heartbeats()) == 2


def test_member_with_something_to_do_does_not_let_its_heartbeats_be_held(server: ScriptedGroup) -> None:
    waits: list[int] = []

    class Slow(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Any) -> None:
            waits.extend(s.body["max_wait_ms"] for s in server.wait_for_heartbeats(3)[-3:])

    with member_of(server) as consumer:
        consumer.subscribe(["t"], Slow())
        stable(consumer)
        assert waits == [0, 0, 0]


# Subscriptions


def test_pattern_is_matched_by_the_service(server: ScriptedGroup) -> None:
    with member_of(server) as consumer:
        consumer.subscribe(pattern="t.*")
        poll_until_owned(consumer, t(0, 1, 2, 3))
        stable(consumer)
        assert server.subscriptions() == [([], "t.*")]
        consumer.subscribe(["t"])
        wait_until(lambda: consumer.poll(5) is not None and len(server.subscriptions()) == 2)
        assert server.subscriptions() == [([], "t.*"), (["t"], "")]
        assert len(server.joins()) == 1


def test_pattern_needs_the_consumer_protocol(server: ScriptedGroup) -> None:
    with consumer_of(server) as consumer, pytest.raises(IllegalStateError, match='group_protocol="consumer"'):
        consumer.subscribe(pattern="t.*")


def test_members_cannot_ask_for_a_rebalance(server: ScriptedGroup) -> None:
    with member_of(server, "t") as consumer, pytest.raises(IllegalStateError, match="the service balances"):
        consumer.enforce_rebalance()


def test_identity_and_wishes_are_told(server: ScriptedGroup) -> None:
    wishes = {"client_rack": "r1", "group_remote_assignor": "range", "client_id": "billing"}
    with member_of(server, "t", max_poll_interval_ms=9_000, **wishes) as consumer:
        stable(consumer)
        (join,) = server.joins()
        assert (join["rack_id"], join["server_assignor"], join["client_id"]) == ("r1", "range", "billing")
        assert join["rebalance_timeout_ms"] == 9_000
        assert join["member_id"] == consumer.generation.member_id


def test_assignment_by_hand_takes_no_part(server: ScriptedGroup) -> None:
    with member_of(server, source=lettered(4, 1)) as consumer:
        consumer.assign([TopicPartition("t", 1)])
        assert consumer.poll(LONG_MS)
        consumer.commit()
        body = server.all("offsets/commit")[0].body
        assert (body["member_id"], body["generation_id_or_member_epoch"]) == ("", -1)
    assert not server.all(API)


def test_each_consumer_makes_an_id_of_its_own(server: ScriptedGroup) -> None:
    made: Callable[[Consumer], str] = lambda consumer: consumer.generation.member_id  # noqa: E731
    with member_of(server) as one, member_of(server) as other:
        assert made(one) != made(other)
