"""Consumers against a real server process: what the client and the service do together."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta

import pytest

from kcoord.client import (
    CommitFailedError,
    Consumer,
    FencedInstanceIdError,
    MemberState,
    OffsetAndMetadata,
    TopicPartition,
)
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.live import (
    DEADLINE_S,
    OUTLASTING_MS,
    SESSION_MS,
    Service,
    owned,
    poll_until,
    running_service,
    shared_out,
)
from tests.kcoord.client.scripted import wait_until
from tests.kcoord.client.sources import lettered
from tests.kcoord.client.worker import start_worker_process
from tests.support.database import cloned_database
from tests.support.processes import start_server

pytestmark = pytest.mark.processes
WHOLE = pytest.mark.whole("more of the live client; the default has a hand-over and a kill, and scripted coordinators")


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


@pytest.fixture
def group() -> str:
    return f"group-{secrets.token_hex(4)}"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def session_end(service: Service, group: str) -> datetime:
    """When the session of the group's only member ends if nothing renews it."""
    (member,) = service.describe(group)["members"]
    return datetime.fromisoformat(member["session_expires_at"])


def test_two_members_share_and_hand_over_on_leave(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(6)
    source = lettered(6, 10, topic)
    first = stack.enter_context(Consumer(topic, source=source, **service.settings(group)))
    records = poll_until(lambda: len(owned(first)) == 6, first)
    second = stack.enter_context(Consumer(topic, source=source, **service.settings(group)))
    for partition, more in poll_until(lambda: shared_out([first, second], 6), first, second).items():
        records.setdefault(partition, []).extend(more)
    assert first.generation.generation_id == second.generation.generation_id
    second.close()
    for partition, more in poll_until(lambda: len(owned(first)) == 6, first).items():
        records.setdefault(partition, []).extend(more)
    offsets = [[r.offset for r in records[TopicPartition(topic, p)]] for p in range(6)]
    assert offsets == [list(range(10))] * 6


@WHOLE
def test_lag_shows_without_anybody_reporting_it(service: Service, group: str) -> None:
    topic = service.topic(2)
    source = lettered(2, 10, topic)
    settings = {"max_poll_records": 4, "enable_auto_commit": False, "watermark_interval_ms": 200}
    with Consumer(topic, source=source, **settings, **service.settings(group)) as consumer:
        poll_until(lambda: len(owned(consumer)) == 2, consumer)
        positions = {partition: consumer.position(partition) for partition in consumer.assignment()}
        consumer.commit(positions)
        consumer.pause(*positions)

        def lag() -> dict[int, int | None]:
            consumer.poll(10)
            (found,) = service.request("GET", f"groups/{group}/lag").json()["topics"]
            return {entry["partition"]: entry["lag"] for entry in found["partitions"]}

        expected = {partition.partition: 10 - position for partition, position in positions.items()}
        wait_until(lambda: lag() == expected)
        source.partitions[topic, 1].append("more")
        expected[1] += 1
        wait_until(lambda: lag() == expected)


def test_commits_are_where_the_next_owner_begins(service: Service, group: str) -> None:
    topic = service.topic(1)
    partition = TopicPartition(topic, 0)
    with Consumer(topic, source=lettered(1, 10, topic), **service.settings(group, max_poll_records=4)) as consumer:
        poll_until(lambda: consumer.assignment() != frozenset() and consumer.position(partition) >= 4, consumer)
        consumer.commit({partition: OffsetAndMetadata(3, "three", 2)})
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(3, "three", 2)}
        consumer.close(autocommit=False)
    with Consumer(topic, source=lettered(1, 10, topic), **service.settings(group)) as consumer:
        poll_until(lambda: bool(consumer.assignment()), consumer)
        assert consumer.position(partition) in (3, 10)
        consumer.seek(partition, 8)
        consumer.pause(partition)
        assert consumer.poll(50) == {}
        consumer.resume(partition)
        records = poll_until(lambda: consumer.position(partition) == 10, consumer)[partition]
        assert [r.value for r in records] == ["0:8", "0:9"]
    with Consumer(topic, **service.settings(group)) as consumer:
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(10)}


