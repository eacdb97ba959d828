"""The past of a group on one page, and groups and topics compared: spans, what is shown, and what is read for it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.pages.group import reads as queries
from frontend.pages.history.compare import GROUPS_OF_TOPIC, Compared, compared, past, points_said
from frontend.pages.history.span import LONGEST, MOST_STEPS, PRESETS, SHORTEST, Span
from frontend.ui.chart import DAY, HOUR, MINUTE
from frontend.ui.shown import Known, Unknown
from frontend.ui.viewer import Viewer
from frontend.ui.wording import iso
from groups.core.model.group import partition_of
from kcoord.database.clock import VirtualClock
from kcoord.database.pool import Database
from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService
from tests.frontend.alert_seed import put_alert, put_rule
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.viewers import ALL, allow, viewer

ADDRESS = "/groups/billing/history"


def test_plans_hand_overs_and_alerts_are_marked_on_each_plot(person: Client, client: Client, seed: Seed) -> None:
    night(seed)
    at = now_ms() - 60_000
    put_plan(seed.connection, "billing", made_at=at, state="undone")
    put_plan(seed.connection, "other", made_at=at, state="applied", made_by="somebody else")
    put_alert(seed.connection, put_rule(seed.connection), "billing", at=at, resolved_at=at + 30_000)
    for partition in range(50):
        seed.connection.execute(
            "insert into groups_partitionchange (at, partition, epoch, gap, from_node, to_node, reason)"
            " values (%s, %s, 1, 0, 'node-1', %s, 'lapsed')",
            [at, partition, "node-2" if partition == partition_of("billing", 50) else "another"],
        )
    page = person.get(f"{ADDRESS}?span=1h").content.decode()
    for mark in (
        "plan applied by",
        "plan undone by",
        "node-1 → node-2",
        "alert opened: billing stands still",
        "resolved:",
    ):
        assert page.count(mark) == 3, mark
    assert "→ another" not in page
    assert "somebody else" not in page
    legend = re.findall('x2="22" y1="6" y2="6"/></svg>([^<]+)</li>', page)
    assert legend == ["1 rebalance", "2 plans", "1 hand-over", "2 alerts"]
    assert "plan applied" not in person.get(f"{ADDRESS}?from={iso(at - HOUR)}&to={iso(at - MINUTE)}").content.decode()

    client.force_login(user := get_user_model().objects.create_user("limited"))
    allow(user, "describe:group:billing", "describe:topic:*")
    page = client.get(f"{ADDRESS}?span=1h").content.decode()
    assert "node-1" not in page
    assert "hand-overs hidden" in page
    assert page.count("plan applied by") == 3


def test_marks_say_from_when_on_rebalances_are_marked(
    person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.ui.reads.EVENTS_READ", 10)
    monkeypatch.setattr("frontend.ui.reads.MOST_SHOWN", 3)
    seed.group("billing")
    seed.lag_samples("billing", {"orders": [1] * 60}, every_ms=MINUTE)
    for number in range(20):
        seed.event("billing", "rebalance_started", number, "m1", ms_ago=(20 - number) * 120_000, cause="member_joined")
    page = person.get(f"{ADDRESS}?span=1h").content.decode()
    lag = page[page.index('id="lag-chart"') : page.index('id="lag-values"')]
    assert lag.count('class="chart-mark rebalance"') == 9, "more than are listed"
    assert re.search(r"9 rebalances since 20[0-9-]+ [0-9:]+( UTC)?, more before", page)


def night(seed: Seed, ago: int = 0) -> None:
    """A rebalance, a commit, a reset and samples, so long ago."""
    seed.group("billing")
    seed.event("billing", "rebalance_started", 7, "m1", ms_ago=ago + 5_000, cause="member_joined", reason="new pod")
    seed.event("billing", "rebalance_completed", 8, ms_ago=ago + 4_000, members=1, leader="m1")
    seed.event("billing", "assignment_stored", 8, ms_ago=ago + 3_000, members=1)
    seed.journal("billing", "commit", "orders", 0, 40, ms_ago=ago + 2_000, member_id="m1")
    seed.journal("billing", "reset", "orders", 0, 10, ms_ago=ago + 1_000, principal="mara")
    now = now_ms()
    for topic, lag in (("orders", 4_000), ("payments", 1_000)):
        seed.connection.execute(
            "insert into offsets_lagsample (group_name, topic, at, lag, time_lag_ms) values (%s, %s, %s, %s, %s)",
            ["billing", topic, now - ago - 500, lag, 90_000],
        )


def test_a_span_is_drawn_in_a_bounded_number_of_round_steps() -> None:
    for length in [*PRESETS.values(), SHORTEST, 61_000, LONGEST]:
        span = Span(1_763_690_000_123, 1_763_690_000_123 + length)
        assert span.steps <= MOST_STEPS
        assert (span.steps - 1) * span.step_ms < length <= span.steps * span.step_ms
    assert [Span(0, length).step_ms for length in PRESETS.values()] == [30_000, 5 * MINUTE, 10 * MINUTE, HOUR]


def test_one_page_has_all_that_happened(person: Client, seed: Seed) -> None:
    night(seed)
    page = person.get(f"{ADDRESS}?span=1h").content.decode()
    plain = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "at most 5,000" in page, "the topics together"
    assert "from 1 min 30 s" in page
    assert page.count('class="chart-mark rebalance" x1="9') == 3, "the rebalance is marked on each plot"
    assert "“new pod”" in plain
    assert "by" not in plain or "mara" in plain
    assert 'aria-current="true">1 h</a>' in page
    assert page.count("<tr id=") == 2, "the rebalance and the reset, not the commit"


def test_what_was_before_or_after_is_not_in_it(person: Client, seed: Seed) -> None:
    night(seed, ago=2 * DAY)
    now = now_ms()
    day = person.get(ADDRESS).content.decode()
    assert "No rebalance began in this time" in day
    assert "No samples of this time" in day
    assert "No offset was committed in this time" in day
    for query in ("span=7d", f"from={iso(now - 3 * DAY)}&to={iso(now - DAY)}"):
        page = person.get(f"{ADDRESS}?{query}").content.decode()
        assert "new pod" in page, query
        assert "at most 5,000" in page, query
    assert person.get("/groups/never/history").status_code == 404


def test_links_keep_the_span_and_the_filter(person: Client, seed: Seed) -> None:
    night(seed)
    now = now_ms()
    query = f"from={iso(now - HOUR)}&to={iso(now + MINUTE)}"
    page = person.get(f"{ADDRESS}?{query}&cause=joined").content.decode()
    links = [link.replace("&amp;", "&") for link in re.findall(r'href="([^"]+)"', page)]
    presets = [link for link in links if "span=" in link]
    assert presets == [f"{ADDRESS}?cause=joined&span={name}" for name in PRESETS]
    span = Span(now - HOUR, now + MINUTE).query
    assert f"/groups/billing/commits?{span}" in links
    assert f"/compare?what=groups&name=billing&{span}" in links
    events = next(link for link in links if "/events?" in link)
    for link in [*presets, *(one for one in links if span in one), events]:
        assert person.get(link).status_code == 200, link
    shown = person.get(events).content.decode()
    assert f'href="/groups/billing/rebalances?{span.replace("&", "&amp;")}"' in shown
    assert f'href="{ADDRESS}?{span.replace("&", "&amp;")}"' in shown
    assert "Rebalance started" in shown
    later = Span(now + MINUTE, now + HOUR).query
    assert "Rebalance started" not in person.get(f"/groups/billing/events?{later}").content.decode()
    assert "No rebalance" in person.get(f"{ADDRESS}?{query}&cause=expired").content.decode()


@pytest.mark.parametrize(
    "query",
    ["span=2h", "from=x", "from=2025-11-21T03:00&to=2025-11-21T02:00", "from=2025-01-01T00:00&to=2025-11-21T02:00"],
)
def test_impossible_spans_are_refused(person: Client, seed: Seed, query: str) -> None:
    seed.group("billing")
    assert person.get(f"{ADDRESS}?{query}").status_code == 400
    assert person.get(f"/compare?{query}").status_code == 400


def test_up_to_four_are_compared(person: Client, seed: Seed) -> None:
    for number, name in enumerate("abcde"):
        seed.group(name)
        seed.lag_samples(name, {"orders": [number, 10 * number]})
    assert "Nothing chosen" in person.get("/compare").content.decode()
    page = person.get("/compare?name=a&name=c&name=c&name=e&name=none").content.decode()
    names = re.findall(r'<a class="row-link"[^>]*>(\w+)</a>', page)
    assert names == ["a", "c", "e", "none"]
    assert page.count('class="chart-line c') == 2 * 2 * 4, "four lines and keys in two plots"
    assert "c: from 2 to 20" in page
    assert "none: no samples" in page
    assert person.get("/compare?" + "&".join(f"name={name}" for name in "abcde")).status_code == 400
    assert person.get("/compare?name=a%00b").status_code == 400
    assert person.get("/compare?what=nodes").status_code == 400


def test_a_topic_is_the_sum_over_its_groups(person: Client, seed: Seed) -> None:
    now = now_ms()  # one look samples all groups at one instant
    for name in "ab":
        seed.commit(seed.group(name), {("orders", 0): 1})
        seed.lag_samples(name, {"orders": [7], "payments": [100]}, now=now)
    page = person.get("/compare?what=topics&name=orders").content.decode()
    assert "Lag in records" in page
    assert "at most 14" in page


async def test_the_lag_of_a_group_is_the_largest_of_each_step(db: Database, seed: Seed) -> None:
    seed.group("g")
    seed.lag_samples("g", {"a": list(range(100)), "b": [5] * 100}, every_ms=MINUTE)
    now = now_ms()
    (found,) = await compared(db, ALL, [Compared("group", "g")], Span(now - HOUR, now + 1))
    assert [point.value for point in found.lag] == list(range(45, 105))
    (week,) = await compared(db, ALL, [Compared("group", "g")], Span(now - 7 * DAY, now + 1))
    assert week.lag[-1].value == 104
    assert len(week.lag) in (2, 3)


async def test_a_peak_within_a_step_is_drawn_and_in_the_table(db: Database, seed: Seed) -> None:
    """Also where topics have theirs at different instants: the largest sum, and not the sum of what is largest."""
    seed.group("g")
    seed.lag_samples("g", {"a": [1, 23_542, 3, 4], "b": [5, 5, 9_000, 5]}, every_ms=1_000)
    now = now_ms()
    (found,) = await compared(db, ALL, [Compared("group", "g")], Span(now - 7 * DAY, now + 1))
    assert found.peaks
    assert max(point.value for point in found.lag) == 23_547
    assert max(point.value for point in found.time_lag) == 23_542 * 20


async def test_a_peak_is_drawn_although_its_samples_were_thinned(
    runtime: Runtime, clock: VirtualClock, seed: Seed
) -> None:
    """Of a group, of a topic over its groups, and of what somebody may see: of that, the parts alone are known."""
    now = now_ms()
    clock.move_to(now)
    quarter = (now - 5 * HOUR) // (15 * MINUTE) * 15 * MINUTE + 6 * MINUTE  # five samples from the second minute on
    of_g, of_h = {"a": [1, 40, 23_542, 4, 5], "b": [5, 5, 3, 9_000, 5]}, {"a": [1, 1, 100, 1, 1]}
    for name, lags in (("g", of_g), ("h", of_h)):
        seed.commit(seed.group(name), {(topic, 0): 1 for topic in lags})
        seed.lag_samples(name, lags, every_ms=MINUTE, now=quarter)
    await runtime.get(SampleService).thin()
    assert seed.connection.execute("select count(*) from offsets_lagsample").fetchone() == (6,)
    wanted = [Compared("group", "g"), Compared("topic", "a")]
    span = Span(now - DAY, now + 1)

    async def peaks(who: Viewer) -> list[int]:
        return [max(point.value for point in past.lag) for past in await compared(runtime.db, who, wanted, span)]

    assert await peaks(ALL) == [23_545, 23_642]
    assert await peaks(viewer("describe:group:*", "describe:topic:a")) == [23_542, 23_642]
    assert await peaks(viewer("describe:group:g", "describe:topic:*")) == [23_545, 23_542]
    seed.connection.execute(
        "delete from offsets_committedoffset o using groups_group g where g.id = o.group_id and g.group_id = 'h'"
    )
    assert (await peaks(ALL))[1] == 23_542, "not with what a group had that is not drawn any more"

    few = await compared(runtime.db, viewer("describe:group:*", "describe:topic:a", "describe:topic:b"), wanted, span)
    assert [past.partial_sum for past in few] == [True, False]
    assert "peaks of sums over only some topics or groups are not kept" in points_said(few, span, now)
    everything = await compared(runtime.db, ALL, wanted, span)
    assert "not kept" not in points_said(everything, span, now) + points_said(few, Span(now - HOUR, now), now)

    async def total(who: Viewer) -> int:
        page = await queries.group_page(runtime.db, who, "g", queries.Limits())
        assert page is not None
        return max(bucket.lag for bucket in page.lag.total)

    assert await total(ALL) == 23_545
    assert await total(viewer("describe:group:*", "describe:topic:b")) == 9_000


async def test_the_value_at_the_end_is_the_last_sample_with_its_instant(db: Database, seed: Seed) -> None:
    seed.group("g")
    then = now_ms() - HOUR
    seed.lag_samples("g", {"a": [1, 900, 3], "b": [2]}, every_ms=1_000, now=then)
    now = now_ms()
    (found, none) = await compared(
        db, ALL, [Compared("group", "g"), Compared("group", "none")], Span(now - DAY, now + 1)
    )
    assert found.lag_at_end == Known(5, then - 1_000)
    assert isinstance(none.lag_at_end, Unknown)


async def test_with_very_many_samples_the_last_of_each_step_is_drawn(
    db: Database, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontend.pages.history.compare.MOST_SAMPLES", 3)
    seed.group("g")
    seed.lag_samples("g", {"a": [1, 900, 3, 4]}, every_ms=1_000)
    now = now_ms()
    (found,) = await compared(db, ALL, [Compared("group", "g")], Span(now - 7 * DAY, now + 1))
    assert not found.peaks
    assert [point.value for point in found.lag] in ([4], [900, 4], [1, 4], [3, 4])


def test_an_old_value_at_the_end_says_of_when_it_is(person: Client, seed: Seed) -> None:
    seed.group("g")
    seed.lag_samples("g", {"a": [7]}, now=now_ms() - 30 * MINUTE)
    page = person.get("/compare?name=g&name=none&span=1h").content.decode()
    cell = page[page.index('data-label="Last lag"') :][:400]
    assert ">7<" in cell
    assert "30 min ago" in cell
    assert "at the end" not in page


async def test_a_span_costs_the_same_number_of_statements_whatever_is_in_it(db: Database, seed: Seed) -> None:
    night(seed)
    seed.lag_samples("billing", {f"topic-{n}": [n] for n in range(200)})
    now = now_ms()
    found = await past(db, ALL, "billing", Span(now - 7 * DAY, now + 1), None)
    assert found.lag.left_out == 0
    assert found.lag.step_ms == HOUR
    assert sum(point.value for point in found.changes) == 2
    assert GROUPS_OF_TOPIC < 100


def test_groups_ticked_in_the_list_are_compared(person: Client, seed: Seed) -> None:
    answer = person.get("/compare?view=q%3Db&group=a%2Fb&group=c")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/compare?name=a%2Fb&name=c")
    assert person.get("/compare?group=a&group=b&group=c&group=d&group=e", follow=True).status_code == 400
