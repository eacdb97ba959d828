"""ConsumerProtocol bytes: what is written can be read, by us and by kio, and no bytes do harm."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer

from kcoord.protocol.consumer_protocol import (
    HIGHEST_VERSION,
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kcoord.protocol.errors import Error, ProtocolError

INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VERSIONS = st.integers(0, HIGHEST_VERSION)


def ascending(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, unique=True, max_size=6).map(lambda found: tuple(sorted(found)))


PARTITIONS = st.dictionaries(NAMES, ascending(INT32), max_size=4)
USER_DATA = st.none() | st.binary(max_size=8)


@st.composite
def subscriptions(draw: st.DrawFn) -> Subscription:
    """A subscription with nothing that its version cannot carry."""
    version = draw(VERSIONS)
    return Subscription(
        topics=draw(ascending(NAMES)),
        owned_partitions=draw(PARTITIONS) if version >= 1 else {},
        generation_id=draw(INT32) if version >= 2 else -1,
        rack_id=draw(st.none() | NAMES) if version >= 3 else None,
        user_data=draw(USER_DATA),
        version=version,
    )


assignments = st.builds(Assignment, PARTITIONS, USER_DATA, VERSIONS)


@given(subscription=subscriptions())
def test_a_subscription_is_read_as_it_was_written(subscription: Subscription) -> None:
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(assignment=assignments)
def test_an_assignment_is_read_as_it_was_written(assignment: Assignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


def kio_message(kind: str, version: int) -> Any:
    return import_module(f"kio.schema.consumer_protocol_{kind}.v{version}.data")


def kio_bytes(message: Any, version: int) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return version.to_bytes(2, "big") + buffer.getvalue()


@given(subscription=subscriptions())
def test_a_subscription_has_the_bytes_that_kio_writes(subscription: Subscription) -> None:
    module = kio_message("subscription", subscription.version)
    fields: dict[str, Any] = {"topics": subscription.topics, "user_data": subscription.user_data}
    if subscription.version >= 1:
        fields["owned_partitions"] = tuple(
            module.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in sorted(subscription.owned_partitions.items())
        )
    if subscription.version >= 2:
        fields["generation_id"] = subscription.generation_id
    if subscription.version >= 3:
        fields["rack_id"] = subscription.rack_id
    message = module.ConsumerProtocolSubscription(**fields)
    encoded = encode_subscription(subscription)
    assert encoded == kio_bytes(message, subscription.version)
    assert entity_reader(type(message))(encoded, 2) == (message, len(encoded) - 2)


@given(assignment=assignments)
def test_an_assignment_has_the_bytes_that_kio_writes(assignment: Assignment) -> None:
    module = kio_message("assignment", assignment.version)
    message = module.ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            module.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in sorted(assignment.partitions.items())
        ),
        user_data=assignment.user_data,
    )
    assert encode_assignment(assignment) == kio_bytes(message, assignment.version)


def test_a_subscription_listed_in_another_order_has_the_same_bytes() -> None:
    one = Subscription(("a", "b"), {"a": (0, 1), "b": (2,)})
    other = Subscription(("b", "a", "b"), {"b": (2,), "a": (1, 0, 1)})
    assert encode_subscription(one) == encode_subscription(other)


def test_fields_that_a_version_does_not_have_are_left_out() -> None:
    full = Subscription(("t",), {"t": (0,)}, 5, "rack", b"u", version=0)
    assert decode_subscription(encode_subscription(full)) == Subscription(("t",), user_data=b"u", version=0)


DECODERS = [decode_subscription, decode_assignment]
HUGE = b"\x7f\xff\xff\xff"


@pytest.mark.parametrize("decode", DECODERS)
@given(data=st.binary() | st.builds(bytes.__add__, st.sampled_from([b"\0\0", b"\0\3", b"\0\1" + HUGE]), st.binary()))
@example(data=b"\0\3" + HUGE)
@example(data=b"\0\0\0\0\0\0" + HUGE)
@example(data=b"\0\3\0\0\0\1\0\1t" + HUGE + bytes(99))
def test_garbage_is_nothing_or_harmless(decode: Callable[[bytes], object], data: bytes) -> None:
    decoded = decode(data)
    assert decoded is None or isinstance(decoded, Subscription | Assignment)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0", id="half a version"),
        pytest.param(b"\0\3", id="no message"),
        pytest.param(b"\xff\xff\0\0\0\0\0\0\0\0", id="a negative version"),
        pytest.param(b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff", id="a null array"),
        pytest.param(b"\0\0\0\0\0\1\xff\xff\0\0\0\0\xff\xff\xff\xff", id="a null topic"),
        pytest.param(b"\0\0\0\0\0\1\0\1\xff\0\0\0\0\xff\xff\xff\xff", id="a topic that is not UTF-8"),
        pytest.param(b"\0\0" + HUGE + bytes(1000), id="more topics than bytes"),
        pytest.param(b"\0\0\0\0\0\0" + HUGE, id="more user data than bytes"),
    ],
)
def test_bytes_that_are_no_message_are_none(decode: Callable[[bytes], object], data: bytes) -> None:
    assert decode(data) is None


@given(subscription=subscriptions(), data=st.data())
def test_a_subscription_cut_short_is_none(subscription: Subscription, data: st.DataObject) -> None:
    encoded = encode_subscription(subscription)
    assert decode_subscription(encoded[: data.draw(st.integers(0, len(encoded) - 1))]) is None


def test_newer_versions_are_read_as_the_newest_known_and_the_rest_is_ignored() -> None:
    subscription, assignment = Subscription(("t",), {"t": (1,)}, 7, "rack"), Assignment({"t": (1,)}, b"u")
    future = b"\0\x09"
    assert decode_subscription(future + encode_subscription(subscription)[2:] + b"new field") == subscription
    assert decode_assignment(future + encode_assignment(assignment)[2:] + b"new field") == assignment


def test_a_topic_listed_twice_has_the_partitions_of_both() -> None:
    entry = b"\0\1t\0\0\0\1\0\0\0"
    data = b"\0\0\0\0\0\2" + entry + b"\1" + entry + b"\0" + b"\xff\xff\xff\xff"
    assert decode_assignment(data) == Assignment({"t": (1, 0)}, None, version=0)


@pytest.mark.parametrize(
    ("encode", "detail"),
    [
        (lambda: encode_subscription(Subscription(("x" * 32_768,))), "topics: must be at most 32767 bytes in UTF-8"),
        (lambda: encode_subscription(Subscription(("\ud800",))), "topics: must be valid Unicode"),
        (lambda: encode_subscription(Subscription((), {"t": (2**31,)})), "owned_partitions['t']: must be a 32-bit"),
        (lambda: encode_subscription(Subscription((), generation_id=2**31)), "generation_id: must be a 32-bit"),
        (lambda: encode_subscription(Subscription((), rack_id="é" * 20_000)), "rack_id: must be at most"),
        (lambda: encode_assignment(Assignment({"t": (-(2**31) - 1,)})), "partitions['t']: must be a 32-bit"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(encode: Callable[[], bytes], detail: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        encode()
    assert raised.value.error is Error.INVALID_REQUEST
    assert raised.value.detail.startswith(detail)


def test_a_version_that_cannot_be_written_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="version 4 cannot be written"):
        encode_assignment(Assignment({}, version=HIGHEST_VERSION + 1))


def test_what_cannot_be_stored_is_not_read() -> None:
    for subscription in (
        Subscription(("a\0b",)),
        Subscription(("a",), owned_partitions={"\0": (1,)}),
        Subscription(("a",), rack_id="r\0"),
        Subscription(("a",), rack_id="r" * 256),
    ):
        assert decode_subscription(encode_subscription(subscription)) is None
    assert decode_subscription(encode_subscription(Subscription(("a",), user_data=b"\0", rack_id="r" * 255)))
    assert decode_assignment(encode_assignment(Assignment({"a\0b": (1,)}))) is None
