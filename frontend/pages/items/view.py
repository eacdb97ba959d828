"""Items and dead letters of a share group: the lists, and what is done with what is ticked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from frontend.ui import commands as as_command
from frontend.ui.commands import service_url
from frontend.ui.form import LONGEST_REASON, Refusal, attempt, done, existing
from frontend.ui.page import (
    Absent,
    BadAddress,
    address,
    choice,
    form_page,
    group_url,
    instant,
    member_names,
    show,
    text,
)
from frontend.ui.reads import GroupBrief
from frontend.ui.states import State
from frontend.ui.viewer import OPERATE_ITEMS, missing, require, viewer_of
from frontend.ui.wording import plural
from kcoord.database.paging import Page
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets.share.operators import Chosen, DeadLetterView, ItemOperators, ItemView

STATES: Mapping[str, State] = {
    "acquired": State("acquired", "Acquired", "busy", "A member has them."),
    "retry": State("retry", "Available again", "warn", "They are delivered once more."),
    "delayed": State("delayed", "Delayed", "idle", "They are delivered once more, later."),
}
CAUSES: Mapping[str, str] = {
    "rejected": "Rejected by a worker or an operator",
    "limit": "Delivered as often as allowed",
}
RANGES_SHOWN = 8


def span(offsets: Iterable[Sequence[int]], most: int | None = RANGES_SHOWN) -> str:
    """First and last offsets as text: `17–19, 21`; after `most` ranges the rest is counted."""
    listed = [(first, last) for first, last in offsets]
    text = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in listed[:most])
    rest = sum(last - first + 1 for first, last in listed[len(listed[:most]) :])
    return f"{text} +{rest:,}" if rest else text


def count(offsets: Iterable[Sequence[int]]) -> int:
    """The number of offsets in ranges of first and last ones."""
    return sum(last - first + 1 for first, last in offsets)


def line(row: ItemView) -> tuple[ItemView, State, str, str, int, str]:
    """A row of the list of items: its state, its offsets, all of them, how many, and the value of its box."""
    chosen = json.dumps([row.topic, row.partition, row.offsets], ensure_ascii=False)
    return row, STATES[row.state], span(row.offsets), span(row.offsets, None), count(row.offsets), chosen


def read_chosen(written: Sequence[str]) -> list[Chosen]:
    """The items of ticked boxes. Raises ProtocolError INVALID_REQUEST for what no box has as its value."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for value in written:
        try:
            topic, partition, offsets = json.loads(value)
            if not isinstance(topic, str) or type(partition) is not int or not 0 <= partition < 2**31:
                raise ValueError(value)
            pairs = [(first, last) for first, last in offsets]
            if not pairs or not all(type(n) is int and 0 <= n < 10**18 for pair in pairs for n in pair):
                raise ValueError(value)
        except (ValueError, TypeError, RecursionError):
            raise ProtocolError(Error.INVALID_REQUEST, "The selection cannot be read: tick the items again.") from None
        found.setdefault((topic, partition), []).extend(pairs)
    return [Chosen(topic, partition, sorted(pairs)) for (topic, partition), pairs in sorted(found.items())]


def chosen_words(chosen: Sequence[Chosen]) -> str:
    """How much is chosen: `12 items of 2 partitions`."""
    items = plural(sum(count(entry.offsets) for entry in chosen), "item")
    return f"{items} of {plural(len(chosen), 'partition')}"


PAGE_SIZE = 50
MOST_LETTERS = 10_000
"""How many dead letters one act takes; `/v1` takes as many in one request."""
NOTHING_TICKED = "Tick something in the list first: nothing was done."


@dataclass(frozen=True, slots=True)
class Act:
    """What a button does. `verb`: as in `12 items will be …`; `bad`: nothing brings back what it removes."""

    name: str
    label: str
    verb: str
    means: str
    bad: bool = False
    missing: str = ""


RELEASE = Act(
    "release", "Release", "released",
    "They are available to every worker at once. Who holds them now cannot settle them any more, and may have done "
    "their work already: it may be done twice. An item that was delivered as often as allowed becomes a dead letter.",
)  # fmt: skip
REJECT = Act(
    "reject", "Reject", "rejected",
    "They become dead letters, which are delivered to nobody until somebody replays them. Who holds them now cannot "
    "settle them any more.",
)  # fmt: skip
REPLAY = Act("replay", "Replay", "replayed", "They are available to every worker at once.")
DISCARD = Act("discard", "Discard", "discarded", "They count as finished. This cannot be undone.", bad=True)


