"""The state machine of a member of a consumer group on its own: consumer.md 11."""

from __future__ import annotations

from random import Random

import pytest

from kcoord.client.core.consumer_group.membership import ConsumerMembership, Sent, TopicIdPartition
from kcoord.client.core.consumer_group.reactions import (
    COMMIT,
    HEARTBEAT,
    CommitReaction,
    Reaction,
    commit_reaction,
    heartbeat_reaction,
)
from kcoord.client.core.consumer_group.states import ENTERED_FROM, SHOWN, IllegalTransition, State, check
from kcoord.client.core.link import REDISCOVER
from kcoord.protocol.errors import Error, ProtocolError

S = State

SPECIFIED = {
    S.UNSUBSCRIBED: "PREPARE_LEAVING LEAVING FENCED",
    S.JOINING: "UNSUBSCRIBED FENCED STALE",
    S.RECONCILING: "STABLE JOINING ACKNOWLEDGING RECONCILING",
    S.ACKNOWLEDGING: "RECONCILING",
    S.STABLE: "JOINING ACKNOWLEDGING RECONCILING",
    S.FENCED: "JOINING STABLE RECONCILING ACKNOWLEDGING PREPARE_LEAVING LEAVING",
    S.PREPARE_LEAVING: "JOINING STABLE RECONCILING ACKNOWLEDGING UNSUBSCRIBED",
    S.LEAVING: "PREPARE_LEAVING",
    S.STALE: "LEAVING",
    S.FATAL: "UNSUBSCRIBED JOINING STABLE RECONCILING ACKNOWLEDGING PREPARE_LEAVING LEAVING",
}


@pytest.mark.parametrize("after", list(State), ids=lambda state: state.name)
@pytest.mark.parametrize("before", list(State), ids=lambda state: state.name)
def test_transitions_are_those_of_the_specification(before: State, after: State) -> None:
    if before.name in SPECIFIED[after].split():
        assert check(before, after) is after
    else:
        with pytest.raises(IllegalTransition, match=f"{before.name} cannot become {after.name}"):
            check(before, after)


def test_tables_cover_every_state() -> None:
    assert set(ENTERED_FROM) == set(SHOWN) == set(State)


def partitions(*numbers: int) -> list[TopicIdPartition]:
    return [TopicIdPartition("id-of-t", "t", number) for number in numbers]


def member_in(state: State, *, static: bool = False) -> ConsumerMembership:
    """A member that came to `state` by legal steps, with a heartbeat of the last member state in flight."""
    member = ConsumerMembership("m", static=static)
    if state is S.UNSUBSCRIBED:
        return member
    member.join()
    sent = member.sending()
    if state is S.JOINING:
        return member
    member.answered(sent, 4, partitions(0, 1))
    if state is S.RECONCILING:
        member.sending()
        return member
    work = member.reconciliation()
    assert work is not None
    assert member.reconciled(work)
    if state is S.ACKNOWLEDGING:
        member.in_flight = Sent(member.stay, 4, S.ACKNOWLEDGING)
        return member
    sent = member.sending()
    match state:
        case S.FENCED:
            member.failed(sent, ProtocolError(Error.FENCED_MEMBER_EPOCH))
        case S.FATAL:
            member.failed(sent, ProtocolError(Error.INVALID_REQUEST))
        case S.PREPARE_LEAVING:
            member.prepare_leaving()
        case S.LEAVING:
            member.prepare_leaving()
            member.begin_leaving()
        case S.STALE:
            member.poll_expired()
            member.stale()
    return member


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_every_state_is_reached(state: State) -> None:
    assert member_in(state).state is state


ACTIVE = (S.JOINING, S.RECONCILING, S.ACKNOWLEDGING, S.STABLE)
FATAL = {
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.INVALID_REQUEST,
    Error.GROUP_MAX_SIZE_REACHED,
    Error.UNSUPPORTED_ASSIGNOR,
    Error.UNRELEASED_INSTANCE_ID,
    Error.FENCED_INSTANCE_ID,
    Error.INVALID_REGULAR_EXPRESSION,
}
RETRIED = {
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_COORDINATOR,
    Error.REQUEST_TIMED_OUT,
    Error.THROTTLING_QUOTA_EXCEEDED,
}
DROPPED = {Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID}
REFUSED_REPORT = {Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_OR_PARTITION}


