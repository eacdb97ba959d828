"""The card of the health page with those whom quotas throttled: names for accounts that may see tokens."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from frontend.pages.overview.health import EARLIER, NOBODY, SHOWN, THROTTLED, card
from kcoord.access.quotas.stored import ThrottledRow, throttled_since
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.frontend.seed import Seed

NOW = 1_700_000_000_000


def row(name: str = "billing", budget: str = "heartbeats", *, ago_ms: int = 1_000) -> ThrottledRow:
    return ThrottledRow("token", name, budget, 100, 120.5, 7, NOW - 60_000, NOW - ago_ms)


def test_nobody_was_throttled() -> None:
    assert card([], NOW, names=True).state is NOBODY


def test_what_lasts_says_what_to_do_and_what_is_over_does_not() -> None:
    lasting, over = card([row()], NOW, names=True), card([row(ago_ms=300_000)], NOW, names=True)
    assert (lasting.state, over.state) == (THROTTLED, EARLIER)
    assert "keep their sessions" in lasting.advice
    assert over.advice == ""
    ((who, what),) = lasting.rows
    assert (who.name, who.at) == ("token billing", NOW - 1_000)
    assert (what.name, what.text) == ("heartbeats", "120 of 100 per second, 7 requests noted")


def test_accounts_that_may_not_see_tokens_see_how_many_there_are() -> None:
    shown = card([row("a"), row("b"), row("b", "cpu")], NOW, names=False)
    assert [(who.name, what.text) for who, what in shown.rows] == [
        ("heartbeats", "2 principals"),
        ("cpu", "1 principal"),
    ]
    assert "2 principals throttled" in shown.sentence


def test_a_long_list_says_where_the_rest_is() -> None:
    shown = card([row(f"t{number}") for number in range(SHOWN + 25)], NOW, names=True)
    assert len(shown.rows) == SHOWN
    assert shown.more.startswith("25 others")


@pytest.mark.parametrize(("account", "has_right"), [("operator", True), ("person", False)])
def test_the_page_has_names_for_those_who_may_see_tokens(
    request: pytest.FixtureRequest, seed: Seed, account: str, has_right: bool
) -> None:
    client: Client = request.getfixturevalue(account)
    seed.connection.execute(
        """insert into kcoord_throttled (kind, name, budget, "limit", used, times, since, throttled_at)
           select 'token', 'secret-team', 'reads', 5, 6, 3, now_ms, now_ms
             from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms) clock"""
    )
    answer = client.get("/health")
    page = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())
    assert "1 principal throttled within the last hour" in page
    assert ("secret-team" in page) is has_right


def test_the_page_survives_that_it_cannot_be_read(person: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*arguments: object) -> object:
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "no connection was free")

    monkeypatch.setattr("frontend.pages.overview.health.throttled_since", fails)
    answer = person.get("/health")
    assert answer.status_code == 200
    assert "no connection was free" in answer.content.decode()


async def test_the_last_one_comes_first(runtime: Runtime) -> None:
    async with runtime.db.connection() as connection:
        await connection.execute(
            """insert into kcoord_throttled (kind, name, budget, "limit", used, times, since, throttled_at)
               values ('token', 'old', 'cpu', 1, 1, 1, 1, 1), ('token', 'a', 'cpu', 1, 1, 1, 1, 50),
                      ('user', 'b', 'cpu', 1, 1, 1, 1, 60)"""
        )
    assert [row.name for row in await throttled_since(runtime, 40, 10)] == ["b", "a"]
