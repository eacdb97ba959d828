"""What goes over the wire after each answer in a consumer group: the whole client against a scripted service."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.client import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupMaxSizeReachedError,
    InvalidRegularExpressionError,
    KcoordError,
    MemberState,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    TopicAuthorizationError,
    TopicPartition,
    UnexpectedError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)
from kcoord.client.core.consumer_group.reactions import HEARTBEAT, Reaction
from kcoord.client.core.consumer_group.timer import ConsumerHeartbeatTimer
from kcoord.protocol.errors import Error
from tests.kcoord.client.journal import Journal
from tests.kcoord.client.scripted import WAIT_S, Refusal, name_of, stable, wait_until
from tests.kcoord.client.scripted_group import API, ScriptedGroup, member_of, owned, poll_until_owned, t

TP = TopicPartition("t", 0)
LONG_MS = int(WAIT_S * 1000)


@pytest.fixture
def server() -> ScriptedGroup:
    return ScriptedGroup()


PASSING = {
    "load in progress": (Refusal(Error.COORDINATOR_LOAD_IN_PROGRESS), 1),
    "not available": (Refusal(Error.COORDINATOR_NOT_AVAILABLE), 2),
    "not coordinator": (Refusal(Error.NOT_COORDINATOR), 2),
    "timed out": (Refusal(Error.REQUEST_TIMED_OUT), 2),
    "throttled": (Refusal(Error.THROTTLING_QUOTA_EXCEEDED, retry_after="0"), 1),
    "disconnected": (httpx.ConnectError("refused"), 2),
    "no answer in time": (httpx.ReadTimeout("slow"), 2),
    "proxy error": (httpx.Response(502, text="bad gateway"), 2),
}


@pytest.mark.parametrize(("answer", "lookups"), PASSING.values(), ids=PASSING)
def test_failed_join_is_sent_again(server: ScriptedGroup, answer: Any, lookups: int) -> None:
    server.script(API, answer)
    with member_of(server, "t") as consumer:
        stable(consumer)
        first, second = server.joins()
        assert first == second
        assert len(server.all("coordinator")) == lookups


def full_ones(server: ScriptedGroup) -> list[dict[str, Any]]:
    """The heartbeats so far that said everything: the join, and one after each failure."""
    return [body for body in server.heartbeats() if "subscribed_topic_names" in body]


@pytest.mark.parametrize(
    ("answer", "lookups"),
    [*PASSING.values(), (Refusal(Error.UNKNOWN_SERVER_ERROR), 1)],
    ids=[*PASSING, "unknown server error"],
)
def test_heartbeat_after_a_failed_one_is_full(server: ScriptedGroup, answer: Any, lookups: int) -> None:
    journal = Journal()
    with member_of(server) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script(API, answer)
        wait_until(lambda: len(full_ones(server)) > 1)
        server.wait_for_heartbeats(2)
        _, full = full_ones(server)
        assert full["subscribed_topic_names"] == ["t"]
        assert full["topic_partitions"] == [{"topic_id": "id-of-t", "partitions": [0, 1, 2, 3]}]
        assert full["member_epoch"] == 1
        assert len(server.all("coordinator")) == lookups
        consumer.poll()
        assert journal.calls == [("assigned", [0, 1, 2, 3])]


@pytest.mark.parametrize(
    "error", [error for error, reaction in HEARTBEAT.items() if reaction is Reaction.REJOIN], ids=name_of
)
def test_dropped_member_loses_its_partitions_and_rejoins_as_itself(server: ScriptedGroup, error: Error) -> None:
    journal = Journal()
    with member_of(server) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script(API, Refusal(error))
        wait_until(lambda: consumer.state is MemberState.UNJOINED)
        count = len(server.heartbeats())
        with pytest.raises(CommitFailedError):
            consumer.commit({TP: 1})
        assert journal.calls == [("assigned", [0, 1, 2, 3])], "the user's thread reports it"
        assert owned(consumer) == server.target
        assert len(server.heartbeats()) == count, "nothing is sent before that"
        stable(consumer, generation=2)
        poll_until_owned(consumer, server.target)
        assert journal.calls == [("assigned", [0, 1, 2, 3]), ("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]
        first, second = server.joins()
        assert first == second, "the same member id, nothing owned"


FATAL = {
    Error.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    Error.INVALID_REQUEST: UnexpectedError,
    Error.GROUP_MAX_SIZE_REACHED: GroupMaxSizeReachedError,
    Error.UNSUPPORTED_ASSIGNOR: UnsupportedAssignorError,
    Error.UNRELEASED_INSTANCE_ID: UnreleasedInstanceIdError,
    Error.FENCED_INSTANCE_ID: FencedInstanceIdError,
    Error.INVALID_REGULAR_EXPRESSION: InvalidRegularExpressionError,
    Error.CLUSTER_AUTHORIZATION_FAILED: UnexpectedError,
}


@pytest.mark.parametrize(
    ("error", "kind"),
    [*FATAL.items(), (Error.GROUP_ID_NOT_FOUND, UnexpectedError), (Error.UNKNOWN_SERVER_ERROR, UnexpectedError)],
    ids=name_of,
)
def test_join_is_fatal(server: ScriptedGroup, error: Error, kind: type[KcoordError]) -> None:
    server.script(API, Refusal(error))
    with member_of(server, "t") as consumer:
        for _ in range(2):
            with pytest.raises(kind) as caught:
                consumer.poll(LONG_MS)
            assert caught.value.error is error
    assert len(server.heartbeats()) == 1, "nothing more is sent, no leave either"


@pytest.mark.parametrize(("error", "kind"), FATAL.items(), ids=name_of)
def test_heartbeat_is_fatal_and_the_partitions_are_lost(
    server: ScriptedGroup, error: Error, kind: type[KcoordError]
) -> None:
    journal = Journal()
    with member_of(server) as consumer:
        consumer.subscribe(["t"], journal)
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script(API, Refusal(error))
        with pytest.raises(kind):
            consumer.poll(LONG_MS)
        assert journal.calls[-1] == ("lost", [0, 1, 2, 3])
        assert not consumer.assignment()
        with pytest.raises(kind):
            consumer.commit({TP: 1})
    assert not server.leaves()


def test_forbidden_topic_is_told_and_the_member_goes_on(server: ScriptedGroup) -> None:
    with member_of(server, "t") as consumer:
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script(API, Refusal(Error.TOPIC_AUTHORIZATION_FAILED))
        with pytest.raises(TopicAuthorizationError):
            consumer.poll(LONG_MS)
        server.wait_for_heartbeats(2)
        consumer.poll()
        assert consumer.state is MemberState.STABLE
        assert owned(consumer) == server.target
        assert len(server.joins()) == 1


def test_repeated_refusals_of_a_join_are_spaced(server: ScriptedGroup) -> None:
    """ "At once" is meant, but not for ever."""
    server.script(API, *[Refusal(Error.FENCED_MEMBER_EPOCH)] * 6)
    with member_of(server, "t", retry_backoff_ms=30, retry_backoff_max_ms=30) as consumer:
        stable(consumer)
        assert len(server.joins()) == 7
        backoff = consumer._core.coordinator._member.timer._backoff  # type: ignore[attr-defined]
        assert backoff.attempts == 0, "the success ends the row"


def test_heartbeat_thread_that_breaks_is_not_silent(server: ScriptedGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: ConsumerHeartbeatTimer, now: float) -> None:
        raise ZeroDivisionError

    with member_of(server, "t") as consumer:
        stable(consumer)
        monkeypatch.setattr(ConsumerHeartbeatTimer, "sent", broken)
        with pytest.raises(RuntimeError, match="heartbeat thread") as caught:
            consumer.poll(LONG_MS)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


# Offsets


def test_commits_and_fetches_carry_member_and_epoch(server: ScriptedGroup) -> None:
    with member_of(server, "t", group_instance_id="i1", enable_auto_commit=False) as consumer:
        poll_until_owned(consumer, server.target)
        consumer.commit({TP: 7})
        member_id = consumer.generation.member_id
        body = server.all("offsets/commit")[0].body
        assert (body["member_id"], body["generation_id_or_member_epoch"]) == (member_id, 1)
        assert body["group_instance_id"] == "i1"
        assert consumer.committed([TP])
        fetched = server.all("offsets/fetch")[-1].body
        assert (fetched["member_id"], fetched["member_epoch"]) == (member_id, 1)


def test_fetch_outside_of_the_group_is_anybodys(server: ScriptedGroup) -> None:
    with member_of(server) as consumer:
        assert consumer.committed([TP]) == {TP: None}
        assert "member_id" not in server.all("offsets/fetch")[0].body


def test_commit_with_a_stale_epoch_is_sent_again_with_the_newer_one(server: ScriptedGroup) -> None:
    def stale(body: dict[str, Any]) -> Any:
        server.assign(server.target)
        wait_until(lambda: consumer.generation.generation_id == 2)
        return Refusal(Error.STALE_MEMBER_EPOCH)

    with member_of(server, "t", enable_auto_commit=False) as consumer:
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script("offsets/commit", stale)
        consumer.commit({TP: 7})
        epochs = [sent.body["generation_id_or_member_epoch"] for sent in server.all("offsets/commit")]
        assert epochs == [1, 2]
        assert server.committed == {("t", 0): 7}


def test_commit_is_not_repeated_by_a_member_that_was_dropped_meanwhile(server: ScriptedGroup) -> None:
    """Somebody else may have had the partitions, and committed."""

    def dropped(body: dict[str, Any]) -> Any:
        server.script(API, Refusal(Error.UNKNOWN_MEMBER_ID))
        wait_until(lambda: consumer.state is MemberState.UNJOINED)
        return Refusal(Error.STALE_MEMBER_EPOCH)

    with member_of(server, "t", enable_auto_commit=False) as consumer:
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script("offsets/commit", dropped)
        with pytest.raises(CommitFailedError):
            consumer.commit({TP: 7})
        assert len(server.all("offsets/commit")) == 1
        assert not server.committed


def test_asynchronous_commit_with_a_stale_epoch_fails_retriably(server: ScriptedGroup) -> None:
    errors: list[KcoordError | None] = []
    with member_of(server, "t", enable_auto_commit=False) as consumer:
        poll_until_owned(consumer, server.target)
        server.script("offsets/commit", Refusal(Error.STALE_MEMBER_EPOCH))
        consumer.commit_async({TP: 7}, lambda offsets, error: errors.append(error))
        wait_until(lambda: consumer.poll(5) is not None and bool(errors))
        assert isinstance(errors[0], StaleMemberEpochError)
        assert errors[0].retriable


COMMIT_RAISES = {
    Error.UNKNOWN_MEMBER_ID: CommitFailedError,
    Error.FENCED_MEMBER_EPOCH: CommitFailedError,
    Error.GROUP_ID_NOT_FOUND: CommitFailedError,
    Error.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    Error.OFFSET_METADATA_TOO_LARGE: OffsetMetadataTooLargeError,
    Error.UNKNOWN_SERVER_ERROR: UnexpectedError,
}


@pytest.mark.parametrize(("error", "kind"), COMMIT_RAISES.items(), ids=name_of)
def test_commit_raises_and_leaves_the_membership_alone(
    server: ScriptedGroup, error: Error, kind: type[KcoordError]
) -> None:
    with member_of(server, "t", enable_auto_commit=False) as consumer:
        poll_until_owned(consumer, server.target)
        stable(consumer)
        server.script("offsets/commit", Refusal(error))
        with pytest.raises(kind) as caught:
            consumer.commit({TP: 7})
        assert caught.value.error is error
        assert len(server.all("offsets/commit")) == 1
        assert consumer.state is MemberState.STABLE


@pytest.mark.parametrize("error", [Error.STALE_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH])
def test_fetch_with_an_outdated_identity_is_sent_again(server: ScriptedGroup, error: Error) -> None:
    with member_of(server, "t") as consumer:
        poll_until_owned(consumer, t(0, 1, 2, 3))
        server.script("offsets/fetch", Refusal(error), Refusal(error))
        assert consumer.committed([TP]) == {TP: None}