def state_after(state: State, error: Error) -> State:
    """consumer.md 11.4, written down a second time: the state after a heartbeat sent in `state` is refused."""
    if error in RETRIED or error in (Error.NONE, Error.TOPIC_AUTHORIZATION_FAILED):
        return state
    joining = state is S.JOINING
    if error is Error.UNKNOWN_SERVER_ERROR and not joining:
        return state
    if error in DROPPED | REFUSED_REPORT or (error is Error.GROUP_ID_NOT_FOUND and not joining):
        if state in (S.PREPARE_LEAVING, S.LEAVING):
            return S.UNSUBSCRIBED
        return S.FENCED if state in ACTIVE else state
    return S.FATAL if state in (*ACTIVE, S.PREPARE_LEAVING) else state


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_state_after_a_refused_heartbeat(state: State) -> None:
    for error in set(Error) - {Error.NONE}:
        member = member_in(state)
        sent = member.in_flight or Sent(member.stay, 4, state)
        member.failed(sent, ProtocolError(error))
        assert member.state is state_after(state, error), error
        assert member.in_flight is None, error
        assert (member.fatal is not None) == (member.state is S.FATAL), error
        if member.state is not state:
            assert member.epoch == 0, error
            assert member.applied.partitions == frozenset(), error
        taking_part = state in (*ACTIVE, S.PREPARE_LEAVING)
        assert bool(member.reported) == (error is Error.TOPIC_AUTHORIZATION_FAILED and taking_part), error


@pytest.mark.parametrize("error", [e for e in Error if e is not Error.NONE], ids=lambda error: error.name)
@pytest.mark.parametrize("joining", [True, False], ids=["joining", "in the group"])
def test_reaction_of_every_error(error: Error, joining: bool) -> None:
    reaction = heartbeat_reaction(error, joining=joining)
    if error in FATAL:
        assert reaction is Reaction.FAIL
    elif error in DROPPED:
        assert reaction is Reaction.REJOIN
    elif error not in HEARTBEAT:
        assert reaction is Reaction.FAIL


def test_unexpected_failure_of_the_service_does_not_end_a_member() -> None:
    """Differs from Kafka: there it does."""
    assert heartbeat_reaction(Error.UNKNOWN_SERVER_ERROR, joining=False) is Reaction.BACK_OFF
    assert heartbeat_reaction(Error.UNKNOWN_SERVER_ERROR, joining=True) is Reaction.FAIL


def test_rediscovery_and_table_agree() -> None:
    told = {error for error, reaction in HEARTBEAT.items() if reaction is Reaction.REDISCOVER}
    assert told == REDISCOVER


@pytest.mark.parametrize("error", [e for e in Error if e is not Error.NONE], ids=lambda error: error.name)
def test_reaction_of_every_refused_commit(error: Error) -> None:
    retried = RETRIED | {Error.STALE_MEMBER_EPOCH, Error.UNSTABLE_OFFSET_COMMIT}
    out = DROPPED | {Error.ILLEGAL_GENERATION, Error.GROUP_ID_NOT_FOUND}
    expected = CommitReaction.OUT if error in out else CommitReaction.RAISE
    if error in retried:
        expected = CommitReaction.RETRY
    assert commit_reaction(error) is expected
    assert (error in COMMIT) == (expected is not CommitReaction.RAISE)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_new_assignment_in_every_state(state: State) -> None:
    """consumer.md 11.3: it counts in the states of a member that takes part, and nowhere else."""
    member = member_in(state)
    sent = member.in_flight or Sent(member.stay, 4, state)
    assert member.answered(sent, 5, partitions(7)) is (state in (*ACTIVE, S.PREPARE_LEAVING))
    expected = {S.JOINING: S.RECONCILING, S.STABLE: S.RECONCILING}.get(state, state)
    assert member.state is expected
    assert (member.target.partitions == frozenset(partitions(7))) == (state in ACTIVE)
    assert (member.epoch == 5) == (state in (*ACTIVE, S.PREPARE_LEAVING))


def test_join_without_partitions_is_stable_at_once() -> None:
    member = ConsumerMembership("m")
    member.join()
    assert member.answered(member.sending(), 3, [])
    assert (member.state, member.epoch) == (S.STABLE, 3)
    assert member.reconciliation() is None


def test_assignment_that_is_repeated_is_no_news() -> None:
    member = member_in(S.STABLE)
    assert not member.answered(member.sending(), 4, partitions(0, 1))
    assert member.state is S.STABLE
    assert member.answered(member.sending(), 5, None), "a new epoch is"
    assert (member.state, member.epoch) == (S.STABLE, 5)


def test_every_assignment_is_acknowledged_also_one_that_was_there_before() -> None:
    member = member_in(S.STABLE)
    first = member.applied
    member.answered(member.sending(), 5, partitions(0, 1, 2))
    member.answered(member.sending(), 6, partitions(0, 1))
    assert member.state is S.RECONCILING
    work = member.reconciliation()
    assert work is not None
    assert member.reconciled(work)
    assert member.applied.partitions == first.partitions
    assert member.applied.number > first.number
    member.sending()
    assert member.state is S.STABLE


