"""Arrays as the text that Postgres reads; commits of all kinds of texts are in `tests/offsets/api/test_commit.py`."""

from __future__ import annotations

from groups.store.arrays import bytea_array, number_array, text_array


def test_numbers_and_what_is_missing() -> None:
    assert number_array([1, None, -(2**63)]) == "{1,null,-9223372036854775808}"
    assert number_array([]) == "{}"
    assert text_array([None, "x"]) == '{null,"x"}'
    assert bytea_array([None, b"\x00"]) == '{null,"\\\\x00"}'


def test_a_text_is_never_taken_for_a_missing_one() -> None:
    assert text_array(["null", "", 'a"b\\']) == '{"null","","a\\"b\\\\"}'
