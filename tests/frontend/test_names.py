"""What members are called for people on every page: client and host first, ids second."""

from __future__ import annotations

import re
from html import unescape

from django.test import Client
from psycopg.types.json import Jsonb

from frontend.pages.overview.parts import OverviewParts
from frontend.ui.reads import SEARCHED, Wanted, events_of, named_events
from frontend.ui.wording import member_name, short_id
from kcoord.database.pool import Database
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from tests.frontend.seed import Seed, member_id, now_ms, working_group
from tests.frontend.verdict_seed import judged, verdict
from tests.frontend.viewers import ALL, viewer
from tests.support.spark_runs import put_finding, put_run

GONE = member_id("billing", 77)


def uuid_of(member: str) -> str:
    """The beginning of the UUID in a member id."""
    return short_id(member[-36:])


def event(seed: Seed, kind: str, member: str | None, **detail: object) -> None:
    seed.connection.execute(
        "insert into groups_event (group_name, at, kind, generation_id, member_id, detail)"
        " values (%s, %s, %s, 1, %s, %s)",
        ["billing", now_ms(), kind, member, Jsonb(detail)],
    )


def plain(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page[page.index("<main") :])).split())


def test_a_member_of_which_nothing_else_is_known_has_its_id() -> None:
    assert member_name("m1", {}) == "m1"
    assert member_name(GONE, {GONE: "billing@10.0.0.9"}) == "billing@10.0.0.9 (e152ec3f…)"


def test_events_name_members_that_are_there_and_those_that_are_gone(person: Client, seed: Seed) -> None:
    present = working_group(seed)[1]
    event(seed, "member_joined", GONE, client_id="billing", client_host="10.0.7.7")
    event(seed, "member_expired", GONE, cause="session_expired")
    event(seed, "member_replaced", present, old_member_id=GONE, instance_id="i")
    gone, here = f"billing@10.0.7.7 ({uuid_of(GONE)})", f"billing@10.0.0.2 ({uuid_of(present)})"
    for path in ("/groups/billing", "/groups/billing/events"):
        page = plain(person.get(path).content.decode())
        assert f"{gone} joined" in page, path
        assert f"{gone} joined from" not in page, "its host is in its name"
        assert f"{gone} expired" in page
        assert f"{here} replaced {gone} as static member i" in page
    member = plain(person.get(f"/groups/billing/members/{GONE}").content.decode())
    assert f"{gone} expired" in member


async def test_members_of_a_consumer_group_are_named_by_events_alone_for_who_sees_some_topics(
    db: Database, seed: Seed
) -> None:
    pk = seed.consumer_group("billing", "Stable", epoch=1, assignment_epoch=1)
    seed.consumer_member(pk, "m1", epoch=1)
    event(seed, "member_left", "m1")
    (everything,) = (await events_of(db, ALL, "billing", Wanted())).events
    assert "@" in everything.names["m1"]
    limited = viewer("describe:group:*", "describe:topic:orders")
    (some,) = (await events_of(db, limited, "billing", Wanted())).events
    assert some.names == {}


async def test_joins_are_looked_for_among_the_newest_events(db: Database, seed: Seed) -> None:
    event(seed, "member_joined", "m1", client_id="c", client_host="h")
    event(seed, "member_left", "m1")
    found = (await events_of(db, ALL, "billing", Wanted(), limit=1)).events
    assert found[0].names == {"m1": "c@h"}
    with seed.connection.cursor() as cursor:
        cursor.executemany(
            "insert into groups_event (group_name, at, kind, generation_id, detail)"
            " values ('billing', 0, 'x', 1, '{}')",
            [()] * SEARCHED,
        )
    async with db.snapshot() as connection:
        assert (await named_events(db, connection, ALL, "billing", found))[0].names == {}


