"""Is the coordinator healthy? Every part of the service, as of when it was read, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend import queries
from frontend.allowed import SEE_CLUSTER, require, tokens_missing
from frontend.health import throttled
from frontend.health.presenters import sections, summary
from frontend.overview.health import Limits
from frontend.overview.parts import OverviewParts
from frontend.viewer import viewer_of
from frontend.views.groups import Pace
from frontend.views.page import page, show
from kcoord.config import Config
from kcoord.process import bridge
from kcoord.process.runtime import Runtime


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
    return await queries.now(runtime.db)


@page
def health_page(request: HttpRequest) -> HttpResponse:
    """All parts."""
    require(request, SEE_CLUSTER)
    now = bridge.call(read_now)
    parts = bridge.call(lambda runtime: runtime.get(OverviewParts).read_service())
    rows = bridge.call(lambda runtime: throttled.read(runtime, now))
    found = sections(parts, now, limits_of(settings.KCOORD), part_urls())
    state, sentence = summary(found)
    context = {
        "now": now,
        "sections": found,
        "state": state,
        "sentence": sentence,
        "throttled": throttled.card(rows, now, names=not tokens_missing(viewer_of(request))),
        "stream": reverse("frontend:live"),
        "pace": Pace(every_ms=5_000, gap_ms=2_000),
    }
    return show(request, "health", context, section="health", title="Health")
