"""Is the coordinator healthy? Every part of the service, as of when it was read, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.pages.overview.facts import Fact, sections, summary
from frontend.pages.overview.judged import Limits
from frontend.pages.overview.parts import OverviewParts
from frontend.ui import reads
from frontend.ui.allowed import SEE_CLUSTER, require, tokens_missing
from frontend.ui.page import Pace, page, show
from frontend.ui.rows import Millis
from frontend.ui.states import State
from frontend.ui.viewer import viewer_of
from frontend.ui.wording import plural
from kcoord.config import Config
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from kcoord.quotas.budgets import BY_KEY
from kcoord.quotas.stored import ThrottledRow, throttled_since


def limits_of(config: Config) -> Limits:
    """From when parts of the service are late, as the settings say."""
    return Limits(
        config.int("timer.lag.ready.ms"),
        config.int("lag.sample.interval.ms"),
        config.int("verdict.check.interval.ms"),
    )


def part_urls() -> Mapping[str, str]:
    """The pages of parts that have one."""
    return {name: reverse(f"frontend:{name}") for name in ("nodes", "archive", "alerts")}


async def read_now(runtime: Runtime) -> int:
    """The database's instant, ms."""
    return await reads.now(runtime.db)


@page
def health_page(request: HttpRequest) -> HttpResponse:
    """All parts."""
    require(request, SEE_CLUSTER)
    now = bridge.call(read_now)
    parts = bridge.call(lambda runtime: runtime.get(OverviewParts).read_service())
    rows = bridge.call(lambda runtime: read(runtime, now))
    found = sections(parts, now, limits_of(settings.KCOORD), part_urls())
    state, sentence = summary(found)
    context = {
        "now": now,
        "sections": found,
        "state": state,
        "sentence": sentence,
        "throttled": card(rows, now, names=not tokens_missing(viewer_of(request))),
        "stream": reverse("frontend:live"),
        "pace": Pace(every_ms=5_000, gap_ms=2_000),
    }
    return show(request, "pages/overview/health", context, section="health", title="Health")


WITHIN_MS: Millis = 3_600_000
NOW_MS: Millis = 120_000
"""What is noted once a minute and is not older than this goes on."""
READ = 1_000
SHOWN = 10

NOBODY = State("none", "Healthy", "good", "Nobody sent more than their quota.")
EARLIER = State("earlier", "Earlier", "idle", "Somebody was throttled within the last hour.")
THROTTLED = State("throttled", "Throttled", "warn", "Somebody is told to wait.")


@dataclass(frozen=True, slots=True)
class ThrottledCard:
    """`failed`: why it could not be read. `rows`: `at` is when the principal was throttled last."""

    state: State
    sentence: str
    advice: str
    rows: Sequence[tuple[Fact, Fact]] = ()
    more: str = ""
    failed: str = ""


async def read(runtime: Runtime, now: Millis) -> Sequence[ThrottledRow] | str:
    """The rows, the last one first; a text that says why they could not be read."""
    try:
        return await throttled_since(runtime, now - WITHIN_MS, READ)
    except ProtocolError as error:
        return error.detail


def card(rows: Sequence[ThrottledRow] | str, now: Millis, *, names: bool) -> ThrottledCard:
    """The card. `names`: the account may know the names of tokens; others see how many there are."""
    if isinstance(rows, str):
        return ThrottledCard(EARLIER, "It could not be read.", "", failed=rows)
    if not rows:
        return ThrottledCard(NOBODY, "Nobody was throttled within the last hour.", "")
    lasting = sum(row.throttled_at >= now - NOW_MS for row in rows)
    who = len({(row.kind, row.name) for row in rows})
    sentence = f"{plural(who, 'principal')} throttled within the last hour, at all servers."
    advice = (
        "Their members keep their sessions. Ask the team to send less, or raise the quota: manage.py quotas, or "
        "POST /v1/quotas."
    )
    state = THROTTLED if lasting else EARLIER
    shown = [(_who(row), _what(row)) for row in rows[:SHOWN]] if names else _counts(rows)
    left = len(rows) - SHOWN if names else 0
    more = f"{plural(left, 'other')}: GET /v1/quotas/throttled has them." if left > 0 else ""
    return ThrottledCard(state, sentence, advice if lasting else "", shown, more)


def _who(row: ThrottledRow) -> Fact:
    return Fact(f"{row.kind} {row.name}".rstrip(), at=row.throttled_at)


def _what(row: ThrottledRow) -> Fact:
    budget = BY_KEY.get(row.budget)
    unit = budget.value.unit if budget is not None else ""
    text = f"{_number(row.used)} of {_number(row.limit)} {unit}".rstrip()
    return Fact(row.budget, f"{text}, {plural(row.times, 'request')} noted")


def _counts(rows: Sequence[ThrottledRow]) -> list[tuple[Fact, Fact]]:
    found = Counter(row.budget for row in rows)
    last = {budget: max(row.throttled_at for row in rows if row.budget == budget) for budget in found}
    return [(Fact(budget, at=last[budget]), Fact("", plural(count, "principal"))) for budget, count in found.items()]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
