"""The look of the Django admin: the colours and logo of the pages, and a menu that uses the service's terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def _may_view(app: str, model: str) -> Callable[[HttpRequest], bool]:
    def may(request: HttpRequest) -> bool:
        shown = admin.site._registry.get(apps.get_model(app, model))
        return shown is not None and shown.has_view_permission(request)

    return may


_TITLES: dict[tuple[str, str], str] = {}
"""What the menu calls the rows of a model, by app and model."""


def _entry(title: str, icon: str, app: str, model: str) -> dict[str, Any]:
    _TITLES[app, model] = title
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{app}_{model}_changelist"),
        "permission": _may_view(app, model),
    }


def _page(title: str, icon: str, name: str) -> dict[str, Any]:
    """A page of the dashboard, which any account may see."""
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"frontend:{name}"),
        "active": lambda request: False,
    }


def use_titles() -> None:
    """Call models in lists and headings what the menu calls them; to be called when all models are loaded.

    Migrations compare what a class was declared with, so none is due.
    """
    for (app, model), title in _TITLES.items():
        is_acronym = title[:2].isupper()
        apps.get_model(app, model)._meta.verbose_name_plural = title if is_acronym else title[0].lower() + title[1:]


def _mark(request: HttpRequest) -> str:
    return static("frontend/mark.svg")


def _landmarks(request: HttpRequest) -> str:
    return static("kcoord/admin.js")


def _long_names(request: HttpRequest) -> str:
    return static("kcoord/admin.css")


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "kcoord",
    "SITE_HEADER": "kcoord",
    "SITE_SUBHEADER": "Admin",
    "SITE_URL": "/",
    "SITE_ICON": _mark,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _mark}],
    "SCRIPTS": [_landmarks],
    "STYLES": [_long_names],
    "COLORS": {
        "primary": {
            "50": "oklch(97% .014 264)",
            "100": "oklch(93.5% .03 264)",
            "200": "oklch(88% .058 264)",
            "300": "oklch(80.5% .1 264)",
            "400": "oklch(70.5% .15 264)",
            "500": "oklch(61.5% .185 264)",
            "600": "oklch(53% .2 264)",
            "700": "oklch(47% .185 264)",
            "800": "oklch(41% .155 264)",
            "900": "oklch(37% .125 264)",
            "950": "oklch(28% .085 264)",
        }
    },
    "SIDEBAR": {
        "navigation": [
            {
                "title": "Dashboard",
                "items": [
                    _page("Overview", "monitoring", "home"),
                    _page("Live groups", "group_work", "groups"),
                    _page("Live topics", "view_list", "topics"),
                    _page("All plans", "restart_alt", "plans"),
                    _page("Audit", "policy", "audit"),
                    _page("Health", "health_and_safety", "health"),
                    _page("Archive", "inventory_2", "archive"),
                ],
            },
            {
                "title": "Coordination",
                "items": [
                    _entry("Groups", "hub", "groups", "group"),
                    _entry("Members", "dns", "groups", "member"),
                    _entry("Consumer members", "lan", "groups", "consumermember"),
                    _entry("Member ids given out", "hourglass_top", "groups", "pendingmember"),
                    _entry("Topics of generations", "subject", "groups", "generationtopics"),
                    _entry("Events", "history", "groups", "event"),
                    _entry("Group settings", "tune", "groups", "groupconfigoverride"),
                    _entry("Group labels", "label", "groups", "grouplabels"),
                ],
            },
            {
                "title": "Nodes",
                "items": [
                    _entry("Nodes", "dns", "groups", "coordinatornode"),
                    _entry("Coordinator partitions", "grid_view", "groups", "coordinatorpartition"),
                    _entry("Hand-overs", "swap_horiz", "groups", "partitionchange"),
                ],
            },
            {
                "title": "Offsets",
                "items": [
                    _entry("Journal", "receipt_long", "offsets", "offsetcommitlog"),
                    _entry("Plans", "restart_alt", "offsets", "offsetplan"),
                    _entry("Pins", "keep", "offsets", "retentionpin"),
                    _entry("Producers", "edit_note", "offsets", "producer"),
                    _entry("Lag", "speed", "offsets", "grouplag"),
                    _entry("Topics over all groups", "summarize", "offsets", "topictotal"),
                    _entry("Verdict runs", "rule", "offsets", "verdictrun"),
                    _entry("Activity", "monitoring", "offsets", "activity"),
                    _entry("Alert rules", "notification_important", "offsets", "alertrule"),
                    _entry("Alert receivers", "contact_mail", "offsets", "alertreceiver"),
                    _entry("Alerts", "notifications", "offsets", "alert"),
                    _entry("Alert messages", "mail", "offsets", "alertmessage"),
                    _entry("Deleted topics", "delete", "offsets", "deletedtopic"),
                    _entry("Spark runs", "bolt", "offsets", "sparkrun"),
                ],
            },
            {
                "title": "Items of share groups",
                "items": [
                    _entry("Share partitions", "stacks", "offsets", "sharepartition"),
                    _entry("Locks", "lock", "offsets", "sharelock"),
                    _entry("Retries", "replay", "offsets", "shareretry"),
                    _entry("Dead letters", "report", "offsets", "sharedead"),
                    _entry("Ended locks", "lock_open", "offsets", "shareended"),
                ],
            },
            {
                "title": "Catalogue",
                "items": [
                    _entry("Topics", "topic", "groups", "topic"),
                    _entry("Watermarks", "water", "groups", "watermark"),
                ],
            },
            {
                "title": "Access",
                "items": [
                    _entry("API tokens", "key", "kcoord", "apitoken"),
                    _entry("Quotas", "speed", "kcoord", "quota"),
                    _entry("People", "person", "auth", "user"),
                    _entry("Groups of people", "groups", "auth", "group"),
                    _entry("Audit records", "policy", "kcoord", "auditrecord"),
                    _entry("Audit chain", "link", "kcoord", "auditchain"),
                ],
            },
            {
                "title": "Timers",
                "items": [
                    _entry("Last tick", "timer", "kcoord", "timerheartbeat"),
                    _entry("Counters", "numbers", "kcoord", "counter"),
                    _entry("Throttled", "hourglass_top", "kcoord", "throttled"),
                    _entry("Revisions", "sync", "groups", "revision"),
                    _entry("Periodic tasks", "schedule", "django_celery_beat", "periodictask"),
                    _entry("Intervals", "more_time", "django_celery_beat", "intervalschedule"),
                    _entry("Crontabs", "update", "django_celery_beat", "crontabschedule"),
                ],
            },
        ],
    },
}