def test_assignment_that_comes_while_another_is_put_in_place_follows_it() -> None:
    member = member_in(S.RECONCILING)
    work = member.reconciliation()
    assert work is not None
    member.answered(member.sending(), 5, partitions(0))
    assert member.reconciled(work), "the first is acknowledged on its own"
    assert member.applied.partitions == frozenset(partitions(0, 1))
    assert not member.idle
    member.sending()
    assert member.state is S.RECONCILING
    following = member.reconciliation()
    assert following is not None
    assert following.target.partitions == frozenset(partitions(0))


def test_what_was_put_in_place_is_told_though_something_newer_came() -> None:
    member = member_in(S.ACKNOWLEDGING)
    assert member.in_flight is not None
    member.answered(member.in_flight, 5, partitions(0))
    assert member.state is S.ACKNOWLEDGING
    member.sending()
    assert member.state is S.RECONCILING


def test_result_of_an_earlier_stay_is_discarded() -> None:
    member = member_in(S.RECONCILING)
    work, sent = member.reconciliation(), member.in_flight
    assert work is not None
    assert sent is not None
    member.failed(sent, ProtocolError(Error.UNKNOWN_MEMBER_ID))
    assert not member.stands(work)
    member.join()
    member.answered(member.sending(), 9, partitions(0, 1))
    assert member.state is S.RECONCILING
    assert not member.reconciled(work)
    assert member.state is S.RECONCILING


def test_answer_of_an_earlier_stay_is_ignored() -> None:
    member = member_in(S.STABLE)
    late = member.in_flight
    assert late is not None
    member.prepare_leaving()
    member.begin_leaving()
    member.left()
    member.join()
    assert not member.answered(late, 4, partitions(0))
    assert (member.state, member.epoch) == (S.JOINING, 0)
    assert member.failed(late, ProtocolError(Error.UNKNOWN_MEMBER_ID)) is None
    assert member.state is S.JOINING


def test_member_id_is_kept_for_life() -> None:
    member = member_in(S.FENCED)
    member.join()
    assert (member.member_id, member.epoch) == ("m", 0)


@pytest.mark.parametrize(("static", "epoch"), [(False, -1), (True, -2)])
def test_leave_epoch(static: bool, epoch: int) -> None:
    assert member_in(S.LEAVING, static=static).leave_epoch == epoch


def test_member_that_never_asked_has_nobody_to_leave() -> None:
    member = ConsumerMembership("m")
    assert not member.prepare_leaving()
    member.join()
    assert member.prepare_leaving()
    assert not member.begin_leaving()
    assert member.state is S.UNSUBSCRIBED


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_poll_timer_in_every_state(state: State) -> None:
    member = member_in(state)
    assert member.poll_expired() is (state in ACTIVE)
    if state in ACTIVE:
        member.stale()
        assert (member.state, member.epoch) == (S.STALE, 0)
    else:
        assert member.state is state


@pytest.mark.parametrize("seed", range(60))
def test_no_order_of_events_is_illegal(seed: int) -> None:
    """What the two threads may do, in any order: no transition is outside of the table, and nothing is kept wrongly."""
    random = Random(seed)
    member = ConsumerMembership("m", static=seed % 2 == 0)
    in_flight: list[Sent] = []
    works = []
    errors = [error for error in Error if error is not Error.NONE]

    def heartbeat() -> None:
        if member.heartbeating and not in_flight:
            in_flight.append(member.sending())

    def answer() -> None:
        if in_flight:
            new = partitions(*random.sample(range(4), random.randint(0, 4))) if random.random() < 0.5 else None
            member.answered(in_flight.pop(), member.epoch + random.randint(0, 1), new)

    def refuse() -> None:
        if in_flight:
            member.failed(in_flight.pop(), ProtocolError(random.choice(errors[:12])))

    def begin_work() -> None:
        work = member.reconciliation()
        if work is not None:
            works.append(work)

    def finish_work() -> None:
        if works:
            member.reconciled(works.pop())

    def settle() -> None:
        if member.state in (S.UNSUBSCRIBED, S.FENCED, S.STALE):
            member.join()

    def leave() -> None:
        member.prepare_leaving()

    def say_leave() -> None:
        if member.begin_leaving():
            member.left()

    def expire() -> None:
        if not in_flight and member.poll_expired():
            member.stale()

    for _ in range(400):
        random.choice((heartbeat, answer, answer, refuse, begin_work, finish_work, settle, leave, say_leave, expire))()
        if member.state is S.STABLE:
            assert member.applied.number == member.target.number
        if not member.heartbeating:
            assert (member.epoch, member.applied.partitions) == (0, frozenset())
        if member.state is S.FATAL:
            member = ConsumerMembership("m", static=member.static)
            in_flight.clear()
            works.clear()
