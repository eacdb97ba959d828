"""A static member whose instance id is in use: it waits for the session of a crashed predecessor, and no longer."""

from __future__ import annotations

import pytest

from kcoord.client.core.consumer_group.heartbeat import GRACE_S, OldSession
from kcoord.client.core.consumer_group.membership import ConsumerMembership
from kcoord.client.core.consumer_group.reactions import Reaction
from kcoord.client.core.consumer_group.states import State
from kcoord.protocol.errors import Error, ProtocolError


def refusal(retry_after_ms: int | None = 40_000, error: Error = Error.UNRELEASED_INSTANCE_ID) -> ProtocolError:
    return ProtocolError(error, "in use", retry_after_ms=retry_after_ms)


def test_waits_as_long_as_the_first_refusal_said() -> None:
    old = OldSession()
    assert old.outlives(refusal(40_000), 100.0)
    assert old.outlives(refusal(10_000), 130.0)
    assert old.outlives(refusal(1_000), 139.9 + GRACE_S)
    assert not old.outlives(refusal(40_000), 140.0 + GRACE_S), "it was renewed: somebody lives there"


def test_another_stay_has_its_own_wait() -> None:
    old = OldSession()
    old.outlives(refusal(1_000), 0.0)
    old.forget()
    assert old.outlives(refusal(1_000), 100.0)


@pytest.mark.parametrize("failure", [refusal(None), refusal(error=Error.FENCED_INSTANCE_ID)])
def test_other_refusals_are_not_waited_out(failure: ProtocolError) -> None:
    assert not OldSession().outlives(failure, 0.0)


def test_membership_keeps_joining() -> None:
    member = ConsumerMembership("m", static=True)
    member.join()
    assert member.failed(member.sending(), refusal(), passes=True) is Reaction.BACK_OFF
    assert member.state is State.JOINING
    assert member.failed(member.sending(), refusal()) is Reaction.FAIL
    assert member.state is State.FATAL
