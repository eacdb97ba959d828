"""Which pictures there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from urllib.parse import quote

from kcoord.tools.showcase.cast import Behaviour, Part

WIDEST, WIDE, NARROW = 2560, 1440, 390
HEIGHTS = {WIDEST: 1300, WIDE: 900, NARROW: 844}


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: of which page, at which width (pixels), in which colours, and whether all of a long page."""

    name: str
    path: str
    width: int = WIDE
    is_dark: bool = False
    is_whole: bool = False


def pictures(parts: list[Part]) -> list[Shot]:
    """Those of the README and the docs."""
    group = _group_paths(parts)
    return [
        Shot("overview", "/"),
        Shot("overview-dark-narrow", "/", NARROW, is_dark=True),
        Shot("groups", "/groups"),
        Shot("group", group[Behaviour.STUCK_REVOKING]),
        Shot("rebalances", f"{group[Behaviour.FLAPPING]}/rebalances"),
        Shot("history", f"{group[Behaviour.SLOW]}/history?span=1h"),
        Shot("reset", f"{group[Behaviour.EMPTY]}/reset"),
        Shot("topic", f"/topics/{quote(_topic(parts), safe='')}"),
        Shot("audit", "/audit"),
    ]


def everything(parts: list[Part]) -> Iterator[Shot]:
    """Every page, whole, at three widths, light and dark: to be looked at."""
    for (name, path), width, is_dark in product(_pages(parts).items(), (WIDEST, WIDE, NARROW), (False, True)):
        yield Shot(f"{name}-{width}-{'dark' if is_dark else 'light'}", path, width, is_dark, is_whole=True)


def _pages(parts: list[Part]) -> dict[str, str]:
    group = _group_paths(parts)
    steady, empty, large = group[Behaviour.STEADY], group[Behaviour.EMPTY], group[Behaviour.LARGE]
    topic = quote(_topic(parts), safe="")
    fixed = (
        "groups", "topics", "plans", "alerts", "alerts/rules/new", "audit", "health", "nodes",
        "archive", "archive/findings", "tokens", "tokens/new",
        "compare", "search", "timeline", "views", "create-group", "password", "access", "access/grant", "docs",
    )  # fmt: skip
    of_a_group = (
        "events", "commits", "rebalances", "history", "simulate", "pins", "hold", "delete", "delete-offsets", "config",
        "states", "report",
    )  # fmt: skip
    compared = "&".join(f"name={group[kind].removeprefix('/groups/')}" for kind in (Behaviour.SLOW, Behaviour.STEADY))
    return {
        "overview": "/",
        **{name.replace("/", "-"): f"/{name}" for name in fixed},
        "compare-two": f"/compare?{compared}",
        "search-results": "/search?q=billing",
        "group-actions": f"/group-actions?act=hold&group={steady.removeprefix('/groups/')}",
        "topic": f"/topics/{topic}",
        **{f"group-{behaviour.value}": path for behaviour, path in group.items()},
        **{f"group-large-{tab}": f"{large}?tab={tab}" for tab in ("members", "offsets")},
        "group-large-simulated": f"{large}/simulate?add=2",
        **{f"group-large-{name}": f"{large}/{name}" for name in ("events", "history", "rebalances", "reset")},
        **{f"group-steady-{name}": f"{steady}/{name}" for name in of_a_group},
        **{f"group-queue-{name}": f"{group[Behaviour.QUEUE]}/{name}" for name in ("items", "dead-letters")},
        "group-empty-reset": f"{empty}/reset",
    }


def _group_paths(parts: list[Part]) -> Mapping[Behaviour, str]:
    return {part.behaviour: f"/groups/{quote(part.group_id, safe='')}" for part in reversed(parts)}


def _topic(parts: list[Part]) -> str:
    return next(part.topic.name for part in parts if part.behaviour is Behaviour.STEADY)
