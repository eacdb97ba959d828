"""Template tags of the pages: instants, states, ids. The wording comes from `frontend.ui.wording`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from frontend.ui import wording, zones
from frontend.ui.page import group_url
from frontend.ui.rows import Names
from frontend.ui.shown import OF_GROUPS, ON_TOPICS, Hidden, Shown, Unknown, limited, shown
from frontend.ui.states import State
from frontend.ui.table import Column
from frontend.ui.tabs import tabs
from offsets.core.samples import TimeLag

register = template.Library()

DASH = SafeString('<span class="none" title="{}">–</span>')
SHORT_NAME = 24
"""Characters of a name that fits any line and is not given places to break."""
_PARTS = re.compile(r"(?<=[-_./:@])(?=[^-_./:@])(?!(?<=[0-9][.])[0-9])")
"""After a separator, but not within an address or a version."""


def figure(value: int) -> SafeString:
    """A large integer that breaks between its groups of digits, and not within one."""
    return format_html_join(SafeString(",<wbr>"), "{}", ((digits,) for digits in wording.number(value).split(",")))


FORMS: Mapping[str, Callable[[Any], str]] = {
    "number": wording.number,
    "figure": figure,
    "signed": wording.signed,
    "duration": wording.duration,
    "time_lag": wording.time_lag,
    "per_second": wording.per_second,
    "text": str,
}
"""How `value` writes what is known."""

register.filter("number", wording.number)
register.filter("figure", figure)
register.filter("compact", wording.compact)
register.filter("signed", wording.signed)
register.filter("duration", wording.duration)
register.filter("span", wording.span)
register.filter("time_lag", wording.time_lag)
register.filter("short_id", wording.short_id)
register.filter("elided", wording.elided)
register.filter("instant", zones.instant)
register.filter("minute", zones.minute)
register.filter("wall", zones.wall)
register.filter("group_url", group_url)
register.filter("ranges", wording.ranges)


SCOPES = {
    "topics": ("all_topics", ON_TOPICS),
    "groups": ("sees_groups", OF_GROUPS),
    "names": ("all_names", "that you may see"),
}
"""What a statement is about -> what of the menu says that the viewer sees all of it, and the words if not."""


@register.inclusion_tag("frontend/ui/group_tabs.html", takes_context=True)
def group_tabs(context: Mapping[str, Any]) -> dict[str, Any]:
    """The navigation of a group's pages: of `group_id` and `group_type`, with `tab_counts` where they are known."""
    counts = context.get("tab_counts", {})
    return {"tabs": tabs(context["request"], context["group_id"], context["group_type"], counts)}


@register.simple_tag(takes_context=True)
def seen(context: template.Context, scope: str) -> SafeString:
    """What limits a statement that something is not there, or a sum: “ on the topics that you may see”, with a link.

    Nothing for a viewer who sees all. It follows from the rules alone, so that it does not tell what is hidden.
    """
    words = _limit(context, scope)
    return (
        format_html(' <a class="seen" href="{}">{}</a>', reverse("frontend:access"), words) if words else SafeString("")
    )


def _limit(context: template.Context, scope: str) -> str:
    sees_all, words = SCOPES[scope]
    menu = context.get("menu") or {}
    whole = menu.get(sees_all) if sees_all != "all_names" else menu.get("sees_groups") and menu.get("all_topics")
    return "" if whole else words