@WHOLE
def test_killed_worker_is_replaced_after_its_session(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(4)
    survivor = stack.enter_context(Consumer(topic, **service.settings(group)))
    poll_until(lambda: len(owned(survivor)) == 4, survivor)
    victim = stack.enter_context(start_worker_process(topic, service.settings(group)))
    poll_until(lambda: len(owned(survivor)) == 2, survivor)
    victim.wait_for_output("assigned 2")
    victim.send(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    poll_until(lambda: len(owned(survivor)) == 4, survivor)
    assert len(service.describe(group)["members"]) == 1


@WHOLE
def test_slow_user_leaves_with_a_reason_and_comes_back(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    journal = Journal()
    other = stack.enter_context(Consumer(topic, **service.settings(group)))
    # With a short session, a heartbeat that is late makes it look for the coordinator, and then it cannot leave.
    slow = stack.enter_context(
        Consumer(**service.settings(group, max_poll_interval_ms=1_500, session_timeout_ms=30_000))
    )
    slow.subscribe([topic], journal)
    poll_until(lambda: shared_out([slow, other], 2), slow, other)
    member_id, had = slow.generation.member_id, sorted(owned(slow))
    # The user is busy: only the other polls, until it has been given everything.
    poll_until(lambda: len(owned(other)) == 2, other)
    assert slow.state is MemberState.UNJOINED
    events = service.request("GET", f"groups/{group}/events").json()["events"]
    reasons = [str(event) for event in events if member_id in str(event)]
    assert any("consumer poll timeout has expired" in reason for reason in reasons), reasons
    with pytest.raises(CommitFailedError):
        slow.commit({TopicPartition(topic, 0): 1})
    poll_until(lambda: shared_out([slow, other], 2), slow, other)
    assert ("lost", had) in journal.calls
    assert slow.generation.member_id != member_id


@WHOLE
def test_user_slower_than_the_session_keeps_it(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    busy = stack.enter_context(Consumer(topic, **service.settings(group)))
    poll_until(lambda: len(owned(busy)) == 2, busy)
    generation = busy.generation
    # Longer than the session, by the service's own clock: only heartbeats move its end.
    first_end = session_end(service, group)
    wait_until(lambda: session_end(service, group) > first_end + timedelta(milliseconds=SESSION_MS + 500), pause_s=0.2)
    busy.commit({TopicPartition(topic, 0): 1})
    assert busy.generation == generation


@WHOLE
def test_static_member_restarts_without_a_rebalance(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(4)
    other = stack.enter_context(Consumer(topic, **service.settings(group, group_instance_id="other")))
    first = stack.enter_context(Consumer(topic, **service.settings(group, group_instance_id="one")))
    poll_until(lambda: shared_out([first, other], 4), first, other)
    generation, had = other.generation.generation_id, owned(first)
    first.close()
    again = stack.enter_context(Consumer(topic, **service.settings(group, group_instance_id="one")))
    poll_until(lambda: owned(again) == had, again, other)
    assert again.generation.generation_id == other.generation.generation_id == generation


@WHOLE
def test_second_user_of_an_instance_id_fences_the_first(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    journal = Journal()
    first = stack.enter_context(Consumer(**service.settings(group, group_instance_id="one")))
    first.subscribe([topic], journal)
    poll_until(lambda: len(owned(first)) == 2, first)
    second = stack.enter_context(Consumer(topic, **service.settings(group, group_instance_id="one")))
    poll_until(lambda: len(owned(second)) == 2, second)
    with pytest.raises(FencedInstanceIdError):
        poll_until(lambda: False, first)
    first.close()
    assert journal.calls[-1] == ("lost", [0, 1])
    poll_until(lambda: second.state is MemberState.STABLE and len(owned(second)) == 2, second)


@WHOLE
def test_cooperative_rebalance_leaves_the_others_alone(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(6)
    settings = service.settings(group, partition_assignment_strategy=["cooperative-sticky"])
    journals = [Journal() for _ in range(3)]
    members: list[Consumer] = []
    for count, journal in enumerate(journals, 1):
        member = stack.enter_context(Consumer(source=lettered(6, 1, topic), **settings))
        member.subscribe([topic], journal)
        members.append(member)
        poll_until(lambda: shared_out(members, 6), *members)
        assert all(len(owned(m)) == 6 // count for m in members)
    revoked = [p for name, partitions in journals[0].calls if name == "revoked" for p in partitions]
    assigned = [p for name, partitions in journals[0].calls if name == "assigned" for p in partitions]
    # It gave up three partitions and one more, and never had to take one back.
    assert (len(revoked), sorted(assigned)) == (4, [0, 1, 2, 3, 4, 5])
    assert not [name for journal in journals for name, _ in journal.calls if name == "lost"]


@WHOLE
def test_leader_sees_a_raised_partition_count(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    settings = service.settings(group, metadata_max_age_ms=100)
    members = [stack.enter_context(Consumer(topic, **settings)) for _ in range(2)]
    poll_until(lambda: shared_out(members, 2), *members)
    assert service.request("PATCH", f"topics/{topic}", json={"partitions": 6}).status_code == 200
    poll_until(lambda: shared_out(members, 6), *members)


@WHOLE
def test_listener_is_called_in_order(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    journal = Journal()
    first = stack.enter_context(Consumer(**service.settings(group)))
    first.subscribe([topic], journal)
    poll_until(lambda: len(owned(first)) == 2, first)
    second = stack.enter_context(Consumer(topic, **service.settings(group)))
    poll_until(lambda: shared_out([first, second], 2), first, second)
    (kept,) = owned(first)
    first.close()
    assert journal.calls == [
        ("revoked", []),
        ("assigned", [0, 1]),
        ("revoked", [0, 1]),
        ("assigned", [kept]),
        ("revoked", [kept]),
    ]


@WHOLE
def test_members_outlive_a_restart_of_the_server(postgres: str, group: str, stack: ExitStack) -> None:
    conninfo = stack.enter_context(cloned_database(postgres))
    service = stack.enter_context(running_service(conninfo))
    topic = service.topic(4)
    journals = [Journal() for _ in range(2)]
    members = []
    for journal in journals:
        member = stack.enter_context(Consumer(**service.settings(group, session_timeout_ms=OUTLASTING_MS)))
        member.subscribe([topic], journal)
        members.append(member)
    poll_until(lambda: shared_out(members, 4), *members)
    before = [list(journal.calls) for journal in journals]
    service.server.kill()
    with start_server(conninfo, port=service.server.port or 0) as restarted:
        restarted.wait_ready()
        for partition in range(4):
            owner = next(m for m in members if partition in owned(m))
            owner.commit({TopicPartition(topic, partition): 7}, timeout_ms=int(DEADLINE_S * 1000))
        poll_until(lambda: all(m.state is MemberState.STABLE for m in members), *members)
        assert [journal.calls for journal in journals] == before
        newcomer = stack.enter_context(Consumer(topic, **service.settings(group)))
        poll_until(lambda: shared_out([*members, newcomer], 4), *members, newcomer)
        for member in [*members, newcomer]:
            member.close()


@WHOLE
def test_rights_are_enforced(service: Service, group: str) -> None:
    with Consumer("t", **service.settings(group, token="wrong")) as consumer:
        with pytest.raises(Exception, match="SASL_AUTHENTICATION_FAILED") as caught:
            poll_until(lambda: False, consumer)
        assert getattr(caught.value, "fatal", False)
