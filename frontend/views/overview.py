"""The overview, the page that people land on."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from frontend.overview import presenters
from frontend.overview.health import health, with_judged_at
from frontend.overview.parts import OverviewParts, Part
from frontend.verdicts.presenters import KINDS
from frontend.viewer import viewer_of
from frontend.views.groups import Pace, group_url
from frontend.views.health import limits_of, part_urls, read_now
from frontend.views.page import page, show
from groups.readmodel import GroupSort
from kcoord.process import bridge
from offsets.verdicts.checks import thresholds


def _list_url(name: str, value: str) -> str:
    return f"{reverse('frontend:groups')}?{urlencode({name: value})}"


@page
def overview(request: HttpRequest) -> HttpResponse:
    """What needs attention, and how the service is."""
    now = bridge.call(read_now)
    viewer = viewer_of(request)
    parts = bridge.call(lambda runtime: runtime.get(OverviewParts).read(viewer))
    config = settings.KCOORD
    attention, counts, activity, behind = (
        parts.get(name, Part()) for name in ("attention", "counts", "activity", "behind")
    )
    found = attention.value and presenters.attended(
        attention.value, group_url, _list_url, thresholds(config).flapping_window_ms, now
    )
    groups = None if counts.value is None else presenters.counts(counts.value, _list_url)
    return show(
        request,
        "overview",
        {
            "now": now,
            "attention": attention,
            "found": found,
            "all_url": f"{reverse('frontend:groups')}?{urlencode([('verdict', kind.value) for kind in KINDS])}",
            "counts": counts,
            "groups": groups,
            "activity": activity,
            "behind": behind,
            "furthest": [(group, group_url(group.group_id)) for group in getattr(behind.value, "furthest", ()) or ()],
            "furthest_url": _list_url("sort", GroupSort.TIME_LAG_DESCENDING.value),
            "lag": behind.value and behind.value.total,
            "stale_ms": config.int("lag.stale.ms"),
            "sees_cluster": viewer.sees_cluster,
            "rates": presenters.rates(activity.value or (), now),
            "trend": presenters.trend(activity.value or (), now),
            "sees_all": viewer.sees_all,
            "health": health(with_judged_at(parts), now, limits_of(config), part_urls()),
            "base_url": config.str("advertised.url") or f"{request.scheme}://{request.get_host()}",
            "announcement": presenters.announcement(found, groups),
            "stream": reverse("frontend:live"),
            "pace": Pace(every_ms=5_000, gap_ms=2_000),
        },
        section="overview",
    )
