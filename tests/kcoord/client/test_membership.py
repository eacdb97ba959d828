"""The reaction table of classic.md 11.2, row by row, on the state machine alone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from kcoord.client.core.link import REDISCOVER
from kcoord.client.core.membership import Generation, Membership, Phase, Step
from kcoord.client.core.reactions import REACTIONS, Api, Reaction, reaction
from kcoord.client.types import MemberState
from kcoord.protocol.errors import Action, Error, ProtocolError

WAS = Generation(4, "m1", "range")
PHASE = {
    Api.JOIN: Phase.PREPARING_REBALANCE,
    Api.SYNC: Phase.COMPLETING_REBALANCE,
    Api.HEARTBEAT: Phase.STABLE,
    Api.COMMIT: Phase.STABLE,
}


@dataclass(frozen=True)
class Row:
    """One cell: what the sender does, and what is left of the generation (`WAS`, forgotten or partly)."""

    api: Api
    error: Error
    step: Step
    left: Generation = WAS
    rejoins: bool = False
    fatal: bool = False


FORGOTTEN = Generation()
KEPT_ID = Generation(member_id="m1")
J, S, H, C = Api.JOIN, Api.SYNC, Api.HEARTBEAT, Api.COMMIT

ROWS = [
    Row(J, Error.COORDINATOR_LOAD_IN_PROGRESS, Step.RETRY),
    Row(S, Error.COORDINATOR_LOAD_IN_PROGRESS, Step.RETRY),
    Row(H, Error.COORDINATOR_LOAD_IN_PROGRESS, Step.RETRY),
    Row(C, Error.COORDINATOR_LOAD_IN_PROGRESS, Step.RETRY),
    Row(J, Error.COORDINATOR_NOT_AVAILABLE, Step.RETRY),
    Row(S, Error.COORDINATOR_NOT_AVAILABLE, Step.JOIN_LATER),
    Row(H, Error.COORDINATOR_NOT_AVAILABLE, Step.RETRY),
    Row(C, Error.COORDINATOR_NOT_AVAILABLE, Step.RETRY),
    Row(J, Error.NOT_COORDINATOR, Step.RETRY),
    Row(S, Error.NOT_COORDINATOR, Step.JOIN_LATER),
    Row(H, Error.NOT_COORDINATOR, Step.RETRY),
    Row(C, Error.NOT_COORDINATOR, Step.RETRY),
    Row(J, Error.UNKNOWN_MEMBER_ID, Step.JOIN, FORGOTTEN, rejoins=True),
    Row(S, Error.UNKNOWN_MEMBER_ID, Step.JOIN, FORGOTTEN, rejoins=True),
    Row(H, Error.UNKNOWN_MEMBER_ID, Step.GO_ON, FORGOTTEN, rejoins=True),
    Row(C, Error.UNKNOWN_MEMBER_ID, Step.RAISE, FORGOTTEN, rejoins=True),
    Row(J, Error.ILLEGAL_GENERATION, Step.RAISE),
    Row(S, Error.ILLEGAL_GENERATION, Step.JOIN, KEPT_ID, rejoins=True),
    Row(H, Error.ILLEGAL_GENERATION, Step.GO_ON, KEPT_ID, rejoins=True),
    Row(C, Error.ILLEGAL_GENERATION, Step.RAISE, KEPT_ID, rejoins=True),
    Row(J, Error.REBALANCE_IN_PROGRESS, Step.JOIN),
    Row(S, Error.REBALANCE_IN_PROGRESS, Step.JOIN),
    Row(H, Error.REBALANCE_IN_PROGRESS, Step.GO_ON, rejoins=True),
    Row(C, Error.REBALANCE_IN_PROGRESS, Step.RAISE, rejoins=True),
    Row(J, Error.MEMBER_ID_REQUIRED, Step.JOIN, Generation(4, "m2", "range")),
    Row(J, Error.FENCED_INSTANCE_ID, Step.RAISE),
    Row(S, Error.FENCED_INSTANCE_ID, Step.RAISE),
    Row(H, Error.FENCED_INSTANCE_ID, Step.GO_ON, FORGOTTEN, rejoins=True, fatal=True),
    Row(C, Error.FENCED_INSTANCE_ID, Step.RAISE, FORGOTTEN, rejoins=True, fatal=True),
    Row(J, Error.INCONSISTENT_GROUP_PROTOCOL, Step.RAISE),
    Row(S, Error.INCONSISTENT_GROUP_PROTOCOL, Step.RAISE),
    *(
        Row(api, error, Step.RETRY if api is H else Step.RAISE)
        for api in Api
        for error in (
            Error.INVALID_SESSION_TIMEOUT,
            Error.INVALID_GROUP_ID,
            Error.GROUP_MAX_SIZE_REACHED,
            Error.GROUP_AUTHORIZATION_FAILED,
            # "anything else"
            Error.SASL_AUTHENTICATION_FAILED,
            Error.UNKNOWN_SERVER_ERROR,
            Error.INVALID_REQUEST,
            Error.GROUP_ID_NOT_FOUND,
        )
    ),
    # The table's "disconnect / request timeout", as far as the service itself reports it.
    Row(J, Error.REQUEST_TIMED_OUT, Step.RETRY),
    Row(S, Error.REQUEST_TIMED_OUT, Step.JOIN_LATER),
    Row(H, Error.REQUEST_TIMED_OUT, Step.RETRY),
    Row(C, Error.REQUEST_TIMED_OUT, Step.RETRY),
    # HTTP: told to slow down. Kafka delays the answer instead.
    Row(J, Error.THROTTLING_QUOTA_EXCEEDED, Step.RETRY),
    Row(S, Error.THROTTLING_QUOTA_EXCEEDED, Step.RETRY),
    Row(H, Error.THROTTLING_QUOTA_EXCEEDED, Step.RETRY),
    Row(C, Error.THROTTLING_QUOTA_EXCEEDED, Step.RETRY),
]


def member(phase: Phase) -> Membership:
    membership = Membership()
    membership.phase = phase
    membership.generation = WAS
    membership.rejoin_needed = False
    return membership


def failure(error: Error, action: Action | None = None) -> ProtocolError:
    return ProtocolError(error, action=action, fields={"member_id": "m2"})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.api.value}-{row.error.name}")
def test_reaction(row: Row) -> None:
    membership = member(PHASE[row.api])
    assert membership.failed(row.api, failure(row.error), WAS) is row.step
    assert membership.generation == row.left
    assert membership.rejoin_needed is row.rejoins
    assert (membership.fatal is not None) is row.fatal


CHANGED_MEANWHILE = [row for row in ROWS if row.left != WAS]


@pytest.mark.parametrize("row", CHANGED_MEANWHILE, ids=lambda row: f"{row.api.value}-{row.error.name}")
def test_answer_to_an_older_generation_forgets_nothing(row: Row) -> None:
    membership = member(PHASE[row.api])
    assert membership.failed(row.api, failure(row.error), Generation(3, "m1", "range")) is row.step
    assert membership.generation == WAS
    assert membership.phase is PHASE[row.api]
    assert membership.fatal is None


@pytest.mark.parametrize("api", [J, S])
def test_wait_that_ran_out_repeats_the_request(api: Api) -> None:
    membership = member(PHASE[api])
    assert membership.failed(api, failure(Error.REBALANCE_IN_PROGRESS, Action.RETRY), WAS) is Step.RESEND
    assert membership.generation == WAS


def test_heartbeats_rebalance_answer_is_ignored_while_rebalancing() -> None:
    membership = member(Phase.COMPLETING_REBALANCE)
    assert membership.failed(H, failure(Error.REBALANCE_IN_PROGRESS), WAS) is Step.GO_ON
    assert not membership.rejoin_needed


@pytest.mark.parametrize("error", [Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.FENCED_INSTANCE_ID])
def test_heartbeat_overtaken_by_a_join_changes_nothing(error: Error) -> None:
    """Differs from Kafka: requests travel on several connections."""
    membership = member(Phase.PREPARING_REBALANCE)
    assert membership.failed(H, failure(error), WAS) is Step.GO_ON
    assert membership.generation == WAS
    assert membership.phase is Phase.PREPARING_REBALANCE
    assert membership.fatal is None


def test_member_id_required_without_an_id_is_fatal() -> None:
    membership = member(Phase.PREPARING_REBALANCE)
    assert membership.failed(J, ProtocolError(Error.MEMBER_ID_REQUIRED), WAS) is Step.RAISE


def test_states_of_a_member() -> None:
    membership = Membership()
    assert membership.state is MemberState.UNJOINED
    sent = membership.begin_join()
    assert (membership.state, membership.heartbeating) == (MemberState.REBALANCING, False)
    generation = Generation(1, "m1", "range")
    assert membership.joined(generation, True, sent)
    assert (membership.state, membership.heartbeating) == (MemberState.REBALANCING, True)
    assert membership.synced(generation)
    assert (membership.state, membership.rejoin_needed) == (MemberState.STABLE, False)
    membership.request_rejoin("for a reason")
    assert (membership.state, membership.heartbeating) == (MemberState.STABLE, True)
    assert membership.leave() == generation
    assert (membership.state, membership.generation) == (MemberState.UNJOINED, Generation())


def test_join_answer_after_leaving_does_not_count() -> None:
    membership = Membership()
    sent = membership.begin_join()
    membership.leave()
    assert not membership.joined(Generation(1, "m1", "range"), False, sent)
    assert membership.state is MemberState.UNJOINED


def test_sync_answer_after_a_reset_does_not_count() -> None:
    membership = member(Phase.COMPLETING_REBALANCE)
    membership.failed(H, failure(Error.ILLEGAL_GENERATION), WAS)
    assert not membership.synced(WAS)
    assert membership.rejoin_needed


def test_rediscovery_and_table_agree() -> None:
    """The errors after which the link looks the coordinator up are those whose reaction says so."""
    told = {
        error
        for rows in REACTIONS.values()
        for error, kind in rows.items()
        if kind in (Reaction.REDISCOVER, Reaction.REDISCOVER_AND_REJOIN)
    }
    assert told == REDISCOVER


@pytest.mark.parametrize("api", list(Api))
def test_every_error_has_a_reaction(api: Api) -> None:
    for error in Error:
        assert isinstance(reaction(api, ProtocolError(error)), Reaction)