def _chosen_act(request: HttpRequest, acts: Sequence[Act]) -> Act:
    """The act that a form sent. Raises BadAddress."""
    for act in acts:
        if request.POST.get("act") == act.name:
            return act
    raise BadAddress(f"act: {request.POST.get('act', '')!r} is not one of {', '.join(act.name for act in acts)}.")


def _of_share_groups(request: HttpRequest, group_id: str) -> GroupBrief:
    """The share group of a page. Raises Absent."""
    brief = existing(request, group_id)
    if brief.type != "share":
        kind = f"This is a {brief.type} group, whose members commit offsets: only share groups have items."
        raise Absent("Not a share group", kind)
    return brief


@form_page("items.release", reject="items.reject")
def group_items(request: HttpRequest, group_id: str) -> HttpResponse:
    """What members have and what is to be delivered again. Chosen items are released or rejected after a review."""
    brief = _of_share_groups(request, group_id)
    refusal, viewer = Refusal(), viewer_of(request)
    if request.method == "POST":
        answer, refusal = _operate(request, group_id, brief.now)
        if answer is not None:
            return answer
    wanted = {name: text(request, name) for name in ("topic", "member")} | {"state": choice(request, "state", STATES)}

    async def read(runtime: Runtime) -> Page[Any]:
        given = {name: value or None for name, value in wanted.items()}
        cursor = text(request, "after") or None
        return await runtime.get(ItemOperators).items(
            group_id, cursor=cursor, limit=PAGE_SIZE, visible=viewer.topics, **given
        )

    found = bridge.call(read)
    context = {
        "lines": [line(row) for row in found.items],
        "states": [("", "All"), *((state.name, state.label) for state in STATES.values())],
        "names": member_names(viewer, group_id, {row.member_id for row in found.items}),
        "commands": [_item_command(request, group_id, act, found.items[:1]) for act in (RELEASE, REJECT)],
        **_listed(request, brief, refusal, found, wanted, (RELEASE, REJECT)),
    }
    return show(request, "pages/items/items", context, section="groups", status=refusal.status, script="select")


def _operate(request: HttpRequest, group_id: str, now: int) -> tuple[HttpResponse | None, Refusal]:
    """Review or carry out an act on items; None and why not."""
    require(request, OPERATE_ITEMS, group_id)
    act, viewer = _chosen_act(request, (RELEASE, REJECT)), viewer_of(request)
    ticked = request.POST.getlist("item")
    error = request.POST.get("error", "").strip()[:LONGEST_REASON]

    async def work(runtime: Runtime) -> tuple[list[Chosen], int | None]:
        chosen = read_chosen(ticked)
        if request.POST.get("sure") != "yes":
            return chosen, None
        for topic in {entry.topic for entry in chosen}:
            viewer.principal.require_described(topic)
        operators = runtime.get(ItemOperators)
        return chosen, await operators.operate(group_id, act.name, chosen, viewer.principal, error or None)

    if not ticked:
        return None, Refusal(NOTHING_TICKED, 400)
    worked, refusal = attempt(work)
    if worked is None:
        return None, refusal
    chosen, number = worked
    if number is not None:
        told = f"{plural(number, 'item')} {act.verb}."
        if not number:
            told = "Nothing was changed: these items have been settled, or are somewhere else by now."
        return done(request, told, f"{group_url(group_id)}/items"), refusal
    url = service_url(request)
    context = {
        "what": chosen_words(chosen),
        "listed": [f"{entry.topic} {entry.partition}: {span(entry.offsets)}" for entry in chosen],
        "hidden": [("item", value) for value in ticked],
        "asks_error": True,
        "commands": [as_command.operate_items(url, group_id, act.name, act.label, chosen, error)],
    }
    return _review(request, group_id, act, now, context), refusal


def _item_command(request: HttpRequest, group_id: str, act: Act, rows: Sequence[ItemView]) -> as_command.Command:
    chosen = [Chosen(row.topic, row.partition, row.offsets) for row in rows] or [Chosen("TOPIC", 0, [(0, 9)])]
    return as_command.operate_items(service_url(request), group_id, act.name, act.label, chosen, "")


def _letter_command(
    request: HttpRequest, group_id: str, act: Act, rows: Sequence[DeadLetterView]
) -> as_command.Command:
    ids = [row.id for row in rows] or [1]
    return as_command.resolve_dead_letters(service_url(request), group_id, act.name, act.label, ids)


def _review(request: HttpRequest, group_id: str, act: Act, now: int, context: Mapping[str, object]) -> HttpResponse:
    """The page that says what an act will do."""
    shared = {"act": act, "now": now, "list_url": request.path}
    return show(request, "pages/items/items_review", {**shared, **context}, section="groups")


