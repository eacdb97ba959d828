"""Regular expressions on group ids: Postgres finds what RE2 would, or they are refused."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
import re2

from kcoord.protocol.errors import Error, ProtocolError
from offsets.group_patterns import for_postgres

IDS = (
    "billing", "Billing-2", "billing.eu", "billing_eu", "team-07.service-00123", "a", "", "a b", "a\tb", "x+y",
    "100%", "{1}", "[x]", "^a$", "back\\slash", "a-b-c", "1", "orders:eu", "aaa",
)  # fmt: skip
PATTERNS = (
    "bill", "^bill", "eu$", r"^billing\.eu$", r"\d+", r"^\D+$", r"\bservice\b", r"\Bling", r"\w+\.\w+", r"\W", r"a\sb",
    r"a\tb", r"\Aa\z", "(?i)^BILL", "^(?:a|x)", "a{2,3}", "a{2}$", "[[:upper:]]", "[^a-z]", r"[\d.]", r"[\w-]+$", ".+",
    "", "a.*?b", r"\+", r"\\", r"\^a\$", "b|^1$", r"\[x\]", "^$", "x*", r"\%", "[a-c-]+$", r"\{1\}", "(a)(-)(b)",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_postgres_finds_what_re2_finds(database: str, pattern: str) -> None:
    with psycopg.connect(database) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            "select id from unnest(%(ids)s::text[]) id where id ~ %(pattern)s",
            {"ids": list(IDS), "pattern": for_postgres(pattern)},
        ).fetchall()
    search = re2.compile(pattern).search
    assert {row[0] for row in rows} == {name for name in IDS if search(name)}


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "RE2 cannot read it"),
        (r"(a)\1", "RE2 cannot read it"),
        ("a(?=b)", "RE2 cannot read it"),
        ("(?P<n>a)", "'(?:' is possible"),
        ("(?s)a", "'(?:' is possible"),
        ("a(?i)b", "'(?:' is possible"),
        ("(?i:a)", "'(?:' is possible"),
        (r"\pL", r"'\p' is not possible"),
        (r"\Qa.b\E", r"'\Q' is not possible"),
        (r"\x41", r"'\x' is not possible"),
        ("a" * 256, "at most 255"),
    ],
)
def test_what_postgres_would_read_in_another_way_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        for_postgres(pattern)
    assert caught.value.error is Error.INVALID_REGULAR_EXPRESSION
    assert said in caught.value.detail
