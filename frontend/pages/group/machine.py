"""Which state of a group may follow which, and why: read by the page of a group's states and by the documentation.

Those of classic groups are `TRANSITIONS` of the core. Consumer groups have no such table: `tests.docs` runs requests
through the core and fails when the changes that it sees are not those named here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from frontend.ui.states import BY_NAME

Edge = tuple[str, str]
NOWHERE = "[*]"
"""Where a life begins and ends."""
CLASSIC = "classic group"
"""What a consumer group is converted to, and made from."""

CLASSIC_CAUSES: Mapping[Edge, str] = {
    (NOWHERE, "Empty"): "first join, or a commit without a generation",
    ("Empty", NOWHERE): "deleted, by request or retention",
    ("Empty", "PreparingRebalance"): "first member",
    ("PreparingRebalance", "Empty"): "window ends, nobody is left",
    ("PreparingRebalance", "CompletingRebalance"): "everybody joined, or the window ends",
    ("CompletingRebalance", "Stable"): "the leader syncs",
    ("CompletingRebalance", "PreparingRebalance"): "join, leave, expiry",
    ("Stable", "PreparingRebalance"): "join, leave, expiry",
}
GROUP_CAUSES: Mapping[Edge, str] = {
    (NOWHERE, "Stable"): "first member",
    ("Empty", NOWHERE): "deleted, by request or retention",
    ("Empty", "Stable"): "a member joins, target computed",
    ("Empty", "Assigning"): "a member joins, target not computed yet",
    ("Empty", CLASSIC): "a JoinGroup",
    ("Assigning", "Empty"): "last member gone",
    ("Assigning", "Reconciling"): "target computed",
    ("Assigning", "Stable"): "target computed, and nobody has to move",
    ("Reconciling", "Assigning"): "the group epoch is bumped",
    ("Reconciling", "Empty"): "last member gone",
    ("Reconciling", "Stable"): "last member arrived at the target",
    ("Reconciling", CLASSIC): "only classic members are left",
    ("Stable", "Assigning"): "the group epoch is bumped",
    ("Stable", "Empty"): "last member gone",
    ("Stable", "Reconciling"): "bumped and target computed, or a static member departs",
    ("Stable", CLASSIC): "only classic members are left",
    (CLASSIC, "Reconciling"): "a consumer heartbeat joins",
    (CLASSIC, "Stable"): "a consumer heartbeat joins",
}

Point = tuple[float, float]
DOT = 11
BEGIN, END = "begin", "end"
"""`NOWHERE`, once for each direction."""
HEAD = 9
"""Length of the head of an arrow."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A picture: its size, the centres of its states, and how far and where an arrow differs from the usual.

    `bent`: how far the middle of an arrow is from the straight line, and where its number stands, 0 to 1. `box`: width
    and height of a state.
    """

    width: int
    height: int
    places: Mapping[str, Point]
    bent: Mapping[Edge, tuple[float, float]]
    box: tuple[int, int] = (184, 54)


USUAL = (22.0, 0.5)
BIRTH, DEATH = (NOWHERE, "Empty"), ("Empty", NOWHERE)
CLASSIC_LAYOUT = Layout(
    884, 290,
    {
        BEGIN: (28, 44), END: (28, 100), "Empty": (214, 72), "PreparingRebalance": (496, 72),
        "CompletingRebalance": (782, 72), "Stable": (639, 240),
    },
    {BIRTH: (0, 0.5), DEATH: (0, 0.5)},
)  # fmt: skip
NARROW_CLASSIC_LAYOUT = Layout(
    320, 464,
    {
        BEGIN: (136, 20), END: (244, 20), "Empty": (190, 96), "PreparingRebalance": (190, 206),
        "CompletingRebalance": (190, 316), "Stable": (190, 426),
    },
    {BIRTH: (0, 0.5), DEATH: (0, 0.5), ("Stable", "PreparingRebalance"): (108, 0.5)},
)  # fmt: skip
BENT = {
    (NOWHERE, "Stable"): (0, 0.5), DEATH: (0, 0.5), ("Assigning", "Stable"): (30, 0.28),
    ("Stable", "Assigning"): (30, 0.28), ("Reconciling", "Empty"): (0, 0.24),
}  # fmt: skip
CONSUMER_LAYOUT = Layout(
    940, 440,
    {
        BEGIN: (430, 384), END: (28, 306), "Assigning": (200, 60), "Reconciling": (560, 60), "Empty": (200, 306),
        "Stable": (560, 306), CLASSIC: (838, 183),
    },
    {**BENT, ("Empty", CLASSIC): (-150, 0.5)},
)  # fmt: skip
NARROW_CONSUMER_LAYOUT = Layout(
    344, 660,
    {
        BEGIN: (262, 510), END: (236, 22), "Assigning": (70, 120), "Empty": (236, 120), "Reconciling": (70, 420),
        "Stable": (236, 420), CLASSIC: (152, 626),
    },
    {**BENT, ("Empty", CLASSIC): (122, 0.5)},
    (124, 54),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Box:
    """A state: its left upper corner and size. `now`: the group is in it; `next`: it can be the next one."""

    name: str
    label: str
    tone: str
    x: float
    y: float
    width: int
    height: int
    now: bool
    next: bool

    @property
    def middle(self) -> float:
        """Where its text is centred."""
        return self.width / 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """A transition: its number, the curve, its head, and where the number stands. `possible`: now."""

    number: int
    source: str
    target: str
    cause: str
    curve: str
    head: str
    x: float
    y: float
    possible: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """A state machine, drawn. `begin` and `end`: the centres of its marks for where a life begins and ends."""

    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    begin: Point
    end: Point


def picture(kind: str, present: str, *, narrow: bool = False) -> Picture:
    """The machine of groups of a type, "consumer" or another, with the present state marked.

    `narrow`: drawn downwards, for windows as narrow as a telephone.
    """
    causes = GROUP_CAUSES if kind == "consumer" else CLASSIC_CAUSES
    layout = _LAYOUTS[kind == "consumer", narrow]
    width, height = layout.box
    following = {after for before, after in causes if before == present}
    boxes = [
        Box(
            name,
            label(name),
            (BY_NAME[name].tone if name in BY_NAME else "idle"),
            x - width / 2,
            y - height / 2,
            width,
            height,
            name == present,
            name in following,
        )
        for name, (x, y) in layout.places.items()
        if name not in (BEGIN, END)
    ]
    arrows = [
        _arrow(layout, number, edge, cause, possible=edge[0] == present)
        for number, (edge, cause) in enumerate(causes.items(), 1)
    ]
    return Picture(layout.width, layout.height, boxes, arrows, layout.places[BEGIN], layout.places[END])


_LAYOUTS = {
    (False, False): CLASSIC_LAYOUT,
    (False, True): NARROW_CLASSIC_LAYOUT,
    (True, False): CONSUMER_LAYOUT,
    (True, True): NARROW_CONSUMER_LAYOUT,
}
"""By: of consumer groups, narrow."""


def label(name: str) -> str:
    """A state in words."""
    return BY_NAME[name].label if name in BY_NAME else "Classic group"


def _arrow(layout: Layout, number: int, edge: Edge, cause: str, *, possible: bool) -> Arrow:
    source, target = edge
    a = layout.places[BEGIN if source == NOWHERE else source]
    b = layout.places[END if target == NOWHERE else target]
    bow, at = layout.bent.get(edge, USUAL)
    length = math.dist(a, b)
    across = ((b[1] - a[1]) / length, (a[0] - b[0]) / length)
    control = ((a[0] + b[0]) / 2 + 2 * bow * across[0], (a[1] + b[1]) / 2 + 2 * bow * across[1])
    start = _edge_of(a, control, None if source == NOWHERE else layout.box)
    tip = _edge_of(b, control, None if target == NOWHERE else layout.box)
    if not bow:  # between near boxes the middle of the centres may be within one of them
        control = ((start[0] + tip[0]) / 2, (start[1] + tip[1]) / 2)
    back = math.atan2(control[1] - tip[1], control[0] - tip[0])
    wings = [(tip[0] + HEAD * math.cos(back + turn), tip[1] + HEAD * math.sin(back + turn)) for turn in (0.42, -0.42)]
    x, y = ((1 - at) ** 2 * start[axis] + 2 * at * (1 - at) * control[axis] + at**2 * tip[axis] for axis in (0, 1))
    return Arrow(
        number,
        "–" if source == NOWHERE else label(source),
        "–" if target == NOWHERE else label(target),
        cause,
        f"M{_at(start)} Q{_at(control)} {_at(tip)}",
        " ".join(map(_at, (tip, *wings))),
        round(x, 1),
        round(y, 1),
        possible,
    )


def _edge_of(centre: Point, towards: Point, box: tuple[int, int] | None) -> Point:
    """Where the line from the centre of a box, or of a dot (None), leaves it, and a little further."""
    x, y = towards[0] - centre[0], towards[1] - centre[1]
    if box is None:
        share = (DOT + 3) / math.hypot(x, y)
    else:
        share = min((box[0] / 2 + 4) / abs(x) if x else math.inf, (box[1] / 2 + 4) / abs(y) if y else math.inf)
    return centre[0] + share * x, centre[1] + share * y


def _at(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
