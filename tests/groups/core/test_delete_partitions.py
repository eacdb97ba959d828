"""Which partitions of an OffsetDelete lose their offset (offsets.md 2.2 and 6)."""

from __future__ import annotations

from kcoord.protocol.errors import Error
from offsets.core.deletion import OffsetDelete, OffsetDeleteReply, refuse, spare

TOPICS = {"orders": 2, "bills": 1}


def test_authorization_comes_before_existence() -> None:
    asked = (("orders", 0), ("secret", 0), ("bills", 0), ("bills", 1), ("bills", 0), ("orders", -1))
    refused, passed = refuse(OffsetDelete("g", asked, denied=frozenset({"secret", "orders"})), TOPICS)
    assert passed == (("bills", 0),)
    assert refused == (
        ("orders", 0, Error.TOPIC_AUTHORIZATION_FAILED),
        ("secret", 0, Error.TOPIC_AUTHORIZATION_FAILED),
        ("bills", 1, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", -1, Error.TOPIC_AUTHORIZATION_FAILED),
    )


def test_offsets_of_a_subscribed_topic_are_spared() -> None:
    results, gone = spare([("orders", 0), ("bills", 0)], {"orders"})
    assert gone == (("bills", 0),)
    assert results == (("orders", 0, Error.GROUP_SUBSCRIBED_TO_TOPIC), ("bills", 0, Error.NONE))


def test_an_error_of_the_whole_request_has_nothing_else() -> None:
    reply = OffsetDeleteReply(Error.NON_EMPTY_GROUP)
    assert (reply.results, reply.deleted, reply.detail) == ((), 0, "")
    assert OffsetDelete("g", ()).principal == ""
