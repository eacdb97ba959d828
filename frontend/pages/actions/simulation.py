"""What would move if a group had other members, partitions, or another assignor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from frontend.ui.form import Refusal, attempt
from frontend.ui.page import BadAddress, choice, member_names, message, missing, page, show, text
from frontend.ui.shown import ALL_TOPICS
from frontend.ui.table import MOST_ROWS, csv_of
from frontend.ui.viewer import Viewer, viewer_of
from frontend.ui.wording import plural, ranges
from groups.simulation import MOST_ADDED, MOST_PARTITIONS, Changes, Move, Simulation, Simulations
from kcoord.process import bridge
from kcoord.process.runtime import Runtime

MOST_MEMBERS, MOST_MOVES = 200, 200
OTHER_FORMAT = "Its format is not that of Kafka's consumers."


@dataclass(frozen=True, slots=True)
class MoveLine:
    """Partitions of a topic that go from one member to another; None: nobody."""

    topic: str
    partitions: str
    owner: str | None
    new_owner: str | None


@page
def simulate_group(request: HttpRequest, group_id: str) -> HttpResponse:
    """The form, and what would happen. Nothing is changed, so everything is in the URL."""
    offered, refusal = attempt(lambda runtime: runtime.get(Simulations).assignors(group_id))
    if offered is None and refusal.status == HTTPStatus.BAD_REQUEST:
        raise BadAddress(refusal.text)
    if offered is None:
        return missing(request, group_id)
    names, used = offered
    viewer = viewer_of(request)
    asked = "add" in request.GET
    found: Simulation | None = None
    if asked:
        found, refusal = simulated(request, group_id, names)
    moves = move_lines(found.moves) if found else []
    members = found.members[:MOST_MEMBERS] if found else ()
    named = {who for move in moves[:MOST_MOVES] for who in (move.owner, move.new_owner)}
    context = {
        "assignors": [(name, f"{name} (in use)" if name == used else name) for name in names],
        "chosen": request.GET.get("assignor", "") or used,
        "given": {name: request.GET.get(name, "") for name in ("add", "remove", "topics")},
        "refusal": refusal,
        "found": found,
        "unknown": found is not None and _is_unknown(found),
        "query": request.GET.urlencode(),
        "summary": _summary(found, viewer) if found else "",
        "other_format": f"What it subscribes to cannot be read. {OTHER_FORMAT}",
        "no_owner": "nobody that is known" if found and found.unreadable else "nobody",
        "members": members,
        "more_members": max(len(found.members) - MOST_MEMBERS, 0) if found else 0,
        "moves": moves[:MOST_MOVES],
        "more_moves": max(len(moves) - MOST_MOVES, 0),
        "names": member_names(viewer, group_id, named | {member.member_id for member in members}),
    }
    return show(request, "pages/actions/simulate", context, section="groups", status=refusal.status)


def simulated(request: HttpRequest, group_id: str, names: Sequence[str]) -> tuple[Simulation | None, Refusal]:
    """The simulation that the URL asks for, with one of the assignors `names`. Raises BadAddress."""
    changes = Changes(_number(request, "add", 0, MOST_ADDED), _remove(request), _topics(request))
    assignor = choice(request, "assignor", tuple(names))
    work = partial(_simulate, viewer=viewer_of(request), group_id=group_id, changes=changes, assignor=assignor)
    return attempt(work)


async def _simulate(runtime: Runtime, viewer: Viewer, group_id: str, changes: Changes, assignor: str) -> Simulation:
    return await runtime.get(Simulations).simulate(group_id, changes, assignor or None, viewer.topics)


def _number(request: HttpRequest, name: str, least: int, most: int) -> int:
    written = text(request, name) or "0"
    if not written.isascii() or not written.isdigit() or not least <= int(written) <= most:
        raise BadAddress(f"{name}: {written!r} is not a number from {least} to {most:,}.")
    return int(written)


def _remove(request: HttpRequest) -> tuple[str, ...]:
    return tuple(dict.fromkeys(request.GET.get("remove", "").split()))


def _topics(request: HttpRequest) -> dict[str, int]:
    """Lines `orders:24`."""
    found: dict[str, int] = {}
    for line in request.GET.get("topics", "").split():
        name, _, number = line.rpartition(":")
        if not name or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= MOST_PARTITIONS:
            raise BadAddress(f"topics: {line!r} is not a topic with a number of partitions, such as orders:24.")
        found[name] = int(number)
    return found


def _summary(found: Simulation, viewer: Viewer) -> str:
    """The outcome in a sentence or two."""
    if _is_unknown(found):
        whom = "the member subscribes" if found.unreadable == 1 else f"the {found.unreadable:,} members subscribe"
        return f"Nothing can be simulated: what {whom} to cannot be read. {OTHER_FORMAT}"
    if not found.total:
        if viewer.topics_counted:
            return "The members subscribe to no topic that you may see."
        return "The members subscribe to no topic that exists."
    least, most = found.spread
    each = plural(least, "partition") if least == most else f"{least:,} to {plural(most, 'partition')}"
    told = "No member would give up a partition"
    if found.moved:
        told = f"{found.moved:,} of {plural(found.total, 'partition')} would move"
    given, owner = len(found.moves) - found.moved, "a known owner" if found.unreadable else "an owner"
    if given:
        told += f"; {plural(given, 'partition')} without {owner} would get one"
    if not found.unreadable:
        return f"{told}. Each member would have {each}."
    whom = "1 member subscribes" if found.unreadable == 1 else f"{found.unreadable:,} members subscribe"
    return f"{told}. Each of the others would have {each}: what {whom} to cannot be read. {OTHER_FORMAT}"


def _is_unknown(found: Simulation) -> bool:
    """Nothing is known of any member that the group has."""
    return bool(found.unreadable) and all(member.is_new or not member.is_readable for member in found.members)


def move_lines(moves: tuple[Move, ...]) -> list[MoveLine]:
    """Moves between the same members, put together by topic."""
    together: dict[tuple[str, str | None, str | None], list[int]] = {}
    for move in moves:
        together.setdefault((move.topic, move.owner, move.new_owner), []).append(move.partition)
    return [MoveLine(topic, ranges(numbers, 12), owner, heir) for (topic, owner, heir), numbers in together.items()]


@page
def simulated_members_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """All members of a simulation, with the parameters of its page."""
    columns = "member_id before after gained lost is_new is_removed"
    counted = viewer_of(request).topics_counted or ALL_TOPICS
    return _simulation(request, group_id, "simulated-members", columns, lambda found: found.members, counted=counted)


@page
def simulated_moves_csv(request: HttpRequest, group_id: str) -> HttpResponseBase:
    """All partitions that change hands in a simulation, with the parameters of its page."""
    columns = "topic partition owner new_owner"
    return _simulation(request, group_id, "simulated-moves", columns, lambda found: found.moves)


def _simulation(
    request: HttpRequest,
    group_id: str,
    name: str,
    columns: str,
    rows_of: Callable[[Simulation], Iterable[object]],
    **same: object,
) -> HttpResponseBase:
    names, _ = bridge.call(lambda runtime: runtime.get(Simulations).assignors(group_id))
    found, refusal = simulated(request, group_id, names)
    if found is None:
        return message(request, refusal.status, "No simulation", refusal.text)
    return csv_of(f"{group_id}-{name}", columns, itertools.islice(rows_of(found), MOST_ROWS), **same)
