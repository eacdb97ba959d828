"""Arrays as Postgres reads them; commits of all kinds of texts are in `tests/offsets/api/test_commit.py`."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from groups.store.rows import Int4Array, Int8Array, bytea_array, number_array, text_array


def test_numbers_and_what_is_missing() -> None:
    assert number_array([1, None, -(2**63)]) == "{1,null,-9223372036854775808}"
    assert number_array([]) == "{}"
    assert text_array([None, "x"]) == '{null,"x"}'
    assert bytea_array([None, b"\x00"]) == '{null,"\\\\x00"}'


def test_a_text_is_never_taken_for_a_missing_one() -> None:
    assert text_array(["null", "", 'a"b\\']) == '{"null","","a\\"b\\\\"}'


@pytest.mark.parametrize(("kind", "bits", "name"), [(Int4Array, 32, "integer[]"), (Int8Array, 64, "bigint[]")])
def test_numbers_as_bytes(worker_database: str, kind: Any, bits: int, name: str) -> None:
    values = [0, 1, -1, 258, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    with psycopg.connect(worker_database) as connection:
        for numbers in (values, values[:1]):
            found = connection.execute("select %(it)s, pg_typeof(%(it)s)::text", {"it": kind.of(numbers)}).fetchone()
            assert found == (numbers, name)
    with pytest.raises(OverflowError):
        kind.of([2 ** (bits - 1)])
