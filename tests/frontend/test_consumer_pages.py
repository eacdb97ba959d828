"""The page of a consumer group that the real service coordinates: who has, gives up and waits for what."""

from __future__ import annotations

from typing import Any

import pytest

from frontend.pages.group import present as presenters
from frontend.pages.group import reads as queries
from frontend.pages.group.present import HandoverLine, MemberLine
from frontend.pages.group.reads import GroupPage, Limits
from frontend.pages.groups.reads import Wanted, group_list
from groups.catalogue.topics import TopicService
from groups.core.model.consumer_group import ConsumerGroup, ConsumerMember, ConsumerMembers, MemberState, Timers
from groups.core.model.persistent import DeadlineMap, Timer
from groups.engine.service import GroupService
from groups.readmodel import GroupFilter
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Connection, Database
from kcoord.process.runtime import Runtime
from tests.conftest import START_MS
from tests.frontend.consumer_members import ConsumerClient, settle
from tests.frontend.viewers import ALL
from tests.support.members import eventually


@pytest.fixture
def service(runtime: Runtime) -> GroupService:
    return runtime.get(GroupService)


@pytest.fixture
async def entries(runtime: Runtime) -> str:
    """The id of a topic `entries` of six partitions."""
    return str((await runtime.get(TopicService).create("entries", 6)).topic_id)


async def page_of(runtime: Runtime, group_id: str = "ledger", **limits: int) -> GroupPage:
    page = await queries.group_page(runtime.db, ALL, group_id, Limits(**limits))
    assert page is not None
    return page


def shown(page: GroupPage) -> dict[str, Any]:
    """The context of the page's template."""
    return presenters.group(page, 50, {}, ("uniform", "range"), None)


def lines(page: GroupPage) -> dict[str, MemberLine]:
    return {line.member.member_id: line for line in shown(page)["members"]}


def shares(line: MemberLine) -> list[tuple[str, str, str]]:
    return [(share.what, share.topic, share.text) for share in line.shares]


def moves(page: GroupPage) -> list[tuple[str, str | None, str | None, str]]:
    handovers: list[HandoverLine] = shown(page)["handovers"]
    return [(line.share.text, line.move.holder, line.move.heir, line.stand) for line in handovers]


async def test_a_partition_changes_hands_step_by_step(runtime: Runtime, service: GroupService, entries: str) -> None:
    a = await ConsumerClient(service, "a").join()
    await settle(a)
    page = await page_of(runtime)
    assert (page.header.state, moves(page)) == ("Stable", [])
    assert shown(page)["explanation"].startswith("The only member has its target assignment of epoch 1.")

    b = await ConsumerClient(service, "b").join()
    page = await page_of(runtime)
    assert moves(page) == [("3–5", a.member_id, b.member_id, "Not told yet")]
    assert shares(lines(page)[a.member_id]) == [("", "entries", "0–2"), ("will give up", "entries", "3–5")]
    assert shares(lines(page)[b.member_id]) == [("is to get", "entries", "3–5")]
    assert "learns with its next heartbeat that it must give up entries 3–5 for " in shown(page)["explanation"]

    await a.beat()
    page = await page_of(runtime)
    assert moves(page) == [("3–5", a.member_id, b.member_id, "Must give up")]
    assert page.consumer is not None
    assert page.consumer.handovers[0].deadline == START_MS + 60_000
    assert shares(lines(page)[a.member_id]) == [("", "entries", "0–2"), ("must give up", "entries", "3–5")]
    assert (lines(page)[a.member_id].state.label, lines(page)[a.member_id].behind) == ("Giving up", 2)
    assert lines(page)[b.member_id].state.label == "Waiting"
    cells = shown(page)["strips"][0].cells
    assert [(cell.partition, cell.pending, cell.moves) for cell in cells] == [
        *((partition, False, False) for partition in range(3)),
        *((partition, True, True) for partition in range(3, 6)),
    ]
    assert {cell.heir for cell in cells[3:]} == {lines(page)[b.member_id].colour}

    await a.beat(acknowledge=True)
    page = await page_of(runtime)
    assert moves(page) == [("3–5", None, b.member_id, "Free")]
    strip = shown(page)["strips"][0]
    assert strip.promised.startswith("3–5 wait for ")
    assert strip.unowned == ""

    await b.beat()
    page = await page_of(runtime)
    assert (page.header.state, moves(page)) == ("Stable", [])
    assert lines(page)[b.member_id].state.label == "Active"


async def test_an_epoch_without_a_target_says_why_it_began(
    runtime: Runtime, service: GroupService, entries: str
) -> None:
    members = [await ConsumerClient(service, name).join() for name in "ab"]
    await settle(*members)
    await members[1].leave()
    context = shown(page := await page_of(runtime))
    assert page.header.state == "Assigning"
    assert context["explanation"].startswith("Epoch 3 (")
    assert (
        " left) has no target yet: it is computed with the next heartbeat; until then members keep epoch 2."
        in (context["explanation"])
    )
    assert context["target_lag"] == 1


async def test_a_static_member_that_is_away_keeps_what_it_has(
    runtime: Runtime, service: GroupService, entries: str
) -> None:
    members = [await ConsumerClient(service, name, instance_id=f"i-{name}").join() for name in "ab"]
    await settle(*members)
    await members[1].leave(for_good=False)
    page = await page_of(runtime)
    line = lines(page)[members[1].member_id]
    assert (line.state.label, line.away, line.member.instance_id) == ("Away", True, "i-b")
    assert shares(line) == [("", "entries", "3–5")]

    await ConsumerClient(service, "c").join()
    page = await page_of(runtime)
    assert "Holder away" in {stand for *_, stand in moves(page)}


