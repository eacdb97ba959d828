"""When offsets expire, on the page of a group."""

from __future__ import annotations

import re

import psycopg
import pytest
from django.test import Client

from frontend.pages.group.present import KEPT
from offsets.core.retention import Kept
from tests.frontend.seed import Seed

DAY_MS = 86_400_000


@pytest.mark.parametrize("kept", list(Kept))
def test_every_reason_has_its_words(kept: Kept) -> None:
    assert KEPT[kept]


def expiries(page: str) -> list[str]:
    """What stands in the column, tags taken away."""
    cells = re.findall(r'data-label="Expires" class="num">(.*?)</td>', page)
    return [re.sub(r"<[^>]+>", "", cell).removesuffix("Reset…") for cell in cells]  # the link beside it


def test_each_offset_says_when_it_goes_or_why_not(person: Client, seed: Seed, database: str) -> None:
    pk = seed.consumer_group("g", "Stable", epoch=3, assignment_epoch=3)
    seed.consumer_member(pk, "m1", epoch=3)
    seed.commit(pk, {("entries", 0): 1, ("left", 0): 1, ("left", 1): 1, ("precious", 0): 1}, ms_ago=2 * DAY_MS)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into offsets_retentionpin (group_name, topic, pinned_at, pinned_by, reason)"
            " values ('g', 'precious', 0, 'mara', '')"
        )
        connection.execute(
            "insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset,"
            " leader_epoch, metadata, commit_timestamp, opened_at, record_offset, member_id, generation_id, client_id,"
            " principal)"
            " values (1, %s, 'left', 1, 5, -1, '', 0, 0, 9, '', -1, '', '')",
            [pk],
        )
    page = person.get("/groups/g?tab=offsets").content.decode()
    assert expiries(page) == ["no", "in 4 days", "no", "pinned"]
    assert "Does not expire while the topic is read" in page
    assert "Does not expire while a transaction is open" in page
    assert page.count(">pending</span>") == 1


def test_an_empty_group_keeps_its_offsets_from_the_time_it_became_empty(person: Client, seed: Seed) -> None:
    pk = seed.group("g", "Empty", since_ms_ago=DAY_MS)
    seed.commit(pk, {("orders", 0): 1}, ms_ago=60 * DAY_MS)
    assert expiries(person.get("/groups/g?tab=offsets").content.decode()) == ["in 5 days"]
