"""Items and dead letters of a share group on pages: what is shown, and what an operator does after a review."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tests.frontend.item_seed import WORKERS, queue
from tests.frontend.seed import Seed, now_ms
from tests.frontend.test_share_pages import words

ITEMS, DEAD = "/groups/mailing/items", "/groups/mailing/dead-letters"


@pytest.fixture(autouse=True)
def mailing(seed: Seed) -> None:
    """A share group with items in every state."""
    queue(seed)


def boxes(client: Client, url: str) -> list[str]:
    """The values of the boxes of a list, in order."""
    found = re.findall(r'name="(?:item|letter)" value="([^"]*)" form="bulk"', client.get(url).content.decode())
    return [unescape(value) for value in found]


def places(seed: Seed) -> dict[str, Any]:
    """Which offsets are where."""
    return {
        table: seed.connection.execute(f"select {what} from offsets_share{table} order by 1").fetchall()
        for table, what in (("lock", "held::text"), ("retry", "held::text"), ("dead", '"offset"'))
    }


def test_the_group_shows_what_there_is_to_do(person: Client) -> None:
    page = words(person, "/groups/mailing")
    assert "Lag 57 1 not known" in page
    assert "Ready 43 3 again 1 delayed" in page
    assert "Acquired 13 the oldest" in page
    assert "Dead letters 3" in page
    assert "Partitions 3" in page
    assert "entries 0 0 10 60 100 57 13 3 1 3" in page
    assert "entries 1 1 40 40 40 0 0 0 0 0" in page
    assert "entries 2 2 – – 0 – 0 0 0 0" in page, "not zero: it is not known"


def test_the_group_shows_how_long_the_oldest_item_waits(person: Client, seed: Seed) -> None:
    now, run = now_ms(), seed.connection.execute
    run(
        "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
        " select id, 0, %(at)s, %(at)s, 0, 0 from groups_topic where name = 'entries'",
        {"at": now - 200_000},
    )
    run(
        "insert into groups_watermark (topic_id, partition, sampled_at, log_start_offset, log_end_offset)"
        " select id, 0, %s, 0, 100 from groups_topic where name = 'entries'",
        [now],
    )
    assert "Lag 57 the oldest waits 3 min 1 not known" in words(person, "/groups/mailing")


def test_items_are_listed_by_state_and_member(person: Client) -> None:
    page = words(person, ITEMS)
    assert re.search(r"entries 0 50–59 10 Acquired 1 ", page)
    assert re.search(r"entries 0 30–31, 35 3 Acquired 3 .*SMTP 451: try again", page)
    assert re.search(r"entries 0 20–22 3 Available again 2 last .* now SMTP 421: too busy", page)
    assert re.search(r"entries 0 10 1 Delayed 4 ", page)
    assert len(boxes(person, ITEMS)) == 4
    assert len(boxes(person, f"{ITEMS}?state=delayed")) == 1
    assert len(boxes(person, f"{ITEMS}?member={WORKERS[1]}")) == 2
    assert "No item of this group matches" in words(person, f"{ITEMS}?topic=nothing")


@pytest.mark.parametrize(
    ("act", "told", "retries", "dead"),
    [("release", "13 items released.", 4, 3), ("reject", "13 items rejected.", 2, 16)],
)
def test_acquired_items_are_changed_after_a_review(
    operator: Client, seed: Seed, act: str, told: str, retries: int, dead: int
) -> None:
    chosen = boxes(operator, f"{ITEMS}?state=acquired")
    before = places(seed)
    review = operator.post(ITEMS, {"act": act, "item": chosen})
    assert "13 items of 1 partition" in review.content.decode()
    assert places(seed) == before, "nothing has been done yet"
    done = operator.post(ITEMS, {"act": act, "item": chosen, "sure": "yes", "error": "by hand"}, follow=True)
    assert told in done.content.decode()
    after = places(seed)
    assert (after["lock"], len(after["retry"]), len(after["dead"])) == ([], retries, dead)
    again = operator.post(ITEMS, {"act": act, "item": chosen, "sure": "yes"}, follow=True).content.decode()
    assert ("Nothing was changed" in again) == (act == "reject"), "what is released can be released again"


def test_dead_letters_are_replayed_or_discarded_after_a_review(operator: Client, seed: Seed) -> None:
    limit, *rejected = boxes(operator, DEAD)
    assert len(rejected) == 2
    assert "no such address" in words(operator, f"{DEAD}?cause=rejected")
    assert len(boxes(operator, f"{DEAD}?cause=limit")) == 1
    review = operator.post(DEAD, {"act": "discard", "letter": rejected}).content.decode()
    assert "2 dead letters" in review
    assert "This cannot be undone" in review
    assert len(places(seed)["dead"]) == 3
    told = operator.post(DEAD, {"act": "discard", "letter": ",".join(rejected), "sure": "yes"}, follow=True)
    assert "2 dead letters discarded." in told.content.decode()
    told = operator.post(DEAD, {"act": "replay", "letter": limit, "sure": "yes", "keep_count": "yes"}, follow=True)
    assert "1 dead letter replayed." in told.content.decode()
    counts = seed.connection.execute("select delivery_count from offsets_shareretry where held @> 1::bigint").fetchone()
    assert counts == (4,), "one delivery is left"
    assert places(seed)["dead"] == []


def test_all_that_match_are_chosen_at_once(operator: Client, seed: Seed) -> None:
    seed.connection.execute(
        'insert into offsets_sharedead (share_partition_id, "offset", delivery_count, cause, member_id, at)'
        " select min(id), n, 1, 'rejected', '', 0 from offsets_sharepartition, generate_series(200, 349) n group by n"
    )
    assert "Replay all" in words(operator, f"{DEAD}?cause=rejected")
    review = operator.post(f"{DEAD}?cause=rejected", {"act": "replay", "all": "yes"}).content.decode()
    assert "152 dead letters" in review
    letters = re.search(r'name="letter" value="([^"]*)"', review)
    assert letters
    told = operator.post(DEAD, {"act": "replay", "letter": letters[1], "sure": "yes"}, follow=True)
    assert "152 dead letters replayed." in told.content.decode()
    assert len(boxes(operator, DEAD)) == 1


@pytest.mark.parametrize(
    ("url", "sent", "status", "said"),
    [
        (ITEMS, {"act": "release"}, 400, "Tick something in the list first"),
        (ITEMS, {"act": "eat", "item": "x"}, 400, "act: "),
        (ITEMS, {"act": "release", "item": "x"}, 400, "The selection cannot be read"),
        (ITEMS, {"act": "release", "item": '["entries", 0, [[5, 1.5]]]'}, 400, "The selection cannot be read"),
        (ITEMS, {"act": "release", "item": '["entries", 9, [[1, 1]]]', "sure": "yes"}, 404, "entries"),
        (DEAD, {"act": "replay"}, 400, "Tick something in the list first"),
        (DEAD, {"act": "replay", "letter": "x"}, 400, "ids of dead letters"),
    ],
)
def test_what_cannot_be_is_refused(operator: Client, url: str, sent: dict[str, str], status: int, said: str) -> None:
    answer = operator.post(url, sent)
    assert (answer.status_code, said in answer.content.decode()) == (status, True), answer.content.decode()


def test_only_share_groups_have_items(person: Client, seed: Seed) -> None:
    seed.group("billing")
    for page in ("items", "dead-letters"):
        answer = person.get(f"/groups/billing/{page}")
        assert (answer.status_code, "only share groups have items" in answer.content.decode()) == (404, True)
        assert person.get(f"/groups/nobody/{page}").status_code == 404
