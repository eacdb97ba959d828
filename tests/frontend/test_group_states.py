"""The state machine of a group: drawn from the table of transitions, with the present state and what can follow."""

from __future__ import annotations

import html
import math
import re

import pytest
from django.test import Client

from frontend.pages.group.machine import CLASSIC_CAUSES, GROUP_CAUSES, picture
from tests.docs.states import classic_edges
from tests.frontend.seed import Seed


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def distance(one: str, other: str) -> float:
    """Between two points as paths write them."""
    return math.dist(*(tuple(map(float, point.split(","))) for point in (one, other)))


def test_every_transition_of_the_core_has_a_cause() -> None:
    assert set(CLASSIC_CAUSES) == classic_edges()


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "narrow"])
@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_everything_is_within_the_picture_and_apart(kind: str, narrow: bool) -> None:
    causes = GROUP_CAUSES if kind == "consumer" else CLASSIC_CAUSES
    drawn = picture(kind, "Stable", narrow=narrow)
    assert drawn.width <= 344 or not narrow, "a window of 390 pixels shows all of it"
    assert [(arrow.number, arrow.cause) for arrow in drawn.arrows] == list(enumerate(causes.values(), 1))
    for box in drawn.boxes:
        assert 5 <= box.x <= drawn.width - box.width - 5
        assert 5 <= box.y <= drawn.height - box.height - 5
    for arrow in drawn.arrows:
        assert 11 <= arrow.x <= drawn.width - 11, arrow
        assert 11 <= arrow.y <= drawn.height - 11, arrow
        for box in drawn.boxes:
            across, down = arrow.x - box.x, arrow.y - box.y
            assert not (-9 < across < box.width + 9 and -9 < down < box.height + 9), (arrow, box)
        start = arrow.curve[1:].split()[0]
        tip, *wings = arrow.head.split()
        assert all(distance(start, wing) < distance(start, tip) for wing in wings), f"{arrow} points back"
        for other in drawn.arrows:
            near = abs(arrow.x - other.x) < 22 and abs(arrow.y - other.y) < 22
            assert other is arrow or not near, (arrow, other)


def test_the_page_says_where_the_group_stands_and_what_may_follow(person: Client, seed: Seed) -> None:
    seed.group("g", "PreparingRebalance")
    text = person.get("/groups/g/states").content.decode()
    page = words(text)
    assert "Preparing rebalance ● now" in page
    assert text.count('machine-state now"') == 2, "in the wide and in the narrow picture"
    assert text.count('machine-arrow possible"') == 4
    following = page.partition("What can happen next")[2].partition("All transitions")[0]
    assert following.endswith(
        "Arrow 4 Empty window ends, nobody is left Arrow 5 Completing rebalance everybody joined, or the window ends "
        "CSV of these rows "
    )
    assert "Arrow 3 Empty Preparing rebalance first member" in page
    assert "for 1 min" in page
    assert 'href="/groups/g/states"' in person.get("/groups/g").content.decode()


def test_a_consumer_group_has_its_own_machine(person: Client, seed: Seed) -> None:
    seed.consumer_group("g", "Empty", epoch=4, assignment_epoch=4)
    text = person.get("/groups/g/states").content.decode()
    assert text.count('machine-arrow possible"') == 8
    assert "A consumer group" in text
    assert "Arrow 5 Classic group a JoinGroup" in words(text)
    assert person.get("/groups/gone/states").status_code == 404
    assert "<html" not in person.get("/groups/g/states", HTTP_HX_REQUEST="true").content.decode()
