"""The computation behind `POST /v1/assign`."""

from __future__ import annotations

import pytest

from groups.engine.assign import assign, member_subscription
from kcoord.assignors import MemberSubscription
from kcoord.protocol.consumer_protocol import Subscription
from kcoord.protocol.errors import Error, ProtocolError


def members(*member_ids: str) -> list[MemberSubscription]:
    return [MemberSubscription(member_id, None, ["t"]) for member_id in member_ids]


def test_members_are_answered_in_the_order_they_were_given() -> None:
    assert assign("range", members("b", "a", "c"), {"t": 2}) == [("b", {"t": [1]}), ("a", {"t": [0]}), ("c", {})]


def test_what_the_members_own_is_read_from_their_subscriptions() -> None:
    owner = member_subscription("b", None, Subscription(("t",), {"t": (0,)}, generation_id=3))
    newcomer = member_subscription("a", "instance", Subscription(("t",), rack_id="r", user_data=b"u"))
    assert newcomer == MemberSubscription("a", "instance", ("t",), rack_id="r", user_data=b"u")
    assert assign("sticky", [owner, newcomer], {"t": 2}) == [("b", {"t": [0]}), ("a", {"t": [1]})]


def test_an_unknown_assignor_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ProtocolError) as raised:
        assign("uniform", members("a"), {"t": 1})
    assert raised.value.error is Error.UNSUPPORTED_ASSIGNOR
    assert raised.value.detail.startswith("assignor: no assignor is named 'uniform'; available: range, roundrobin,")


def test_a_member_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(ProtocolError) as raised:
        assign("range", members("a", "b", "a"), {"t": 1})
    assert raised.value.error is Error.INVALID_REQUEST
    assert raised.value.detail == "members: 'a' is listed more than once"
