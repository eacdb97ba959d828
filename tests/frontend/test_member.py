"""The page of a member: both protocols, one that is gone, what concerns it, and what it reads of a huge group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.test import Client

from frontend.pages.member.view import EVENTS, EVENTS_SEARCHED, PARTITIONS, START, member_page
from frontend.ui.page import member_url
from frontend.ui.wording import short_id
from kcoord.database.pool import Database
from kcoord.database.sql import queries
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from tests.frontend.seed import Seed, member_id, now_ms, reconciling_group, working_group
from tests.frontend.test_queries import Counting
from tests.frontend.viewers import ALL
from tests.support.database import cloned_database
from tests.support.plans import executed_plan


def plain(client: Client, address: str, status: int = 200) -> str:
    """The text of the page below its head."""
    answer = client.get(address)
    assert answer.status_code == status
    page = answer.content.decode().replace("<wbr>", "")
    return " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<main") :]).split())


def test_a_classic_member(operator: Client, seed: Seed) -> None:
    members = working_group(seed)
    seed.topic("orders", 12, [11_000] * 12)
    metadata = encode_subscription(Subscription(("orders", "payments")))
    seed.connection.execute("update groups_member set protocol_metadata = %s", [[metadata]])
    text = plain(operator, member_url("billing", members[0]))
    assert "billing@10.0.0.1 Active leader Remove the member…" in text
    assert f"Member id {members[0]}" in text
    assert "Protocol classic Generation 7" in text
    assert "of 45 s" in text
    assert f"Owned partitions 6 Lag {sum(600 - 37 * p for p in range(4)):,}" in text
    assert "orders 0 0 10,400 11,000 600" in text
    assert "Subscription orders payments" in text
    assert "joined from 10.0.0.7" in text
    assert "expired" not in text, "events of others are not its own"


def test_a_member_of_the_consumer_protocol(person: Client, seed: Seed) -> None:
    first, second = reconciling_group(seed)
    text = plain(person, member_url("ledger", first))
    assert "ledger@10.0.0.9 Giving up" in text
    assert "Remove the member… To remove a member, your account needs kick on group ledger." in text
    assert "Member epoch 11 of 12 Assignment epoch 12 group epoch 12" in text
    assert "Owned partitions 6 target 4" in text
    assert re.search(r"entries 3 3 owned never", text), text
    assert re.search(r"entries 5 5 must give up never", text), text
    waiting = plain(person, member_url("ledger", second))
    assert "Instance id ledger-2" in waiting
    assert re.search(r"entries 4 4 is to get", waiting), waiting
    assert "entries 6 6 owned" in waiting
    assert "Epoch 12: " in waiting
    assert "Subscription entries" in waiting


def test_a_regular_expression_and_a_topic_that_is_missing(person: Client, seed: Seed) -> None:
    first, _ = reconciling_group(seed)
    seed.connection.execute(
        "update groups_consumermember set subscribed_topic_regex = 'led.*', subscribed_topic_names = '{nowhere}'"
    )
    text = plain(person, member_url("ledger", first))
    assert "led.* not resolved yet nowhere not in the catalogue" in text


def test_time_lag_is_that_of_the_next_record(person: Client, seed: Seed) -> None:
    members = working_group(seed)
    seed.topic("orders", 12, [10_500])
    row = seed.connection.execute("select id from groups_topic where name = 'orders'").fetchone()
    assert row is not None
    for at, end in ((7_200_000, 10_300), (3_600_000, 10_400), (600_000, 10_500)):
        seed.connection.execute(
            "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
            " values (%s, 0, %s, %s, 0, %s)",
            [row[0], now_ms() - at, now_ms() - at, end],
        )
    assert re.search(r"orders 0 0 10,400 10,500 100 1 h", plain(person, member_url("billing", members[0])))


def test_a_late_member_and_one_beside_it(person: Client, seed: Seed) -> None:
    late, other = member_id("w", 0), member_id("w", 1)
    pk = seed.group("search", leader=other)
    seed.members(pk, [late], client_id="w", heartbeat_ms_ago=40_000)
    seed.members(pk, [other], client_id="w")
    said = plain(person, member_url("search", late))
    assert f"w@10.0.0.1 ({short_id(late).removeprefix('w-')}) sends no heartbeats. It loses its partitions in " in said
    assert "w@10.0.0.1 Late" in plain(person, member_url("search", late))
    assert "no heartbeats" not in plain(person, member_url("search", other))


def test_what_should_have_happened_is_not_announced(person: Client, seed: Seed) -> None:
    """Where timers do not run, deadlines pass: on the page of a member, of its group, and in the snapshot."""
    lost = member_id("w", 0)
    pk = seed.group("search", "CompletingRebalance", leader=lost)
    seed.members(pk, [lost], client_id="w", heartbeat_ms_ago=60_000)
    overdue = "update groups_member set session_deadline = %(at)s, pending_sync = true"
    seed.connection.execute(overdue, {"at": now_ms() - 15_000})
    seed.connection.execute("update groups_group set sync_deadline = %s", [now_ms() - 15_100])
    said = plain(person, member_url("search", lost))
    assert re.search(r"It should have lost its partitions 1[5-9] s ago", said), said
    assert re.search(r"1[5-9] s ago should have been removed: it has not synced", said), said
    said = plain(person, "/groups/search")
    assert re.search(r"The first should have lost its partitions 1[5-9] s ago", said), said
    assert "is removed" not in said
    taken = person.get("/groups/search/snapshot.json").json()
    assert taken["next_timer"]["what"] == "members that have not synced should have been removed"
    (late,) = [verdict["text"] for verdict in taken["verdicts"] if verdict["kind"] == "late"]
    assert late == f"w@10.0.0.1 ({short_id(lost).removeprefix('w-')}) sends no heartbeats."
    assert late in said


@pytest.mark.parametrize(("names", "number", "concerned"), [(["0"], 1, True), (["9"], 1, False), (["9"], 7, True)])
def test_stalled_partitions_concern_their_owner(
    person: Client, seed: Seed, names: list[str], number: int, concerned: bool
) -> None:
    members = working_group(seed)
    seed.connection.execute(
        "insert into offsets_groupverdict (group_id, kind, topic, since, number, lag, names)"
        " select id, 'stalled', 'orders', 1, %s, 600, %s from groups_group",
        [number, names],
    )
    assert ("no progress" in plain(person, member_url("billing", members[0]))) is concerned


def test_a_member_that_is_gone(person: Client, seed: Seed) -> None:
    working_group(seed)
    lost = member_id("billing", 99)
    text = plain(person, member_url("billing", lost), 404)
    assert "This member is gone: billing does not have it any more. The last that is known of it, 1 min ago :" in text
    assert "expired" in text
    assert re.search(r"10\.0\.0\.7 \(billing-[0-9a-f]{8}…\) joined", text)
    assert person.get(member_url("billing", lost), HTTP_HX_REQUEST="true").status_code == 200
    unknown = plain(person, member_url("billing", "nobody"), 404)
    assert "billing has no member nobody, and none of the newest 5,000 events of the group names it." in unknown
    assert person.get("/groups/none/members/m").status_code == 404
    assert person.get("/groups/billing/members/a%00b").status_code == 404
    seed.connection.execute("delete from groups_group")
    assert "and the group itself was deleted" in plain(person, member_url("billing", lost), 404)


def test_an_id_that_was_given_out(person: Client, seed: Seed) -> None:
    pk = seed.group("search", "Empty")
    seed.connection.execute(
        "insert into groups_pendingmember (group_id, member_id, deadline) values (%s, 'new', %s)",
        [pk, now_ms() + 45_000],
    )
    assert "has not joined yet" in plain(person, member_url("search", "new"), 404)


@pytest.mark.parametrize("name", ["a b", "kürbis <b>&\"'", "100%", "a?b#c", "日本", "team/worker-1", "x" * 300])
def test_every_member_id_has_a_page(operator: Client, seed: Seed, name: str) -> None:
    seed.members(seed.group("g 1%"), [name], client_id=name[:50])
    answer = operator.get(member_url("g 1%", name))
    assert answer.status_code == 200
    kick = re.search(r'class="member-remove" href="([^"]+)"', answer.content.decode())
    assert kick is not None
    assert quote(name, safe="") in kick[1].replace("+", "%20")
    assert operator.get(kick[1]).status_code == 200


def huge(seed: Seed) -> None:
    """2,000 members; the first owns 2,000 of 10,000 partitions. Its events are among 300 of others."""
    members = [member_id("fleet", number) for number in range(2_000)]
    pk = seed.group("fleet")
    seed.topic("telemetry", 10_000, [9] * 10_000)
    seed.members(pk, members)
    owners = {("telemetry", p): members[0 if p % 5 == 0 else p % 2_000] for p in range(10_000)}
    seed.assign(pk, owners)
    seed.commit(pk, dict.fromkeys(owners, 5))
    for number in range(300):
        seed.event("fleet", "member_joined", 1, members[number % 10])


@pytest.mark.whole("writes many rows to see that what is read is bounded")
async def test_a_member_of_a_huge_group_reads_a_bounded_number_of_rows(seed: Seed, db: Database) -> None:
    working_group(seed)
    huge(seed)
    counting = Counting(db.conninfo, db._config)
    await counting.open()
    await member_page(counting, ALL, "billing", member_id("billing", 0))
    statements = counting.statements
    page = await member_page(counting, ALL, "fleet", member_id("fleet", 0))
    await counting.close()
    assert counting.statements == 2 * statements, "as many statements as for a small group"
    assert page.present is not None
    assert (len(page.present.partitions), page.present.more) == (PARTITIONS, True)
    assert (page.present.totals.partitions, page.present.totals.lag) == (2_000, 8_000)
    assert len(page.events) == EVENTS
    last, _ = page.present.partitions[-1]
    further = await member_page(db, ALL, "fleet", member_id("fleet", 0), (last.topic, last.partition))
    assert further.present is not None
    assert further.present.partitions[0][0].partition == last.partition + 5


def test_partitions_come_in_pages(person: Client, seed: Seed) -> None:
    huge(seed)
    page = person.get(member_url("fleet", member_id("fleet", 0))).content.decode()
    assert page.count('data-label="Partition"') == PARTITIONS
    assert len(page) < 150_000
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following is not None
    assert "telemetry 250 250" in plain(person, following[1].replace("&amp;", "&"))
    assert person.get(member_url("fleet", "m") + "?after=x").status_code == 400


@pytest.fixture(scope="module")
def crowded(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A huge group beside others: their members, events, samples and commits."""
    with cloned_database(postgres) as conninfo, psycopg.connect(conninfo, autocommit=True) as connection:
        seed = Seed(connection)
        huge(seed)
        seed.many_groups(2_000)
        connection.execute(
            "insert into groups_event (group_name, at, kind, generation_id, member_id, detail)"
            " select 'other-' || n % 50, n, 'member_joined', 1, 'm', '{}' from generate_series(1, 20000) n"
        )
        connection.execute(
            "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
            " select t.id, n % 10000, n, n, 0, n from groups_topic t, generate_series(1, 30000) n"
        )
        connection.execute(
            "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, member_id,"
            " generation_id, client_id, principal, metadata)"
            " select 1000 * k, 'commit', g, a.topic, a.partition, k, a.member_id, 1, '', '', ''"
            " from groups_assignment a, generate_series(1, 5) k, (values ('fleet'), ('other-1')) v (g)"
        )
        connection.execute(
            "update offsets_committedoffset o set commit_timestamp = 5000, member_id = a.member_id"
            " from groups_assignment a where a.topic = o.topic and a.partition = o.partition"
        )
        connection.execute(
            b"vacuum analyze groups_assignment, groups_member, groups_event, groups_topic, offsets_committedoffset,"
            b" groups_watermark, offsets_watermarksample, offset_commit_log"
        )
        yield connection


@pytest.mark.parametrize("generic", [False, True], ids=["these values", "any values"])
@pytest.mark.parametrize(
    "statement", ["member_partitions", "one_member", "member_totals", "member_events", "member_progress"]
)
@pytest.mark.whole("writes many rows to see that what is read is bounded")
def test_a_member_is_found_beside_those_of_others(
    crowded: psycopg.Connection[Any], statement: str, generic: bool
) -> None:
    row = crowded.execute("select id from groups_group where group_id = 'fleet'").fetchone()
    assert row is not None
    parameters = {
        "pk": row[0], "epoch": 0, "member_id": member_id("fleet", 7), "protocol": "range", "most": EVENTS_SEARCHED,
        "limit": PARTITIONS + 1, "after_topic": START[0], "after_partition": START[1], "group_id": "fleet",
        "member_ids": [member_id("fleet", 7)], "since": 0, "now": 9_000, "lines": 300,
    }  # fmt: skip
    plan = executed_plan(
        crowded, getattr(queries("frontend"), statement), {**parameters, **ALL.with_groups()}, generic=generic
    )
    assert not re.search(r"Seq Scan on (groups_(assignment|member|event|watermark)|offset)", plan), plan
