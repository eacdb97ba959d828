"""The groups in the memory of a process: how many there are, and what a snapshot may replace."""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import replace

from groups.core.model.types import ClassicGroup, ClassicMember, Members
from groups.store.rows import GroupRow, Stored
from groups.store.store import Copies
from kcoord.config import Config

TAG = uuid.uuid4()


def stored(group_id: str, members: int = 1, version: int = 1, tag: uuid.UUID = TAG) -> Stored:
    found = Members(ClassicMember(f"m{n}", None, "c", "h", 1, 1, "consumer", ()) for n in range(members))
    return Stored(1, version, tag, None, ClassicGroup(group_id, members=found))


def row(of: Stored) -> GroupRow:
    """The row of a group, as far as copies look at it."""
    empty = GroupRow(*[None] * len(GroupRow._fields))  # type: ignore[arg-type]
    assert of.pk is not None
    assert of.version_tag is not None
    return empty._replace(id=of.pk, version=of.version, version_tag=of.version_tag)


def held(copies: Copies, *group_ids: str) -> list[str]:
    return [group_id for group_id in group_ids if copies.has(group_id)]


def test_groups_used_least_recently_go_when_there_are_too_many_members() -> None:
    copies = Copies(100, 10)
    copies.put("a", stored("a", 3), 0.0)
    copies.put("b", stored("b", 3), 0.0)
    assert copies.current("a") is not None
    copies.put("c", stored("c", 3), 0.0)
    assert held(copies, "a", "b", "c") == ["a", "c"]
    copies.put("a", stored("a", 1), 0.0)
    copies.put("d", stored("d", 3), 0.0)
    assert held(copies, "a", "b", "c", "d") == ["a", "c", "d"], "what a copy weighed before does not count"
    copies.put("huge", stored("huge", 50), 0.0)
    assert held(copies, "a", "c", "d", "huge") == ["huge"], "the one in use stays"
    copies.put("a", stored("a", 1), 0.0)
    assert held(copies, "a", "huge") == ["a"]


def test_hundred_thousand_members_in_ten_thousand_groups_fit_by_default() -> None:
    config = Config({})
    assert config.int("cache.max.groups") >= 10_000
    assert config.int("cache.max.members") >= 10_000 * 11


def test_snapshot_does_not_replace_what_was_known_later() -> None:
    copies = Copies(10, 100)
    old, new = stored("g"), stored("g", version=2, tag=uuid.uuid4())
    before, era = time.monotonic(), copies.era
    copies.put("g", new, time.monotonic())
    assert not copies.put_snapshot("g", row(old), old, before, era)
    found = copies.current("g")
    assert found is not None
    assert found.stored is new


def test_snapshot_does_not_replace_a_group_that_was_created_since() -> None:
    copies = Copies(10, 100)
    deleted, created = stored("g", version=9), replace(stored("g"), pk=2)
    before, era = time.monotonic(), copies.era
    copies.put("g", created, time.monotonic())
    assert not copies.put_snapshot("g", row(deleted), deleted, before, era)


def test_snapshot_of_a_row_that_went_back_is_left_to_the_lock() -> None:
    copies = Copies(10, 100)
    copies.put("g", stored("g", version=5), time.monotonic())
    copies.drop_all()
    back = stored("g", version=4)
    assert not copies.put_snapshot("g", row(back), back, time.monotonic(), copies.era)
    other = replace(stored("g", version=5), version_tag=uuid.uuid4())
    assert not copies.put_snapshot("g", row(other), other, time.monotonic(), copies.era)
    same = stored("g", version=5)
    assert copies.put_snapshot("g", row(same), same, time.monotonic(), copies.era)


def test_snapshot_from_before_a_lost_connection_is_dropped() -> None:
    copies = Copies(10, 100)
    era = copies.era
    copies.drop_all()
    found = stored("g")
    assert not copies.put_snapshot("g", row(found), found, time.monotonic(), era)
    assert copies.current("g") is None


def test_snapshot_is_doubtful_if_anything_was_heard_of_the_group_since() -> None:
    for heard in ("hint", "all", "forgotten", "evicted"):
        copies = Copies(1, 100)
        found = stored("g")
        read_at = time.monotonic()
        if heard == "evicted":
            copies.put("g", found, -math.inf)
            copies.hint("g")
            copies.put("other", stored("other"), 0.0)
        elif heard == "forgotten":
            copies.drop("g")
        else:
            copies.hint("g" if heard == "hint" else None)
        assert copies.put_snapshot("g", row(found), found, read_at, copies.era)
        copy = copies.current("g")
        assert copy is not None
        assert copy.is_doubtful, heard
