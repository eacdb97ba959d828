"""Cursors: what was encoded is decoded, and nothing else is."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.database.paging import INT64_MAX, cut, decode_cursor, encode_cursor
from kcoord.protocol.errors import Error, ProtocolError

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300)
NUMBERS = st.integers(-INT64_MAX, INT64_MAX)


@given(st.tuples(TEXTS, NUMBERS, TEXTS))
def test_a_cursor_holds_its_key(key: tuple[str, int, str]) -> None:
    cursor = encode_cursor(*key)
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert decode_cursor(cursor, str, int, str) == key


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        decode_cursor(text, str, int)
    assert refused.value.error is Error.INVALID_REQUEST
    assert refused.value.fields == {"field": "cursor"}


@pytest.mark.parametrize("key", [("a",), ("a", "b"), (1, "a"), ("a", 1, 2), ("a", 2**63), ("a\0", 1), ("a", True)])
def test_a_key_of_another_list_is_refused(key: tuple[object, ...]) -> None:
    with pytest.raises(ProtocolError):
        decode_cursor(encode_cursor(*key), str, int)  # type: ignore[arg-type]


def test_one_item_more_than_the_limit_means_there_are_more() -> None:
    assert cut([1, 2, 3], 2) == ([1, 2], True)
    assert cut([1, 2], 2) == ([1, 2], False)
