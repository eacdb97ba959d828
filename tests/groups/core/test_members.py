"""The member map with its counts: always what counting anew would give, and never changed in place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.core.model.types import ClassicMember, Members
from tests.groups.core.world import protocols

names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
members = st.builds(
    lambda number, static, listed, joined, owes: ClassicMember(
        member_id=f"m{number}",
        instance_id=f"i{number}" if static else None,
        client_id="c",
        client_host="h",
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=protocols(*listed),
        join_parked_until=1 if joined else None,
        pending_sync=owes,
    ),
    st.integers(0, 4),
    st.booleans(),
    names,
    st.booleans(),
    st.booleans(),
)


@given(st.lists(st.one_of(members, st.integers(0, 4)), max_size=20))
def test_counts_follow_every_change(changes: list[ClassicMember | int]) -> None:
    kept, plain = Members(), dict[str, ClassicMember]()
    for change in changes:
        before, seen = kept, dict(kept)
        if isinstance(change, ClassicMember):
            kept = kept.put(change)
            plain[change.member_id] = change
        elif f"m{change}" in plain:
            kept = kept.drop(f"m{change}")
            del plain[f"m{change}"]
        assert dict(before) == seen, "the old map is as it was"
        anew = Members(plain.values())
        assert list(kept.items()) == list(plain.items())
        assert (kept.awaiting_join, kept.pending_sync) == (anew.awaiting_join, anew.pending_sync)
        assert kept.static == anew.static
        assert {name: count for name, count in kept.support.items() if count} == anew.support


def test_protocol_listed_twice_counts_once() -> None:
    member = ClassicMember("m", None, "c", "h", 1, 1, "consumer", protocols("a", "a"))
    assert Members([member]).support == {"a": 1}


def test_dropping_a_stranger_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Members().drop("nobody")
    assert "Members([])" in repr(Members())
