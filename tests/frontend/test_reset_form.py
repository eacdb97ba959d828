"""The form of a reset: ticks, presets in the zone of the viewer, and how long catching up takes."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from django.http import QueryDict
from django.test import Client

from frontend.pages.offsets.form import MOST_BOXES, presets, read, scope_of, write
from frontend.pages.offsets.reads import MOST_TOPICS, Rate, catching_up, tick_list
from frontend.ui.wording import wall
from kcoord.database.pool import Database
from kcoord.protocol.errors import ProtocolError
from kcoord.resets.strategies import Reset, Strategy
from tests.frontend.seed import Seed
from tests.frontend.viewers import ALL, allow

BERLIN = ZoneInfo("Europe/Berlin")


def at(zone: ZoneInfo, *moment: int) -> int:
    return int(datetime(*moment, tzinfo=zone).timestamp() * 1000)  # type: ignore[arg-type, misc]


def test_presets_are_times_of_day_in_the_zone_of_the_viewer() -> None:
    offered = {preset.label: preset for preset in presets(at(BERLIN, 2026, 1, 31, 12, 0), BERLIN)}
    assert offered["Yesterday 06:00"].at == at(BERLIN, 2026, 1, 30, 6, 0)
    assert offered["Yesterday 06:00"].exact == "Fri 2026-01-30 06:00 CET"
    assert offered["Today 00:00"].at == at(BERLIN, 2026, 1, 31)


def test_a_day_of_23_hours_does_not_move_a_preset() -> None:
    noon_after_the_change = at(BERLIN, 2026, 3, 29, 12, 0)
    found = next(p for p in presets(noon_after_the_change, BERLIN) if p.label == "Yesterday 06:00")
    assert wall(found.at, BERLIN) == "2026-03-28 06:00"
    assert noon_after_the_change - found.at == 29 * 3_600_000, "an hour less than on other days"


def test_ticks_and_numbers_become_a_scope() -> None:
    given = QueryDict(mutable=True)
    given.setlist("t", ["a", "wide"])
    given.setlist("p", ["a:1", "b:2", "b:0"])
    given["n:wide"], given["topics"] = "0-3, 9", "c d\ne:1,4-5"
    assert dict(scope_of(given) or ()) == {
        "a": None, "wide": (0, 1, 2, 3, 9), "b": (0, 2), "c": None, "d": None, "e": (1, 4, 5),
    }  # fmt: skip
    given["scope"] = "all"
    assert scope_of(given) is None
    with pytest.raises(ProtocolError, match="tick at least one"):
        scope_of(QueryDict("scope=chosen"))
    with pytest.raises(ProtocolError, match="at most 200,000"):
        scope_of(QueryDict("topics=a:0-999999999"))


@pytest.mark.parametrize(
    "reset",
    [
        Reset(Strategy.TO_LATEST),
        Reset(Strategy.SHIFT_BY, (("a", None), ("b", (0, 3))), by=-5, clamp=True),
        Reset(Strategy.TO_COMMITTED_AT, None, at=1_700_000_000_123, keep_unknown=True),
        Reset(Strategy.FROM_FILE, csv={("a", 0): 5}),
        Reset(Strategy.COPY_FROM_GROUP, (("a", (1,)),), from_group="x"),
    ],
    ids=lambda reset: reset.strategy.value,
)
def test_a_form_filled_from_a_request_asks_for_the_same(reset: Reset) -> None:
    assert read(write(reset, "why", UTC), "billing", UTC) == reset


class TestCatchingUp:
    HOUR = 3_600_000

    @pytest.mark.parametrize(
        ("lag", "rate", "text", "why"),
        [
            (None, None, "not known", "The end of a log is not known."),
            (0, None, "nothing to catch up", "at the ends"),
            (10, None, "not known", "too few samples"),
            (10, Rate(60_000, -5, 10, 1, 1), "not known", "too few samples"),
            (10, Rate(HOUR, -5, 10, 1, 2), "not known", "not known for every partition"),
            (10, Rate(HOUR, 10, 10, 2, 2), "not known", "read nothing"),
            (36_000, Rate(HOUR, -36_000, 36_000, 2, 2), "about 1 h", "reading 20/s, written 10/s"),
            (36_000, Rate(HOUR, 0, 36_000, 2, 2), "at least 1 h", "keeps pace"),
        ],
    )
    def test_it_is_said_only_if_known(self, lag: int | None, rate: Rate | None, text: str, why: str) -> None:
        found = catching_up(lag, rate)
        assert found.text == text
        assert why in found.why


class Counting:
    """Counts the statements of all cursors."""

    statements = 0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        execute = psycopg.AsyncCursor.execute

        async def counted(cursor: psycopg.AsyncCursor, *given: Any, **named: Any) -> Any:
            self.statements += 1
            return await execute(cursor, *given, **named)

        monkeypatch.setattr(psycopg.AsyncCursor, "execute", counted)


@pytest.mark.whole("writes many rows to see that what is read is bounded")
async def test_ten_thousand_partitions_take_as_many_statements_as_three(
    db: Database, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = seed.group("small", "Empty")
    seed.topic("orders", 3, [10] * 3)
    seed.commit(small, {("orders", partition): 1 for partition in range(3)})
    huge = seed.group("huge", "Empty")
    committed = {}
    for number in range(150):
        count = 2_000 if number < 3 else 28
        seed.topic(f"t{number:03d}", count, [100 + number] * count)
        committed |= {(f"t{number:03d}", partition): 1 for partition in range(count)}
    seed.commit(huge, committed)
    counting = Counting(monkeypatch)
    await tick_list(db, ALL, "small")
    few, counting.statements = counting.statements, 0
    found = await tick_list(db, ALL, "huge")
    assert counting.statements <= few, "as many statements as for a small group"
    assert len(found.topics) == MOST_TOPICS
    assert found.more == 50
    assert sum(map(len, found.boxes.values())) <= MOST_BOXES


def test_the_page_of_a_huge_group_is_bounded(operator: Client, seed: Seed) -> None:
    pk = seed.group("huge", "Empty")
    seed.commit(pk, {(f"t{number:03d}", partition): 1 for number in range(150) for partition in range(70)})
    page = operator.get("/groups/huge/reset").content.decode()
    assert page.count("data-topic") == MOST_TOPICS
    assert len(page) < 200_000
    assert "50 more have committed offsets" in page


def test_the_plan_again_keeps_partitions_and_choices(operator: Client, seed: Seed) -> None:
    seed.topic("orders", 4, [100] * 4)
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("orders", partition): 10 for partition in range(4)})
    fields = {"strategy": "shift-by", "by": "5", "scope": "chosen", "p": ["orders:1", "orders:3"], "clamp": "on"}
    first = operator.post("/groups/idle/reset", fields).headers["Location"]
    again = operator.post(first, {"act": "again"}).headers["Location"]
    assert again != first
    page = operator.get(again).content.decode()
    assert page.count('<th scope="row"') == 2
    assert "Clamped to the log" in page
    form = operator.get(f"/groups/idle/reset?plan={first.rpartition('/')[2]}").content.decode()
    assert re.search(r'value="orders:3"[^>]* checked', form)
    assert not re.search(r'value="orders:0"[^>]* checked', form)


def test_a_hold_takes_its_permission(person: Client, seed: Seed) -> None:
    from django.contrib.auth import get_user_model

    seed.topic("orders", 1, [100])
    pk = seed.group("idle", "Empty")
    seed.commit(pk, {("orders", 0): 10})
    user = get_user_model().objects.get(username="mara")
    allow(user, "alter-offsets:group:idle", "read:topic:*")
    page = person.get("/groups/idle/reset").content.decode()
    assert "your account needs kick on group idle" in page
    asked = {"strategy": "to-latest", "hold": "on", "duration_ms": "60000"}
    assert person.post("/groups/idle/reset", asked).status_code == 403