async def test_subscriptions_say_what_does_not_exist_and_what_a_pattern_matches(
    runtime: Runtime, service: GroupService, entries: str
) -> None:
    a = await ConsumerClient(service, "a", subscribed_topic_names=frozenset({"entries", "entrees"})).join()
    b = ConsumerClient(
        service, "b", subscribed_topic_names=None, subscribed_topic_regex="e.*", rack_id="r1", server_assignor="range"
    )
    await b.join()
    assert lines(await page_of(runtime))[b.member_id].matched in ("not resolved yet", "matches 1 topic")
    await eventually(lambda: not service.busy, "the expression is resolved")
    page = await page_of(runtime)
    assert lines(page)[a.member_id].known == ("entries",)
    assert lines(page)[a.member_id].unknown == ("entrees",)
    assert lines(page)[b.member_id].matched == "matches 1 topic"
    assert lines(page)[b.member_id].detail.rack_id == "r1"
    assert (shown(page)["assignor"], shown(page)["assignor_why"]) == ("range", "1 member asks for it")


async def test_a_topic_of_which_nobody_has_anything_yet_is_drawn(
    runtime: Runtime, service: GroupService, entries: str
) -> None:
    await runtime.get(TopicService).create("more", 2)
    a = await ConsumerClient(service, "a").join()
    await settle(a)
    await ConsumerClient(service, "b", subscribed_topic_names=frozenset({"more", "entries"})).join()
    page = await page_of(runtime)
    assert {strip.topic: strip.size for strip in shown(page)["strips"]} == {"entries": 6, "more": 2}


async def test_the_list_counts_members_of_both_protocols(runtime: Runtime, service: GroupService, entries: str) -> None:
    await settle(*[await ConsumerClient(service, name).join() for name in "ab"])
    found = await group_list(runtime.db, ALL, Wanted(GroupFilter(states=("Stable",), types=("consumer",))))
    assert [(group.group_id, group.members, group.topics) for group in found.groups] == [("ledger", 2, ["entries"])]


def crowd(topic_id: str, size: int) -> ConsumerGroup:
    """Everybody has one partition too many, which the next member waits for; the last two were told."""
    members = []
    for number in range(size):
        told = number >= size - 2
        has, gives_up = {number: 6}, {size + number: 6}
        members.append(
            ConsumerMember(
                f"m{number:05}",
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=frozenset({"telemetry"}),
                member_epoch=6 if told or number % 2 == 0 else 7,
                previous_member_epoch=6,
                state=MemberState.UNREVOKED_PARTITIONS if told else MemberState.STABLE,
                assigned={topic_id: has if told else has | gives_up},
                pending_revocation={topic_id: gives_up} if told else {},
                target={topic_id: frozenset({number, size + (number - 1) % size})},
            )
        )
    timers = Timers(session=DeadlineMap({m.member_id: Timer(START_MS + 45_000, START_MS) for m in members}))
    return ConsumerGroup("fleet", START_MS, 7, 7, START_MS, members=ConsumerMembers(members), timers=timers)


class Counting(Database):
    """Counts the rows that statements return."""

    fetched = 0

    async def rows(self, connection: Connection, statement: str, parameters: object = None) -> list[object]:  # type: ignore[override]
        found = await super().rows(connection, statement, parameters)  # type: ignore[arg-type]
        self.fetched += len(found)
        return found  # type: ignore[return-value]


async def test_the_page_of_a_crowd_reads_a_bounded_number_of_rows(
    runtime: Runtime, service: GroupService, clock: VirtualClock
) -> None:
    topic_id = str((await runtime.get(TopicService).create("telemetry", 2_000)).topic_id)
    await service.put(crowd(topic_id, 1_000))
    counting = Counting(runtime.db.conninfo, runtime.config, clock)
    await counting.open()
    limits = Limits()
    page = await queries.group_page(counting, ALL, "fleet", limits)
    await counting.close()
    assert page is not None
    assert page.consumer is not None
    per_member = 3  # what it has, what it is to get and what it has too much, of one topic
    bound = limits.members * (2 + 2 * per_member) + 3 * limits.cells + limits.offsets + limits.handovers + 20
    assert counting.fetched <= bound
    assert page.counts.members == 1_000
    assert [member.consumer_state for member in page.members[:3]] == [1, 1, 0], "who holds it up comes first"
    assert len(page.consumer.handovers) == limits.handovers < page.consumer.handover_lines
    assert page.consumer.handovers[0].told


async def test_the_target_of_an_empty_group_is_not_behind(
    service: GroupService, runtime: Runtime, entries: str
) -> None:
    a = await ConsumerClient(service, "a", subscribed_topic_names=("entries",)).join()
    await settle(a)
    await a.leave()
    async with runtime.db.connection() as connection:  # as 0.2.0 left it: nobody computed a target for nobody
        await connection.execute("update groups_group set assignment_epoch = generation_id - 1")
    page = await page_of(runtime)
    assert page.header.generation_id > page.header.assignment_epoch
    assert shown(page)["target_lag"] == 0