def _listed(
    request: HttpRequest,
    brief: GroupBrief,
    refusal: Refusal,
    found: Page[Any],
    wanted: Mapping[str, object],
    acts: Sequence[Act],
) -> dict[str, object]:
    """What the two lists have in common."""
    return {
        "group_type": brief.type,
        "now": brief.now,
        "refusal": refusal,
        "wanted": wanted,
        "filtered": any(value not in ("", None) for value in wanted.values()),
        "clear_url": request.path,
        "first_url": address(request, after=None) if "after" in request.GET else None,
        "next_url": address(request, after=found.next_cursor) if found.next_cursor else None,
        "acts": acts,
        "lacking": missing(viewer_of(request), OPERATE_ITEMS, brief.group_id),
    }


@form_page("dead-letters.replay", discard="dead-letters.discard")
def dead_letters(request: HttpRequest, group_id: str) -> HttpResponse:
    """Items that were given up, with the reason. Chosen ones are replayed or discarded after a review."""
    brief = _of_share_groups(request, group_id)
    refusal, viewer = Refusal(), viewer_of(request)
    wanted = {
        "topic": text(request, "topic"),
        "cause": choice(request, "cause", CAUSES),
        "from": instant(request, "from"),
        "to": instant(request, "to"),
    }
    if request.method == "POST":
        answer, refusal = _resolve(request, group_id, brief.now, wanted)
        if answer is not None:
            return answer
    found = bridge.call(lambda runtime: _letters(runtime, viewer, group_id, wanted, text(request, "after") or None))
    context = {
        "letters": found.items,
        "causes": CAUSES,
        "names": member_names(viewer, group_id, {row.member_id for row in found.items}),
        "commands": [_letter_command(request, group_id, act, found.items[:1]) for act in (REPLAY, DISCARD)],
        "more": bool(found.next_cursor) or "after" in request.GET,
        "most": MOST_LETTERS,
        **_listed(request, brief, refusal, found, wanted, (REPLAY, DISCARD)),
    }
    return show(request, "pages/items/dead_letters", context, section="groups", status=refusal.status, script="select")


async def _letters(
    runtime: Runtime, viewer: Any, group_id: str, wanted: Mapping[str, Any], cursor: str | None, limit: int = PAGE_SIZE
) -> Page[DeadLetterView]:
    bounds: dict[str, Any] = {"since": wanted["from"], "until": wanted["to"], "cursor": cursor, "limit": limit}
    named: dict[str, Any] = {name: wanted[name] or None for name in ("topic", "cause")}
    return await runtime.get(ItemOperators).dead_letters(group_id, **named, **bounds, visible=viewer.topics)


def _resolve(
    request: HttpRequest, group_id: str, now: int, wanted: Mapping[str, Any]
) -> tuple[HttpResponse | None, Refusal]:
    """Review or carry out an act on dead letters; None and why not."""
    require(request, OPERATE_ITEMS, group_id)
    act, viewer = _chosen_act(request, (REPLAY, DISCARD)), viewer_of(request)
    if request.POST.get("all") == "yes":
        found = bridge.call(lambda runtime: _letters(runtime, viewer, group_id, wanted, None, MOST_LETTERS))
        ids = [row.id for row in found.items]
    else:
        ids = _ids(request.POST.getlist("letter"))
    if not ids:
        return None, Refusal(NOTHING_TICKED, 400)
    keeps = request.POST.get("keep_count") == "yes"
    if request.POST.get("sure") == "yes":
        number, refusal = attempt(lambda runtime: _perform(runtime, viewer, group_id, act, ids, keeps=keeps))
        if number is None:
            return None, refusal
        told = f"{plural(number, 'dead letter')} {act.verb}."
        return done(request, told, f"{group_url(group_id)}/dead-letters"), refusal
    url = service_url(request)
    context = {
        "what": plural(len(ids), "dead letter"),
        "hidden": [("letter", ",".join(map(str, ids)))],
        "asks_count": act is REPLAY,
        "commands": [as_command.resolve_dead_letters(url, group_id, act.name, act.label, ids)],
    }
    return _review(request, group_id, act, now, context), Refusal()


def _ids(written: Sequence[str]) -> list[int]:
    """The dead letters of boxes, or of a list of them. Raises BadAddress."""
    found = [part for value in written for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in found) or len(found) > MOST_LETTERS:
        raise BadAddress(f"letter: up to {MOST_LETTERS:,} ids of dead letters.")
    return [int(part) for part in found]


async def _perform(runtime: Runtime, viewer: Any, group_id: str, act: Act, ids: Sequence[int], *, keeps: bool) -> int:
    operators = runtime.get(ItemOperators)
    if act is REPLAY:
        return await operators.replay(group_id, ids, viewer.principal, reset_count=not keeps)
    return await operators.discard(group_id, ids, viewer.principal)
