"""Template tags of the pages: instants, states, ids. The wording comes from `frontend.wording`."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from frontend import wording
from frontend.states import State

register = template.Library()

DASH = SafeString('<span class="none">–</span>')

register.filter("number", wording.number)
register.filter("compact", wording.compact)
register.filter("signed", wording.signed)
register.filter("duration", wording.duration)
register.filter("span", wording.span)
register.filter("short_id", wording.short_id)
register.filter("utc", wording.utc)


@register.simple_tag
def when(at: int | None, now: int) -> SafeString:
    """An instant relative to `now`, exact in the title; the browser keeps it up to date. A dash for None."""
    if at is None:
        return DASH
    return format_html(
        '<time datetime="{}" title="{}" data-at="{}">{}</time>',
        wording.iso(at),
        wording.utc(at),
        at,
        wording.ago(at, now),
    )


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
def copyable(text: str) -> SafeString:
    """An id that may be too long for its line: shortened, in full in the title, copied by its button."""
    return format_html(
        '<span class="id" title="{0}">{1}</span>'
        '<button type="button" class="copy" data-copy="{0}" aria-label="Copy {0}"></button>',
        text,
        wording.short_id(text),
    )


@register.simple_tag
def owner(member_id: str, colour: int | None) -> SafeString:
    """A member in its colour from the picture of partitions, if it has one."""
    swatch = "" if colour is None else format_html('<span class="swatch o{}" aria-hidden="true"></span>', colour)
    return format_html(
        '<span class="owner">{}<span class="id" title="{}">{}</span></span>',
        swatch,
        member_id,
        wording.short_id(member_id),
    )
