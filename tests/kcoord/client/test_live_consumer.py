"""Consumer groups of a real server process: what the client and the service do together (KIP-848)."""

from __future__ import annotations

import json
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kcoord.client import (
    CommitFailedError,
    Consumer,
    ConsumerRebalanceListener,
    InvalidRegularExpressionError,
    MemberState,
    TopicPartition,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.live import DEADLINE_S, OUTLASTING_MS, Service, owned, poll_until, running_service, shared_out
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


def test_partitions_move_one_by_one_while_the_others_flow(service: Service, group: str, stack: ExitStack) -> None:
    """A slow revocation in one member stops nothing else: what is not moved is read in the meantime, there and here."""
    topic = service.topic(6)
    settings = service.consumer_settings(group, max_poll_records=1, enable_auto_commit=False)
    flowing: set[int] = set()

    class Slow(Journal):
        def on_partitions_revoked(self, revoked: Any) -> None:
            super().on_partitions_revoked(revoked)
            if revoked and not flowing:
                first.seek_to_beginning()
                for partition in poll_until(lambda: second.state is MemberState.STABLE, first, second):
                    flowing.add(partition.partition)
                for _ in range(12):
                    flowing.update(tp.partition for tp in first.poll(50))

    journal = Slow()
    first = stack.enter_context(Consumer(source=lettered(6, 5, topic), **settings))
    first.subscribe([topic], journal)
    poll_until(lambda: len(owned(first)) == 6, first)
    second = stack.enter_context(Consumer(topic, source=lettered(6, 5, topic), **settings))
    poll_until(lambda: shared_out([first, second], 6), first, second)
    moved = set(journal.calls[1][1])
    assert flowing == {0, 1, 2, 3, 4, 5} - moved
    assert journal.calls == [("assigned", [0, 1, 2, 3, 4, 5]), ("revoked", sorted(moved)), ("assigned", [])]
    assert owned(second) == moved


@WHOLE
def test_a_new_assignment_arrives_at_once(service: Service, group: str, stack: ExitStack) -> None:
    """Held heartbeats: the move takes a few round trips. With an interval longer than the test waits, a member that
    slept through one would be noticed.
    """
    settings = {"consumer.session.timeout.ms": 240_000, "consumer.heartbeat.interval.ms": 120_000}
    changed = service.request("PATCH", f"groups/{group}/config", json=settings)
    assert changed.status_code == 200, changed.text
    topic = service.topic(4)
    first = stack.enter_context(Consumer(topic, **service.consumer_settings(group, max_wait_ms=60_000)))
    poll_until(lambda: len(owned(first)) == 4, first)
    second = stack.enter_context(Consumer(topic, **service.consumer_settings(group, max_wait_ms=60_000)))
    poll_until(lambda: shared_out([first, second], 4), first, second)
    assert first.generation.generation_id == second.generation.generation_id == 2
    second.close()
    poll_until(lambda: len(owned(first)) == 4, first)


@pytest.mark.whole("waits for a session; the demo kills a worker in the default")
def test_killed_worker_is_replaced_after_its_session(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(4)
    survivor = stack.enter_context(Consumer(topic, **service.consumer_settings(group)))
    poll_until(lambda: len(owned(survivor)) == 4, survivor)
    victim = stack.enter_context(start_worker_process(topic, service.consumer_settings(group)))
    poll_until(lambda: len(owned(survivor)) == 2, survivor)
    victim.wait_for_output("assigned 2")
    victim.send(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    poll_until(lambda: len(owned(survivor)) == 4, survivor)


@WHOLE
def test_static_member_comes_back_to_its_partitions(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(4)
    journal = Journal()
    other = stack.enter_context(Consumer(**service.consumer_settings(group, group_instance_id="other")))
    other.subscribe([topic], journal)
    first = stack.enter_context(Consumer(topic, **service.consumer_settings(group, group_instance_id="one")))
    poll_until(lambda: shared_out([first, other], 4), first, other)
    epoch, had, calls = other.generation.generation_id, owned(first), list(journal.calls)
    first.close()
    again = stack.enter_context(Consumer(topic, **service.consumer_settings(group, group_instance_id="one")))
    poll_until(lambda: owned(again) == had, again, other)
    assert again.generation.generation_id == other.generation.generation_id == epoch
    assert again.generation.member_id != first.generation.member_id
    assert journal.calls == calls


@WHOLE
def test_static_worker_that_crashed_comes_back_by_itself(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(4)
    settings = service.consumer_settings(group, group_instance_id="one")
    victim = stack.enter_context(start_worker_process(topic, settings))
    victim.wait_for_output("assigned 4")
    victim.send(signal.SIGKILL)
    victim.wait()
    again = stack.enter_context(Consumer(topic, **settings))
    poll_until(lambda: len(owned(again)) == 4, again)


@WHOLE
def test_instance_id_in_use_is_refused(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    first = stack.enter_context(Consumer(topic, **service.consumer_settings(group, group_instance_id="one")))
    poll_until(lambda: len(owned(first)) == 2, first)
    second = stack.enter_context(Consumer(topic, **service.consumer_settings(group, group_instance_id="one")))
    with pytest.raises(UnreleasedInstanceIdError):
        poll_until(lambda: False, second)
    poll_until(lambda: first.state is MemberState.STABLE, first)


@WHOLE
def test_replaced_static_member_does_not_get_back_in(service: Service, group: str, stack: ExitStack) -> None:
    """It left for a while and somebody took its instance id: coming back as the same member is refused."""
    topic = service.topic(2)
    first = stack.enter_context(
        Consumer(topic, **service.consumer_settings(group, group_instance_id="one", max_poll_interval_ms=1_000))
    )
    poll_until(lambda: len(owned(first)) == 2, first)
    second = stack.enter_context(Consumer(**service.consumer_settings(group, group_instance_id="two")))
    second.subscribe([topic])
    poll_until(lambda: first.state is MemberState.UNJOINED, second)
    third = stack.enter_context(Consumer(topic, **service.consumer_settings(group, group_instance_id="one")))
    poll_until(lambda: shared_out([second, third], 2), second, third)
    with pytest.raises(UnreleasedInstanceIdError):
        poll_until(lambda: False, first)


@WHOLE
def test_pattern_takes_in_topics_that_appear(service: Service, group: str, stack: ExitStack) -> None:
    names = {service.topic(2), service.topic(3)}
    fresh = service.topic_name()
    consumer = stack.enter_context(Consumer(**service.consumer_settings(group)))
    consumer.subscribe(pattern="|".join([*names, f"{fresh[:-2]}.."]))
    poll_until(lambda: len(consumer.assignment()) == 5, consumer)
    assert {topic for topic, _ in consumer.assignment()} == names
    service.topic(1, fresh)
    poll_until(lambda: TopicPartition(fresh, 0) in consumer.assignment(), consumer)
    consumer.subscribe([fresh])
    poll_until(lambda: consumer.assignment() == {TopicPartition(fresh, 0)}, consumer)


@WHOLE
def test_new_partitions_are_given_out(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    members = [stack.enter_context(Consumer(topic, **service.consumer_settings(group))) for _ in range(2)]
    poll_until(lambda: shared_out(members, 2), *members)
    assert service.request("PATCH", f"topics/{topic}", json={"partitions": 6}).status_code == 200
    poll_until(lambda: shared_out(members, 6), *members)


@WHOLE
@pytest.mark.parametrize("assignor", ["range", "uniform"])
def test_assignor_is_the_members_choice(service: Service, group: str, stack: ExitStack, assignor: str) -> None:
    topics = [service.topic(1) for _ in range(2)]
    settings = service.consumer_settings(group, group_remote_assignor=assignor)
    members = [stack.enter_context(Consumer(*topics, **settings)) for _ in range(2)]
    expected = [0, 2] if assignor == "range" else [1, 1]
    poll_until(
        lambda: (
            sorted(len(member.assignment()) for member in members) == expected
            and all(member.state is MemberState.STABLE for member in members)
        ),
        *members,
    )


@WHOLE
def test_what_the_service_does_not_know_is_refused(service: Service, group: str, stack: ExitStack) -> None:
    wishful = stack.enter_context(Consumer("t", **service.consumer_settings(group, group_remote_assignor="best")))
    with pytest.raises(UnsupportedAssignorError):
        poll_until(lambda: False, wishful)
    careless = stack.enter_context(Consumer(**service.consumer_settings(group)))
    careless.subscribe(pattern="(")
    with pytest.raises(InvalidRegularExpressionError):
        poll_until(lambda: False, careless)


@WHOLE
def test_slow_user_is_out_and_comes_back(service: Service, group: str, stack: ExitStack) -> None:
    topic = service.topic(2)
    journal = Journal()
    other = stack.enter_context(Consumer(topic, **service.consumer_settings(group)))
    slow = stack.enter_context(Consumer(**service.consumer_settings(group, max_poll_interval_ms=1_500)))
    slow.subscribe([topic], journal)
    poll_until(lambda: shared_out([slow, other], 2), slow, other)
    member_id, had = slow.generation.member_id, sorted(owned(slow))
    poll_until(lambda: len(owned(other)) == 2, other)
    with pytest.raises(CommitFailedError):
        slow.commit({TopicPartition(topic, 0): 1})
    poll_until(lambda: shared_out([slow, other], 2), slow, other)
    assert ("lost", had) in journal.calls
    assert slow.generation.member_id == member_id


@WHOLE
def test_members_outlive_a_restart_of_the_server(postgres: str, group: str, stack: ExitStack) -> None:
    conninfo = stack.enter_context(cloned_database(postgres))
    service = stack.enter_context(running_service(conninfo))
    topic = service.topic(4)
    outlasting = {"consumer.session.timeout.ms": OUTLASTING_MS}
    assert service.request("PATCH", f"groups/{group}/config", json=outlasting).status_code == 200
    journals = [Journal() for _ in range(2)]
    members = []
    for journal in journals:
        member = stack.enter_context(Consumer(**service.consumer_settings(group)))
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
        for member in members:
            member.close()


class Ledger(ConsumerRebalanceListener):
    """Writes down from when to when a member could read each partition; each member its own thread and file."""

    def __init__(self) -> None:
        self.since: dict[TopicPartition, int] = {}
        self.spans: list[tuple[TopicPartition, int, int]] = []

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.since |= dict.fromkeys(assigned, time.monotonic_ns())

    def on_partitions_revoked(self, revoked: Any) -> None:
        time.sleep(0.01)  # work that goes on until the listener returns
        now = time.monotonic_ns()
        self.spans.extend((tp, self.since.pop(tp), now) for tp in revoked)


@WHOLE
def test_no_partition_is_read_by_two_at_any_instant(service: Service, group: str, tmp_path: Path) -> None:
    """Members come and go in threads of their own; every span of ownership, of all of them, is disjoint."""
    topic = service.topic(8)
    ledgers: list[Ledger] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def live(turns: int) -> None:
        try:
            for _ in range(turns):
                ledger = Ledger()
                ledgers.append(ledger)
                with Consumer(source=lettered(8, 3, topic), **service.consumer_settings(group)) as consumer:
                    consumer.subscribe([topic], ledger)
                    until = time.monotonic() + 1.2
                    while time.monotonic() < until or (turns == 1 and not stop.is_set()):
                        consumer.poll(20)
        except BaseException as error:  # noqa: BLE001 - a thread's failure fails the test
            failures.append(error)

    threads = [threading.Thread(target=live, args=(turns,)) for turns in (1, 4, 3, 3)]
    for thread in threads:
        thread.start()
    for thread in threads[1:]:
        thread.join(DEADLINE_S)
    stop.set()
    threads[0].join(DEADLINE_S)
    assert not failures
    assert not [ledger for ledger in ledgers if ledger.since]
    spans = sorted(span for ledger in ledgers for span in ledger.spans)
    (tmp_path / "spans.json").write_text(json.dumps(spans))
    assert len(spans) > 8, "partitions moved"
    for (tp, _, end), (following, begin, _) in pairwise(spans):
        assert tp != following or end <= begin, f"{tp} had two readers, see {tmp_path}/spans.json"
