"""Offset plans on pages: made, reviewed, applied, undone, and refused with reasons."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.pages.offsets import plan as views
from frontend.pages.offsets.form import CHOICES
from frontend.pages.offsets.plan import LINES, RISKY
from frontend.pages.offsets.reads import Q
from kcoord.models import AccessRule
from kcoord.protocol.errors import Error, ProtocolError
from kcoord.resets.strategies import PARAMETER, Strategy
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.viewers import ALL, allow

RESET = "/groups/idle/reset"


@pytest.fixture
def idle(seed: Seed) -> int:
    """An empty group with offsets on two topics; returns its key."""
    seed.topic("orders", 3, [100, 200, 300])
    seed.topic("bills", 1, [50])
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("orders", 0): 10, ("orders", 1): 20, ("bills", 0): 5})
    return pk


def made(client: Client, **fields: str) -> str:
    """The address of a new plan."""
    answer = client.post(RESET, fields)
    assert answer.status_code == 302, plain(answer.content.decode())
    return answer.headers["Location"]


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page[page.index("<main") :]).split())


def committed(database: str) -> dict[tuple[str, int], int]:
    with psycopg.connect(database) as connection:
        found = connection.execute("select topic, partition, committed_offset from offsets_committedoffset")
        return {(topic, partition): offset for topic, partition, offset in found}


def test_every_strategy_can_be_chosen_with_its_parameter() -> None:
    assert {choice.strategy for choice in CHOICES} == set(Strategy)
    assert {choice.strategy for choice in CHOICES if choice.field} == {s for s, name in PARAMETER.items() if name}
    fields = [choice.field for choice in CHOICES if choice.field]
    assert len(fields) == len(set(fields)), "two strategies must not share an input"


def test_a_plan_is_made_reviewed_applied_and_undone(operator: Client, idle: int, database: str) -> None:
    before = committed(database)
    plan = made(operator, strategy="to-earliest", topics="orders:0,1", reason="bug 17")
    page = plain(operator.get(plan).content.decode())
    assert "Earliest" in page
    assert "orders 0 0 10 0 0 – 100 90 → 100" in page
    assert "bug 17" in page
    assert committed(database) == before

    applied = plain(operator.post(plan, {"act": "apply"}, follow=True).content.decode())
    assert "Applied: the offsets of 2 partitions are set." in applied
    assert committed(database) == {("orders", 0): 0, ("orders", 1): 0, ("bills", 0): 5}

    assert re.search(r"Earliest applied .{1,9} by root: bug 17", plain(operator.get(RESET).content.decode()))
    undone = plain(operator.post(plan, {"act": "undo"}, follow=True).content.decode())
    assert "Undone: the offsets of 2 partitions are restored." in undone
    assert committed(database) == before
    with psycopg.connect(database) as connection:
        kinds = connection.execute("select kind, principal from offset_commit_log order by id").fetchall()
    assert kinds == [("reset", "root")] * 2 + [("restore", "root")] * 2
    assert "Offsets set: 2 partitions of orders, by root" in plain(operator.get("/groups/idle").content.decode())


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"strategy": "to-latest"}, "orders 1 1 20 200"),
        ({"strategy": "to-offset", "offset": "1,000"}, "1000 is outside the log"),
        ({"strategy": "shift-by", "by": "-5"}, "orders 0 0 10 5"),
        ({"strategy": "to-current", "topics": "orders"}, "orders 2 2 none 300"),
        ({"strategy": "copy-from-group", "from_group": "idle", "topics": "bills"}, "bills 0 0 5 5"),
        ({"strategy": "from-file", "csv": "orders,1,77"}, "orders 1 1 20 77"),
    ],
    ids=lambda value: value["strategy"] if isinstance(value, dict) else None,
)
def test_strategies(operator: Client, idle: int, fields: dict[str, str], shown: str) -> None:
    assert shown in plain(operator.get(made(operator, **fields)).content.decode())


def test_where_it_was_at_a_time(operator: Client, seed: Seed, idle: int) -> None:
    seed.journal("idle", "commit", "orders", 0, 3, ms_ago=3_600_000)
    seed.journal("idle", "commit", "orders", 0, 10, ms_ago=60_000)
    half_an_hour_ago = datetime.fromtimestamp((now_ms() - 1_800_000) / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    plan = made(operator, strategy="to-committed-at", committed_at=half_an_hour_ago, topics="orders:0")
    assert "orders 0 0 10 3" in plain(operator.get(plan).content.decode())


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({}, "Choose where the new offsets come from."),
        ({"strategy": "to-yesterday"}, "Choose where the new offsets come from."),
        ({"strategy": "to-offset", "offset": ""}, "An offset: Offset is missing."),
        ({"strategy": "to-offset", "offset": "many"}, "Offset: &#x27;many&#x27; is not a 64-bit integer"),
        ({"strategy": "to-offset", "offset": "9223372036854775808"}, "is not a 64-bit integer"),
        ({"strategy": "to-datetime", "at": "yesterday"}, "is not a date and time"),
        ({"strategy": "by-duration", "duration": "an hour"}, "is not an ISO 8601 duration"),
        ({"strategy": "to-latest", "topics": "orders:x"}, "is not a topic with partitions"),
        ({"strategy": "to-latest", "topics": "orders:7"}, "orders 7:"),
        ({"strategy": "from-file", "csv": "orders,1\norders,0,5"}, "line 1"),
        ({"strategy": "shift-by", "by": "1", "topics": "orders"}, "orders 2:"),
        ({"strategy": "copy-from-group", "from_group": "nobody"}, "there is no group &#x27;nobody&#x27;"),
    ],
)
def test_what_cannot_be_planned_is_said_and_the_form_keeps_what_was_typed(
    operator: Client, idle: int, fields: dict[str, str], complaint: str
) -> None:
    answer = operator.post(RESET, {**fields, "reason": "because"})
    page = answer.content.decode()
    assert answer.status_code in (400, 404)
    assert complaint in page
    assert 'value="because"' in page
    for value in fields.values():
        assert value.split("\n")[0] in page or value == "to-yesterday"


def test_problems_of_many_partitions_are_folded(operator: Client, seed: Seed) -> None:
    seed.topic("wide", 40)
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("wide", p): 1 for p in range(40) if p != 7})
    page = plain(operator.post(RESET, {"strategy": "to-latest"}).content.decode())
    assert "wide 0–6, 8–39:" in page


def test_a_group_with_members_can_be_planned_and_not_applied(operator: Client, seed: Seed, database: str) -> None:
    working_group(seed)
    seed.topic("orders", 12, [12_000] * 12)
    before = committed(database)
    answer = operator.post("/groups/billing/reset", {"strategy": "to-latest", "topics": "orders"})
    plan = answer.headers["Location"]
    page = operator.get(plan).content.decode()
    assert "only while the group has no members" in page
    assert 'value="apply"' not in page
    refused = operator.post(plan, {"act": "apply"})
    assert refused.status_code == 409
    assert "with 3 members" in refused.content.decode()
    assert committed(database) == before


@pytest.fixture
def risky(operator: Client, seed: Seed, idle: int) -> str:
    """The address of a plan that sets one offset outside its log, and removes two of which nothing is known."""
    seed.journal("idle", "commit", "orders", 0, 3_000, ms_ago=3_600_000)
    for topic, partition, offset in (("orders", 0, 10), ("orders", 1, 20), ("bills", 0, 5)):
        seed.journal("idle", "commit", topic, partition, offset, ms_ago=60_000)
    seed.topic("quiet", 1, [50])
    seed.commit(idle, {("quiet", 0): 4})
    seed.journal("idle", "commit", "quiet", 0, 4, ms_ago=3_600_000)
    half_an_hour_ago = datetime.fromtimestamp((now_ms() - 1_800_000) / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    return made(operator, strategy="to-committed-at", committed_at=half_an_hour_ago)


def test_risks_are_told_first_and_removals_need_a_tick(operator: Client, risky: str, database: str) -> None:
    before = committed(database)
    page = operator.get(risky).content.decode()
    text = plain(page)
    assert "The committed offset of 2 partitions will be removed" in text
    assert "For 2 partitions the commit history does not reach back" in text
    assert "The new offset of 1 partition is outside the log" in text
    at_risk = text[text.index("Partitions at risk") : text.index("All partitions of the plan")]
    assert at_risk.index("bills 0 0 5 removed") < at_risk.index("orders 0 0 10 3,000")
    assert 'class="button danger" name="act" value="apply"' in page
    refused = operator.post(risky, {"act": "apply"})
    assert refused.status_code == 400
    assert "Tick the box" in refused.content.decode()
    assert committed(database) == before
    operator.post(risky, {"act": "apply", "removals": "on"})
    assert committed(database) == {("orders", 0): 3_000, ("quiet", 0): 4}


def test_risks_can_be_avoided_by_another_plan(operator: Client, risky: str, database: str) -> None:
    kept = operator.post(risky, {"act": "keep"})
    assert kept.status_code == 302
    page = plain(operator.get(kept.headers["Location"]).content.decode())
    assert "removed" not in page
    careful = operator.post(kept.headers["Location"], {"act": "clamp"}).headers["Location"]
    page = operator.get(careful).content.decode()
    assert "Before you apply it" not in page
    assert "button danger" not in page
    operator.post(careful, {"act": "apply"})
    assert committed(database) == {("orders", 0): 100, ("orders", 1): 20, ("bills", 0): 5, ("quiet", 0): 4}
    assert operator.post(careful, {"act": "clamp"}).status_code == 409


def test_a_plan_that_removes_everything_says_so(operator: Client, seed: Seed, idle: int) -> None:
    for partition in range(3):
        seed.journal("idle", "commit", "orders", partition, 10, ms_ago=60_000)
    hour_ago = datetime.fromtimestamp((now_ms() - 3_600_000) / 1000, UTC).strftime("%Y-%m-%dT%H:%M")
    plan = made(operator, strategy="to-committed-at", committed_at=hour_ago, topics="orders:0,1")
    assert "The committed offset of all 2 partitions of the plan will be removed" in plain(
        operator.get(plan).content.decode()
    )


def test_all_partitions_at_risk_are_on_pages_of_their_own(operator: Client, seed: Seed) -> None:
    seed.topic("wide", RISKY + 9, [9] * (RISKY + 9))
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("wide", p): 1 for p in range(RISKY + 9)})
    source = seed.group("source", "Empty")
    seed.commit(source, {("wide", p): 99 if p else 5 for p in range(RISKY + 9)})
    page = operator.get(made(operator, strategy="copy-from-group", from_group="source")).content.decode()
    assert f"{RISKY + 8} partitions are outside" in plain(page)
    link = re.search(r'href="([^"]+only=risky)"', page)
    assert link is not None
    only = operator.get(link[1].replace("&amp;", "&")).content.decode()
    assert only.count('<th scope="row"') == RISKY + 8


def test_what_moved_since_is_refused_and_named(operator: Client, seed: Seed, idle: int) -> None:
    plan = made(operator, strategy="to-earliest")
    seed.connection.execute("update offsets_committedoffset set record_offset = 99 where topic = 'bills'")
    refused = operator.post(plan, {"act": "apply"})
    assert refused.status_code == 409
    assert "bills-0 was committed or removed since the plan was made" in refused.content.decode()


def test_a_plan_is_applied_once(operator: Client, idle: int) -> None:
    plan = made(operator, strategy="to-earliest")
    operator.post(plan, {"act": "apply"})
    again = operator.post(plan, {"act": "apply"})
    assert again.status_code == 409
    assert "it has already been applied" in again.content.decode()
    assert operator.post(plan, {"act": "explode"}).status_code == 400


def test_the_plan_of_another_group_is_none(operator: Client, seed: Seed, idle: int) -> None:
    seed.group("other", "Empty")
    plan = made(operator, strategy="to-earliest").replace("/groups/idle/", "/groups/other/")
    assert operator.get(plan).status_code == 404
    assert operator.post(plan, {"act": "apply"}).status_code == 404


def test_a_long_plan_comes_in_pages(operator: Client, seed: Seed) -> None:
    seed.topic("wide", LINES + 5, [9] * (LINES + 5))
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("wide", p): 1 for p in range(LINES + 5)})
    first = operator.get(made(operator, strategy="to-latest")).content.decode()
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following is not None
    second = operator.get(following[1].replace("&amp;", "&")).content.decode()
    rows = [page.count('<th scope="row"') for page in (first, second)]
    assert rows == [LINES, 5]


def test_a_group_that_is_not_there_can_be_given_offsets(operator: Client, seed: Seed, database: str) -> None:
    seed.topic("orders", 1, [100])
    page = operator.get("/groups/new/reset").content.decode()
    assert "Group new does not exist yet" in page
    answer = operator.post("/groups/new/reset", {"strategy": "to-latest", "topics": "orders"})
    operator.post(answer.headers["Location"], {"act": "apply"})
    assert committed(database) == {("orders", 0): 100}


class TestPermissions:
    def test_who_may_not_plan_is_refused(self, person: Client, idle: int) -> None:
        page = person.get("/groups/idle").content.decode()
        assert f'href="{RESET}"' not in page
        assert "your account needs alter-offsets on group idle" in page
        assert person.get(RESET).status_code == 403
        assert person.post(RESET, {"strategy": "to-latest"}).status_code == 403

    def test_who_lost_the_right_may_not_apply(self, person: Client, idle: int, database: str) -> None:
        before = committed(database)
        user = get_user_model().objects.get(username="mara")
        allow(user, "alter-offsets:group:idle", "read:topic:*")
        plan = made(person, strategy="to-latest")
        AccessRule.objects.filter(operation="alter-offsets").delete()
        assert 'value="apply"' not in person.get(plan).content.decode()
        refused = person.post(plan, {"act": "apply"})
        assert refused.status_code == 403
        assert committed(database) == before


def test_a_plan_that_cannot_be_read_now_is_not_called_unknown(
    operator: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"/groups/billing/plans/{uuid.uuid4()}"
    answer = operator.get(address)
    assert (answer.status_code, "No such plan" in answer.content.decode()) == (404, True)

    async def fails(*given: object) -> object:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "no connection was free")

    monkeypatch.setattr(views, "_review", fails)
    answer = operator.get(address)
    page = answer.content.decode()
    assert (answer.status_code, "No such plan" in page) == (503, False)
    assert "The plan cannot be read now" in page
    assert "no connection was free" in page


def test_a_plan_that_statistics_do_not_know_yet_is_looked_up_line_by_line(
    operator: Client, seed: Seed, database: str
) -> None:
    """All partitions compared with all took seconds for a group of 10,000, and its page was a 503 on busy cores."""
    with psycopg.connect(database, autocommit=True) as connection:
        # Of pages that other tests have left empty Postgres would expect an index to be as long as they are.
        connection.execute("truncate groups_group, groups_topic cascade")
        pk = seed.group("idle", "Empty")
        seed.topic("orders", 1, [9])
        seed.commit(pk, {("orders", 0): 1})
        connection.execute("analyze groups_topic, groups_watermark, offsets_committedoffset, offsets_plannedoffset")
        seed.topic("bills", 2_000, [9] * 2_000)
        seed.commit(pk, {("bills", partition): 1 for partition in range(2_000)})
        asked = {"pk": pk, "id": made(operator, strategy="to-earliest").rpartition("/")[2], **ALL.parameters()}
        found = connection.execute(f"explain (analyze, timing off) {Q.plan_progress}".encode(), asked).fetchall()
    plan = "\n".join(row[0] for row in found)
    assert "rows=2001.00" in plan, plan
    assert "Rows Removed by Join Filter" not in plan, plan