@register.simple_tag
def value(what: Shown[Any], form: str = "number", now: int | None = None, old_ms: int = 0) -> SafeString:
    """What is shown in the place of a value, written by one of `FORMS`. `now`: say as of when it is, beside it.

    `old_ms`: say so only if it is older.
    """
    if isinstance(what, Hidden):
        return format_html('<span class="none" title="{}">hidden</span>', what.needs)
    if isinstance(what, Unknown):
        return format_html('<span class="none" title="{}">–</span>', what.why or "Not known")
    when_read = "" if what.as_of is None else f"As of {zones.instant(what.as_of)}"
    title = ", ".join(filter(None, (when_read, what.partial, what.least)))
    attributes = SafeString(' class="figure"') if form == "figure" else SafeString("")
    if title:
        attributes += format_html(' title="{}"', title)
    known = format_html("<span{}>{}{}</span>", attributes, "≥ " if what.least else "", FORMS[form](what.value))
    if what.as_of is None or now is None or now - what.as_of <= old_ms:
        return known
    return format_html('{} <span class="sub">as of {}</span>', known, when(what.as_of, now))


@register.simple_tag(takes_context=True)
def known(
    context: template.Context,
    what: Any,
    why: str,
    form: str = "number",
    *,
    scope: str = "",
    at: int | None = None,
    now: int | None = None,
    old_ms: int = 0,
) -> SafeString:
    """A value of a read model as `value` shows it; `why` it is not known if it is None. `at` (ms): as of when it is.

    `scope`: what it is a sum over, of `SCOPES`; the viewer may see only some of it. Templates give "" for an attribute
    of None.
    """
    found: Shown[Any] = shown(None if what == "" else what, at or None, why=why)
    return value(limited(found, _limit(context, scope) if scope else ""), form, now, old_ms)


@register.filter
def counted(value: int | None, what: str) -> str:
    """`1 row`, `12 rows`; `an unknown number of rows` for None."""
    return f"an unknown number of {what}s" if value is None else wording.plural(value, what)


@register.filter
def percent(share: float) -> str:
    """A share of an axis, 0 to 1, as a coordinate of an SVG: `12.5%`."""
    return f"{100 * share:.2f}%"


