"""What goes over the wire after each answer: the whole client against a scripted coordinator."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.client import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    KcoordError,
    MemberState,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    TopicPartition,
    UnexpectedError,
)
from kcoord.client.core.backoff import Backoff
from kcoord.client.core.timers import HeartbeatTimer
from kcoord.protocol.errors import Action, Error
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.scripted import WAIT_S, Refusal, ScriptedCoordinator, consumer_of, name_of, stable, wait_until

TP = TopicPartition("t", 0)
NO_HEARTBEATS = {"heartbeat_interval_ms": 9_000}


@pytest.fixture
def server() -> ScriptedCoordinator:
    return ScriptedCoordinator()


def joins(server: ScriptedCoordinator) -> list[str]:
    return [sent.body["member_id"] for sent in server.all("join")]


# JoinGroup: what follows the answer, as (requests from there on, member ids of the joins)
AFTER_JOIN = {
    "load in progress: the same again": (Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS, retry_after="0"), ["join", "m1"]),
    "not available: find": (Refusal(Error.COORDINATOR_NOT_AVAILABLE), ["coordinator", "join", "m1"]),
    "not coordinator: find": (Refusal(Error.NOT_COORDINATOR), ["coordinator", "join", "m1"]),
    "timed out: find": (Refusal(Error.REQUEST_TIMED_OUT), ["coordinator", "join", "m1"]),
    "disconnected: find": (httpx.ConnectError("refused"), ["coordinator", "join", "m1"]),
    "no answer in time: find": (httpx.ReadTimeout("slow"), ["coordinator", "join", "m1"]),
    "proxy error: find": (httpx.Response(502, text="bad gateway"), ["coordinator", "join", "m1"]),
    "throttled: the same again": (Refusal(Error.THROTTLING_QUOTA_EXCEEDED, retry_after="0"), ["join", "m1"]),
    "unknown member: new identity": (Refusal(Error.UNKNOWN_MEMBER_ID), ["join", ""]),
    "rebalancing: again": (Refusal(Error.REBALANCE_IN_PROGRESS), ["join", "m1"]),
    "wait ran out: again": (Refusal(Error.REBALANCE_IN_PROGRESS, Action.RETRY, member_id="m1"), ["join", "m1"]),
}


@pytest.mark.parametrize(("answer", "then"), AFTER_JOIN.values(), ids=AFTER_JOIN)
def test_join_goes_on(server: ScriptedCoordinator, answer: Any, then: list[str]) -> None:
    server.script("join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), answer)
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer:
        stable(consumer)
        *requests, member_id = then
        assert server.apis()[: 3 + len(requests)] == ["coordinator", "join", "join", *requests]
        assert joins(server)[:3] == ["", "m1", member_id]


FATAL = {
    Error.ILLEGAL_GENERATION: UnexpectedError,
    Error.FENCED_INSTANCE_ID: FencedInstanceIdError,
    Error.INCONSISTENT_GROUP_PROTOCOL: InconsistentGroupProtocolError,
    Error.INVALID_SESSION_TIMEOUT: InvalidSessionTimeoutError,
    Error.GROUP_MAX_SIZE_REACHED: GroupMaxSizeReachedError,
    Error.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    Error.UNKNOWN_SERVER_ERROR: UnexpectedError,
}


@pytest.mark.parametrize(("error", "kind"), FATAL.items(), ids=name_of)
def test_join_is_fatal(server: ScriptedCoordinator, error: Error, kind: type[KcoordError]) -> None:
    server.script("join", Refusal(error))
    with consumer_of(server, "t") as consumer:
        with pytest.raises(kind) as caught:
            consumer.poll(int(WAIT_S * 1000))
        assert caught.value.error is error
        assert caught.value.kafka_code == error.code
        # The next poll tries again: rights may have been granted meanwhile.
        stable(consumer)


def test_join_of_another_protocol_type_is_fatal(server: ScriptedCoordinator) -> None:
    def connect(body: dict[str, Any]) -> Any:
        return server._join({**body, "member_id": "m1"}) | {"protocol_type": "connect"}

    server.script("join", connect)
    with consumer_of(server, "t") as consumer, pytest.raises(InconsistentGroupProtocolError, match="'connect'"):
        consumer.poll(int(WAIT_S * 1000))


AFTER_SYNC = {
    "not available: find, join": (Refusal(Error.COORDINATOR_NOT_AVAILABLE), ["coordinator", "join"], "m1"),
    "not coordinator: find, join": (Refusal(Error.NOT_COORDINATOR), ["coordinator", "join"], "m1"),
    "disconnected: find, join": (httpx.ReadError("reset"), ["coordinator", "join"], "m1"),
    "unknown member: new identity": (Refusal(Error.UNKNOWN_MEMBER_ID), ["join"], ""),
    "illegal generation: id kept": (Refusal(Error.ILLEGAL_GENERATION), ["join"], "m1"),
    "rebalancing: join, id kept": (Refusal(Error.REBALANCE_IN_PROGRESS), ["join"], "m1"),
}


@pytest.mark.parametrize(("answer", "then", "member_id"), AFTER_SYNC.values(), ids=AFTER_SYNC)
def test_sync_rejoins(server: ScriptedCoordinator, answer: Any, then: list[str], member_id: str) -> None:
    server.script("sync", answer)
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer:
        stable(consumer)
        first = ["coordinator", "join", "join", "topic", "sync"]
        assert server.apis()[: len(first) + len(then)] == first + then
        assert joins(server)[2] == member_id


@pytest.mark.parametrize(
    "refusal",
    [Refusal(Error.REBALANCE_IN_PROGRESS, Action.RETRY), Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS, retry_after="0")],
    ids=["its wait ran out", "the coordinator loads"],
)
def test_sync_is_sent_again(server: ScriptedCoordinator, refusal: Refusal) -> None:
    server.script("sync", *[refusal] * 2)
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer:
        stable(consumer)
        first, second, third = server.all("sync")
        assert first.body == second.body == third.body
        assert len(server.all("join")) == 2
        assert len(server.all("coordinator")) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [(error, kind) for error, kind in FATAL.items() if error is not Error.ILLEGAL_GENERATION],
    ids=name_of,
)
def test_sync_is_fatal(server: ScriptedCoordinator, error: Error, kind: type[KcoordError]) -> None:
    server.script("sync", Refusal(error))
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer, pytest.raises(kind):
        consumer.poll(int(WAIT_S * 1000))


@pytest.mark.parametrize("changed", [{"protocol_type": "connect"}, {"protocol_name": "other"}], ids=str)
def test_sync_of_another_protocol_is_fatal(server: ScriptedCoordinator, changed: dict[str, str]) -> None:
    server.script("sync", lambda body: server._sync(body) | changed)
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer, pytest.raises(InconsistentGroupProtocolError):
        consumer.poll(int(WAIT_S * 1000))


def test_generation_reset_during_the_sync_rejoins(server: ScriptedCoordinator) -> None:
    def while_a_heartbeat_is_refused(body: dict[str, Any]) -> Any:
        server.script("heartbeat", Refusal(Error.ILLEGAL_GENERATION))
        wait_until(lambda: consumer.generation.generation_id == -1)
        return server._sync(body)

    server.script("sync", while_a_heartbeat_is_refused)
    with consumer_of(server, "t") as consumer:
        stable(consumer, generation=2)
        assert len(server.all("sync")) == 2
        assert joins(server) == ["", "m1", "m1"]


HEARTBEAT_GOES_ON = {
    "load in progress": (Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS), False),
    "not available": (Refusal(Error.COORDINATOR_NOT_AVAILABLE), True),
    "not coordinator": (Refusal(Error.NOT_COORDINATOR), True),
    "disconnected": (httpx.ConnectError("refused"), True),
    "group authorization": (Refusal(Error.GROUP_AUTHORIZATION_FAILED), False),
    "throttled": (Refusal(Error.THROTTLING_QUOTA_EXCEEDED, retry_after="0"), False),
    "anything else": (Refusal(Error.UNKNOWN_SERVER_ERROR), False),
}


@pytest.mark.parametrize(("answer", "finds"), HEARTBEAT_GOES_ON.values(), ids=HEARTBEAT_GOES_ON)
def test_failed_heartbeats_are_repeated(server: ScriptedCoordinator, answer: Any, finds: bool) -> None:
    with consumer_of(server, "t") as consumer:
        stable(consumer)
        server.script("heartbeat", answer)
        count = len(server.all("heartbeat"))
        server.wait_for("heartbeat", count + 3)
        consumer.poll()
        assert len(server.all("join")) == 2
        assert len(server.all("coordinator")) == (2 if finds else 1)
        assert consumer.assignment()


@pytest.mark.parametrize(
    ("error", "member_id", "reported"),
    [
        (Error.UNKNOWN_MEMBER_ID, "", "lost"),
        (Error.ILLEGAL_GENERATION, "m1", "lost"),
        (Error.REBALANCE_IN_PROGRESS, "m1", "revoked"),
    ],
    ids=name_of,
)
def test_heartbeat_makes_the_member_rejoin(
    server: ScriptedCoordinator, error: Error, member_id: str, reported: str
) -> None:
    listener = Journal()
    with consumer_of(server) as consumer:
        consumer.subscribe(["t"], listener)
        stable(consumer)
        server.script("heartbeat", Refusal(error))
        wait_until(lambda: not server._scripts["heartbeat"])
        stable(consumer, generation=2)
        assert joins(server)[2] == member_id
    assert listener.calls[:4] == [
        ("revoked", []),
        ("assigned", [0, 1, 2, 3]),
        (reported, [0, 1, 2, 3]),
        ("assigned", [0, 1, 2, 3]),
    ]


def test_heartbeats_go_on_until_the_next_poll_of_a_rebalance(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t") as consumer:
        stable(consumer)
        server.script("heartbeat", *[Refusal(Error.REBALANCE_IN_PROGRESS)] * 3)
        server.wait_for("heartbeat", len(server.all("heartbeat")) + 4)
        assert len(server.all("join")) == 2
        assert consumer.state is MemberState.STABLE


def test_fenced_heartbeat_is_fatal_at_the_next_poll(server: ScriptedCoordinator) -> None:
    listener = Journal()
    with consumer_of(server, group_instance_id="i1") as consumer:
        consumer.subscribe(["t"], listener)
        stable(consumer)
        server.script("heartbeat", Refusal(Error.FENCED_INSTANCE_ID))
        wait_until(lambda: consumer.state is MemberState.UNJOINED)
        for _ in range(2):
            with pytest.raises(FencedInstanceIdError) as caught:
                consumer.poll()
            assert caught.value.fatal
        count = len(server.all("heartbeat"))
    assert listener.calls[-1] == ("lost", [0, 1, 2, 3])
    assert len(server.all("heartbeat")) == count
    assert not server.all("leave")


COMMIT_RAISES = {
    Error.UNKNOWN_MEMBER_ID: CommitFailedError,
    Error.ILLEGAL_GENERATION: CommitFailedError,
    Error.REBALANCE_IN_PROGRESS: RebalanceInProgressError,
    Error.FENCED_INSTANCE_ID: FencedInstanceIdError,
    Error.INVALID_GROUP_ID: KcoordError,
    Error.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    Error.OFFSET_METADATA_TOO_LARGE: OffsetMetadataTooLargeError,
    Error.GROUP_ID_NOT_FOUND: UnexpectedError,
}


@pytest.mark.parametrize(("error", "kind"), COMMIT_RAISES.items(), ids=name_of)
def test_commit_raises(server: ScriptedCoordinator, error: Error, kind: type[KcoordError]) -> None:
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer:
        stable(consumer)
        server.script("offsets/commit", Refusal(error))
        with pytest.raises(kind) as caught:
            consumer.commit({TP: 7})
        assert caught.value.error is error
        assert len(server.all("offsets/commit")) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS),
        Refusal(Error.COORDINATOR_NOT_AVAILABLE),
        Refusal(Error.NOT_COORDINATOR),
        Refusal(Error.THROTTLING_QUOTA_EXCEEDED, retry_after="0"),
        httpx.ReadTimeout("slow"),
    ],
    ids=lambda answer: answer.error.name if isinstance(answer, Refusal) else "disconnect",
)
def test_commit_is_repeated(server: ScriptedCoordinator, answer: Any) -> None:
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer:
        stable(consumer)
        server.script("offsets/commit", answer)
        consumer.commit({TP: 7})
        first, second = server.all("offsets/commit")
        assert first.body == second.body
        assert server.committed == {("t", 0): 7}


@pytest.mark.parametrize(
    ("error", "member_id"), [(Error.UNKNOWN_MEMBER_ID, ""), (Error.ILLEGAL_GENERATION, "m1")], ids=str
)
def test_failed_commit_loses_the_partitions(server: ScriptedCoordinator, error: Error, member_id: str) -> None:
    listener = Journal()
    with consumer_of(server, **NO_HEARTBEATS) as consumer:
        consumer.subscribe(["t"], listener)
        stable(consumer)
        server.script("offsets/commit", Refusal(error))
        with pytest.raises(CommitFailedError):
            consumer.commit({TP: 7})
        stable(consumer, generation=2)
        assert joins(server)[2] == member_id
    assert listener.calls[2] == ("lost", [0, 1, 2, 3])


def test_failed_heartbeat_is_repeated_after_the_back_off_not_the_interval(server: ScriptedCoordinator) -> None:
    with consumer_of(server, "t", heartbeat_interval_ms=60_000, session_timeout_ms=120_000) as consumer:
        stable(consumer)
        server.script("heartbeat", Refusal(Error.UNKNOWN_SERVER_ERROR))
        heartbeats = consumer._core.coordinator._shared  # type: ignore[attr-defined]

        def make_due() -> None:
            heartbeats.timer.next_at = 0.0
            heartbeats.condition.notify_all()

        getattr(consumer._driver, "poke", consumer._driver.look)(make_due)
        assert len(server.wait_for("heartbeat", 2)) == 2


def test_coordinator_is_looked_up_when_no_heartbeat_succeeds_for_the_session(server: ScriptedCoordinator) -> None:
    server.script("heartbeat", *[Refusal(Error.UNKNOWN_SERVER_ERROR)] * 1_000)
    with consumer_of(server, "t", session_timeout_ms=200) as consumer:
        stable(consumer)
        assert len(server.wait_for("coordinator", 2)) >= 2
        assert len(server.all("join")) == 2


def test_heartbeat_thread_that_breaks_is_not_silent(
    server: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: HeartbeatTimer, now: float) -> None:
        raise ZeroDivisionError

    with consumer_of(server, "t") as consumer:
        stable(consumer)
        monkeypatch.setattr(HeartbeatTimer, "sent", broken)
        with pytest.raises(RuntimeError, match="heartbeat thread") as caught:
            consumer.poll(int(WAIT_S * 1000))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_repeating_failure_that_asks_for_no_pause_gets_one(
    server: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Join again at once" must not become a storm when the coordinator keeps refusing."""
    pauses: list[object] = []

    def counted(self: Backoff, retry_after_ms: int | None = None) -> float:
        pauses.append(retry_after_ms)
        return 0.0

    monkeypatch.setattr(Backoff, "next_ms", counted)
    server.script(
        "join", Refusal(Error.MEMBER_ID_REQUIRED, member_id="m1"), *[Refusal(Error.REBALANCE_IN_PROGRESS)] * 12
    )
    with consumer_of(server, "t", **NO_HEARTBEATS) as consumer:
        stable(consumer)
        assert len(server.all("join")) == 14
        # 13 answers asked to join again at once; the first five were taken at their word.
        assert len(pauses) == 8