def test_other_pages_name_them_in_the_same_way(person: Client, seed: Seed) -> None:
    first = working_group(seed)[0]
    name = f"billing@10.0.0.1 ({uuid_of(first)})"
    seed.topic("orders", 12)
    assert f"owned by {name}" in unescape(person.get("/topics/orders").content.decode())
    seed.connection.execute(
        "update groups_member set protocol_metadata = array[%s::bytea]",
        [encode_subscription(Subscription(("orders",)))],
    )
    cells = plain(person.get("/groups/billing/simulate?add=1&topics=orders:13").content.decode())
    assert f"billing@10.0.0.1 {short_id(first)} " in cells
    billing = plain(person.get("/groups/billing").content.decode())
    assert f"Leader billing@10.0.0.1 {short_id(first)}" in billing
    assert f"{name} leads" in billing


def test_late_members_are_named_whatever_rows_the_page_shows(person: Client, seed: Seed) -> None:
    late = member_id("w", 0)
    pk = seed.group("search", leader=late)
    seed.members(pk, [late], client_id="w", heartbeat_ms_ago=40_000)
    for query in ("", "?tab=members&q=nobody", "?tab=offsets"):
        page = plain(person.get(f"/groups/search{query}").content.decode())
        assert f"w@10.0.0.1 ({uuid_of(late)}) sends no heartbeats." in page, query


def test_who_is_about_to_be_removed_is_named(operator: Client, seed: Seed) -> None:
    members = working_group(seed)
    page = plain(operator.get(f"/groups/billing/kick?member={members[1]}").content.decode())
    assert f"billing@10.0.0.2 {members[1]} The member is removed" in page


def test_long_names_of_clients_are_shortened_in_sentences() -> None:
    told = member_name("m1", {"m1": f"{'c' * 100}@10.0.0.9"})
    assert re.fullmatch(r"c+…c+@10\.0\.0\.9 \(m1\)", told)
    assert len(told) < 70


def test_the_overview_names_members_that_miss_heartbeats(person: Client, seed: Seed) -> None:
    judged(seed)
    mailing, ids = seed.group("mailing"), [member_id("mailing", number) for number in range(3)]
    seed.members(mailing, ids, client_id="mail")
    other = seed.group("other")
    seed.members(other, ids[:1], client_id="another")
    verdict(seed, mailing, "late", number=4, names=ids)
    verdict(seed, other, "late", names=ids[:1])
    page = plain(person.get("/").content.decode())
    first, second = (f"mail@10.0.0.{number} ({short_id(ids[number - 1])})" for number in (1, 2))
    assert f"4 members send no heartbeats: {first}, {second} and 2 more." in page
    assert f"another@10.0.0.1 ({short_id(ids[0])}) sends no heartbeats." in page


async def test_the_overview_leaves_out_names_that_cannot_be_seen(seed: Seed, runtime: Runtime) -> None:
    pk = seed.consumer_group("search", "Stable", epoch=1, assignment_epoch=1)
    seed.consumer_member(pk, "m1", epoch=1)
    verdict(seed, pk, "late", names=("m1",))
    everything = (await OverviewParts(runtime).read(ALL))["attention"].value
    assert "@" in everything.names["search"]["m1"]
    limited = viewer("describe:group:*", "describe:topic:orders")
    assert (await OverviewParts(runtime).read(limited))["attention"].value.names == {}


def test_findings_name_members_of_their_group_that_are_there_and_those_that_are_gone(
    person: Client, seed: Seed
) -> None:
    present = working_group(seed)[0]
    event(seed, "member_joined", GONE, client_id="billing", client_host="10.0.7.7")
    run_id = put_run(seed.connection, "reconcile", findings=2)
    put_finding(seed.connection, run_id, 1, "two_members", "billing", evidence={"members": [present, GONE]})
    put_finding(seed.connection, run_id, 2, "two_members", "other", evidence={"members": [GONE]})
    page = plain(person.get("/archive/findings").content.decode())
    assert f"members billing@10.0.0.1 ({uuid_of(present)}), billing@10.0.7.7 ({uuid_of(GONE)})" in page
    assert f"member {short_id(GONE)}" in page, "it is not known in the other group"