@register.simple_tag
def zone() -> str:
    """What the time zone of the page is called now: `UTC`, `CET`."""
    return zones.name(time.time_ns() // 1_000_000)


@register.simple_tag
def instant_pattern() -> str:
    """What a field for an instant takes, as the regular expression of its `pattern`."""
    return wording.INSTANT_PATTERN


@register.simple_tag
def when(at: int | None, now: int) -> SafeString:
    """An instant relative to `now`, exact in the title; the browser keeps it up to date. A dash for None."""
    return format_html(DASH, "No instant is known") if at is None else _time(at, wording.ago(at, now), "")


@register.simple_tag
def lasting(since: int, now: int) -> SafeString:
    """As `when`, of what still lasts: `for 3 min`."""
    return _time(since, wording.lasting(since, now), " data-lasting")


def _time(at: int, text: str, mark: str) -> SafeString:
    exact = wording.iso(at), zones.instant(at)
    return format_html('<time datetime="{}" title="{}" data-at="{}"{}>{}</time>', *exact, at, mark, text)


@register.simple_tag
def due(what: wording.Due, at: int, now: int) -> SafeString:
    """What happens at an instant, and the instant as `when` writes it; the browser turns the words when it is past."""
    return format_html("{} {}", due_words(what, at, now), when(at, now))


@register.simple_tag
def due_words(what: wording.Due, at: int | None, now: int) -> SafeString:
    """The words of `due` alone, where the instant stands elsewhere; nothing is due at None."""
    if at is None:
        return format_html("{}", what.coming)
    return format_html('<span data-due="{}" data-overdue="{}">{}</span>', at, what.overdue, what.seen(at, now))


@register.simple_tag
def due_by(coming: str, overdue: str, at: int, now: int) -> SafeString:
    """As `due`, in the words of a template."""
    return due(wording.Due(coming, overdue), at, now)


@register.simple_tag
def state_badge(state: State) -> SafeString:
    """A state with its colour, shape and name; the title explains it."""
    return format_html(
        '<span class="badge" data-tone="{}" title="{}"><span class="badge-shape" aria-hidden="true"></span>{}</span>',
        state.tone,
        state.meaning,
        state.label,
    )


@register.simple_tag
def time_lag(lag: TimeLag) -> SafeString:
    """The age of the next record to read: `45 s`, `≥ 2 h`; a dash if it is not known."""
    if lag.ms is not None:
        return format_html('<span class="figure">{}</span>', wording.time_lag(lag.ms))
    if lag.at_least_ms is not None:
        return format_html(
            '<span class="figure" title="The next record is older than the samples">≥ {}</span>',
            wording.time_lag(lag.at_least_ms),
        )
    return format_html(DASH, "Not known")


@register.filter
def breakable(value: str) -> SafeString:
    """A name that breaks at its separators where it is too long for its line; browsers do so only at some of them."""
    if len(value) <= SHORT_NAME:
        return format_html("{}", value)
    return format_html_join(SafeString("<wbr>"), "{}", ((part,) for part in _PARTS.split(value)))


@register.simple_tag
def client_at(client_id: str, client_host: str) -> SafeString:
    """A member's client and host, which may break before the host; a long name of the client in full in the title."""
    client = name(client_id, wording.LONGEST_CLIENT)
    if client_id and client_host:
        return format_html("{}<wbr>@{}", client, breakable(client_host))
    return client if client_id else breakable(client_host)


@register.simple_tag
def name(value: str, most: int = wording.LONGEST_NAME) -> SafeString:
    """A name in a list: if it is longer than `most`, its beginning and end, in full in the title."""
    shown = wording.elided(value, most)
    text = breakable(shown)
    return text if shown == value else format_html('<span class="elided" title="{}">{}</span>', value, text)


@register.simple_tag(takes_context=True)
def table_cell(context: Mapping[str, Any], column: Column, row: Any) -> SafeString:
    """What a row has in a column, by one of `FORMS`, as a name (`name`), an instant (`at`) or a member (`member`)."""
    found = column.value(row)
    if column.form == "at":
        return when(found, context["now"])
    if found is None:
        return format_html(DASH, column.none or "Not known")
    if column.form == "member":
        return member(found, context["names"])
    if column.hint and row[column.hint]:
        return format_html('<span title="{}">{}</span>', row[column.hint], FORMS[column.form](found))
    if column.form != "name":
        return format_html("{}", FORMS[column.form](found))
    if not column.route:
        return name(found)
    return format_html(
        '<a href="{}{}">{}</a>', reverse(column.route, args=[found]), context.get("query", ""), name(found)
    )


@register.simple_tag
def copyable(text: str) -> SafeString:
    """An id that may be too long for its line: shortened, in full in the title, copied by its button."""
    return format_html(
        '<span class="id" title="{0}">{1}</span>'
        '<button type="button" class="copy" data-copy="{0}" aria-label="Copy {0}"></button>',
        text,
        wording.short_id(text),
    )


@register.simple_tag
def owner(member_id: str, colour: int | None, names: Names) -> SafeString:
    """As `member`, in its colour from the picture of partitions if it has one."""
    swatch = "" if colour is None else format_html('<span class="swatch o{}" aria-hidden="true"></span>', colour)
    return format_html('<span class="owner">{}{}</span>', swatch, member(member_id, names))


@register.simple_tag
def member(member_id: str, names: Names) -> SafeString:
    """A member: its client and host, then its id; the id alone if nothing else is known of it."""
    ids = format_html('<span class="id" title="{}">{}</span>', member_id, wording.short_id(member_id))
    if member_id not in names:
        return ids
    known = name(names[member_id], wording.LONGEST_CLIENT)
    return format_html('<span class="named">{} <span class="sub">{}</span></span>', known, ids)


@register.simple_tag
def countdown(until: int, now: int) -> SafeString:
    """The time left until an instant as a clock shows it, `4:32`; the browser counts on."""
    return format_html(
        '<time datetime="{}" title="{}" data-until="{}">{}</time>',
        wording.iso(until),
        zones.instant(until),
        until,
        wording.clock(until - now),
    )
