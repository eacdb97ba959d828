"""Rebalances as episodes: folded from events, whatever these are, and shown on a page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from frontend.ui.episodes import CAUSES, HOUR_MS, KINDS, Episode, Phase, episodes, unrest
from frontend.ui.reads import EVENTS_READ, MOST_SHOWN, Wanted, history
from frontend.ui.rows import Event
from groups.catalogue.topics import TopicService
from groups.core.model.events import EventKind
from groups.core.model.types import Cause
from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from tests.frontend.consumer_members import ConsumerClient, settle
from tests.frontend.seed import Seed
from tests.frontend.viewers import ALL

A, B = "a-3f2a81c0-1111-4222-8333-444455556666", "b-3f2a81c0-1111-4222-8333-444455556666"


def story(*told: tuple[Any, ...]) -> list[Event]:
    """Events of (at, kind, generation, member, detail)."""
    return [
        Event(number, at, kind, generation, member, detail)
        for number, (at, kind, generation, member, detail) in enumerate(told, 1)
    ]


CLASSIC = story(
    (0, "group_created", 0, None, {}),
    (0, "member_joined", 0, A, {}),
    (0, "rebalance_started", 0, A, {"cause": "group_created"}),
    (1_000, "member_joined", 0, B, {}),
    (3_000, "rebalance_completed", 1, None, {"members": 2, "duration_ms": 3_000}),
    (3_040, "assignment_stored", 1, None, {"members": 2, "duration_ms": 40}),
    (60_000, "member_expired", 1, B, {"cause": "session_expired"}),
    (60_000, "rebalance_started", 1, B, {"cause": "session_expired"}),
    (60_100, "rebalance_completed", 2, None, {"members": 1, "duration_ms": 100}),
    (60_150, "rebalance_started", 2, A, {"cause": "leader_rejoined", "reason": "topics changed"}),
    (60_160, "rebalance_completed", 3, None, {"members": 1, "duration_ms": 10}),
)


def test_a_classic_group() -> None:
    first, second, third = episodes(CLASSIC, settled=False)
    assert (first.began, first.ended, first.outcome.label, first.generation_id) == (0, 3_040, "stable", 1)
    assert first.phases == (Phase("joining", 3_000), Phase("assigning", 40))
    assert (first.before, first.after, first.joined, first.gone) == (0, 2, 2, 0)
    assert (first.id, first.last_id) == (3, 6)

    assert second.trigger == "b-3f2a81c0… sent no heartbeat in time"
    assert (second.before, second.after, second.joined, second.gone) == (2, 1, 0, 1)
    assert (second.outcome.label, second.ended) == ("started over", 60_150)

    assert (third.reason, third.outcome.label, third.ended) == ("topics changed", "under way", None)
    assert third.length_ms(60_260) == 110
    assert episodes(CLASSIC, settled=True)[-1].outcome.label == "stable"


def test_a_group_that_empties_has_nothing_to_assign() -> None:
    (episode,) = episodes(
        story(
            (0, "rebalance_started", 4, A, {"cause": "member_left"}),
            (5, "group_emptied", 5, None, {"duration_ms": 5}),
        ),
        settled=True,
    )
    assert (episode.outcome.label, episode.ended, episode.after, episode.before) == ("empty", 5, 0, None)


def test_epochs_of_a_consumer_group() -> None:
    joins = (
        (0, "group_created", 0, None, {}),
        (0, "member_joined", 0, A, {}),
        (0, "group_epoch_bumped", 1, A, {"cause": "member_joined"}),
        (10, "target_computed", 1, None, {"members": 1}),
        (500, "member_reconciled", 1, A, {"member_epoch": 1}),
        (9_000, "member_joined", 1, B, {}),
        (9_000, "group_epoch_bumped", 2, B, {"cause": "member_joined"}),
        (9_020, "target_computed", 2, None, {"members": 2}),
        (9_500, "member_reconciled", 2, B, {"member_epoch": 2}),
    )
    first, second = episodes(story(*joins), settled=False)
    assert first.phases == (Phase("computing", 10), Phase("reconciling", 490))
    assert (first.outcome.label, first.ended, first.after) == ("stable", 500, 1)
    assert (second.outcome.label, second.ended, second.before) == ("under way", None, 1)
    overtaken = story(*joins, (9_800, "group_epoch_bumped", 3, B, {"cause": "subscription_changed"}))
    assert episodes(overtaken, settled=False)[1].outcome.label == "overtaken by epoch 3"
    later = [event for event in overtaken if event.id > 6]
    assert [e.outcome.label for e in episodes(later, settled=False)] == ["followed by epoch 3", "under way"]
    assert [e.after for e in episodes(later, settled=False, members=2)] == [2, 2]
    failed = story(
        *joins, (9_600, "target_failed", 2, None, {}), (9_700, "member_reconciled", 2, A, {"member_epoch": 2})
    )
    assert (episodes(failed, settled=True)[1].outcome.label, episodes(failed, settled=True)[1].ended) == (
        "assignor failed",
        9_700,
    )


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50),
            st.sampled_from([*KINDS, "something_new"]),
            st.integers(0, 3),
            st.none() | st.sampled_from([A, B]),
            st.fixed_dictionaries({}, optional={"members": st.integers(0, 3), "member_epoch": st.integers(0, 3)}),
        ),
        max_size=40,
    ),
    st.booleans(),
    st.none() | st.integers(0, 5),
)
def test_whatever_happens_each_beginning_is_an_episode(
    told: list[tuple[Any, ...]], settled: bool, members: int | None
) -> None:
    events = story(*sorted(told, key=lambda event: int(event[0])))
    found = episodes(events, settled=settled, members=members)
    begun = [event.id for event in events if event.kind in ("rebalance_started", "group_epoch_bumped")]
    assert [episode.id for episode in found] == begun
    assert all(episode.ended is not None for episode in found[:-1])
    assert not settled or all(episode.ended is not None for episode in found)
    for episode in found:
        assert episode.id <= episode.last_id
        assert episode.length_ms(50) >= sum(phase.length_ms for phase in episode.phases)
        assert all(count is None or count >= 0 for count in (episode.before, episode.after))


def test_every_cause_can_be_filtered_for() -> None:
    assert sorted(cause.value for _, causes in CAUSES.values() for cause in causes) == sorted(c.value for c in Cause)


def test_unrest_counts_the_last_hour_only() -> None:
    def episode(began: int, ended: int | None) -> Episode:
        return Episode(1, began, 1, "", "", "", ended=ended)

    now = 10 * HOUR_MS
    found = [episode(0, 5), episode(now - HOUR_MS - 100, now - HOUR_MS + 50), episode(now - 30, None)]
    assert (unrest(found, now).count, unrest(found, now).length_ms) == (2, 80)


async def test_what_the_service_wrote_is_what_happened(runtime: Runtime, clock: VirtualClock) -> None:
    await runtime.get(TopicService).create("entries", 6)
    service = runtime.get(GroupService)
    a = await ConsumerClient(service, "a").join()
    clock.advance(1_000)
    await settle(a)
    clock.advance(5_000)
    b = await ConsumerClient(service, "b").join()
    clock.advance(700)
    found = await history(runtime.db, ALL, "ledger", Wanted())
    assert [(e.generation_id, e.outcome.label, e.before, e.after) for e in found.shown] == [
        (2, "under way", 1, 2),
        (1, "stable", 0, 1),
    ]
    await settle(a, b)
    found = await history(runtime.db, ALL, "ledger", Wanted())
    newest = found.shown[0]
    assert (newest.outcome.label, [phase.name for phase in newest.phases]) == ("stable", ["computing", "reconciling"])
    assert newest.length_ms(found.now) == 700


def test_the_page_shows_each_rebalance_with_its_phases(person: Client, seed: Seed) -> None:
    seed.group("billing", "Stable", generation=2)
    for event in CLASSIC[:9]:
        ago = 120_000 - event.at
        seed.event("billing", event.kind, event.generation_id, event.member_id, ms_ago=ago, **event.detail)
    seed.event("billing", "assignment_stored", 2, ms_ago=59_000, members=1, duration_ms=900)
    page = person.get("/groups/billing/rebalances").content.decode()
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr id=.*?</tr>", page, re.DOTALL)]
    assert len(rows) == 2
    assert "b-3f2a81c0… sent no heartbeat in time 2 → 1 −1 joining" in rows[0]
    assert "0 → 2 +2 joining" in rows[1]
    assert "Stable generation 1" in rows[1]
    assert page.count('<rect class="phase joining"') == 2
    assert "2 rebalances began in the last 10 min (not flapping, which begins at 10)." in page
    assert "2 → 1" not in person.get("/groups/billing/rebalances?cause=joined").content.decode()
    events = re.search(r'href="(/groups/billing/events\?before=[^"]+)"', page)
    assert events is not None
    first = person.get(events[1]).content.decode()
    assert first.index("Generation 2 is stable") < first.index("Rebalance started")
    assert "None of the rebalances" in person.get("/groups/billing/rebalances?to=2020-01-01T00:00").content.decode()


def test_the_pages_follow_each_other_without_a_gap(person: Client, seed: Seed) -> None:
    seed.group("busy", "Stable", generation=9)
    total = EVENTS_READ // 3 + MOST_SHOWN + 7
    seed.connection.execute(
        "insert into groups_event (group_name, at, kind, generation_id, detail)"
        " select 'busy', n * 1000 + k, (array['rebalance_started', 'rebalance_completed', 'assignment_stored'])[k], n,"
        " '{}' from generate_series(1, %s) n, generate_series(1, 3) k order by n, k",
        [total],
    )
    shown, url = [], "/groups/busy/rebalances"
    for _ in range(total):
        page = person.get(url).content.decode()
        shown += [int(number) for number in re.findall(r"generation (\d+)</div>", page)]
        older = re.search(r'rel="next" href="([^"]+)"', page)
        if older is None:
            break
        url = older[1].replace("&amp;", "&")
    assert shown == list(range(total, 0, -1))


def test_a_deleted_group_keeps_its_history(person: Client, seed: Seed) -> None:
    seed.event("gone", EventKind.REBALANCE_STARTED.value, 1, A, cause="member_left")
    seed.event("gone", EventKind.GROUP_DELETED.value, 1)
    page = person.get("/groups/gone/rebalances").content.decode()
    assert "Group deleted" in page
    assert person.get("/groups/never/rebalances").status_code == 404
    assert person.get("/groups/gone/rebalances?from=x").status_code == 400


@pytest.mark.parametrize("address", ["/groups/billing", "/groups/billing/events"])
def test_pages_of_a_group_lead_there(person: Client, seed: Seed, address: str) -> None:
    seed.group("billing")
    seed.event("billing", "group_created", 0)
    assert 'href="/groups/billing/rebalances"' in person.get(address).content.decode()
