"""The overview, the page that people land on."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from frontend import queries
from frontend.overview import presenters
from frontend.overview.health import Limits, health
from frontend.overview.parts import OverviewParts
from frontend.verdicts.presenters import KINDS
from frontend.views.groups import Pace, group_url
from frontend.views.page import page, show
from kcoord.process import bridge
from kcoord.process.runtime import Runtime


def _list_url(name: str, value: str) -> str:
    return f"{reverse('frontend:groups')}?{urlencode({name: value})}"


async def _now(runtime: Runtime) -> int:
    return await queries.now(runtime.db)


@require_safe
@page
def overview(request: HttpRequest) -> HttpResponse:
    """What needs attention, and how the service is."""
    now = bridge.call(_now)
    parts = bridge.call(lambda runtime: runtime.get(OverviewParts).read())
    config = settings.KCOORD
    attention, counts, activity = (parts[name] for name in ("attention", "counts", "activity"))
    found = attention.value and presenters.attended(attention.value, group_url, _list_url)
    limits = Limits(
        config.int("timer.lag.ready.ms"),
        config.int("lag.sample.interval.ms"),
        config.int("verdict.check.interval.ms"),
    )
    urls = {"nodes": reverse("frontend:nodes"), "archive": reverse("frontend:archive")}
    return show(
        request,
        "overview",
        {
            "now": now,
            "attention": attention,
            "found": found,
            "all_url": f"{reverse('frontend:groups')}?{urlencode([('verdict', kind.value) for kind in KINDS])}",
            "counts": counts,
            "groups": presenters.counts(counts.value, _list_url) if counts.value is not None else None,
            "activity": activity,
            "rates": presenters.rates(activity.value, activity.at or now) if activity.value is not None else (),
            "health": health(parts, now, limits, urls),
            "base_url": config.str("advertised.url") or f"{request.scheme}://{request.get_host()}",
            "announcement": presenters.announcement(found),
            "stream": reverse("frontend:live"),
            "pace": Pace(every_ms=5_000, gap_ms=2_000),
        },
        section="overview",
    )
