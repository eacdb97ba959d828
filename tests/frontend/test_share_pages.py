"""What pages show of a share group: its members with what they have, and nothing that only committed offsets have."""

from __future__ import annotations

import html
import re

import pytest
from django.test import Client

from tests.frontend.item_seed import WORKERS, share_group
from tests.frontend.seed import Seed


def words(client: Client, url: str) -> str:
    """A page without its tags."""
    answer = client.get(url)
    assert answer.status_code == 200, answer.content.decode()[:500]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


@pytest.fixture
def group(seed: Seed) -> None:
    """A share group of two workers."""
    share_group(seed)


@pytest.mark.usefixtures("group")
def test_the_page_of_the_group(person: Client) -> None:
    page = words(person, "/groups/mailing")
    assert "share group" in page
    assert "2 members share the work at group epoch 7" in page
    assert "Group epoch 7" in page
    assert page.count("2 partitions entries 0, 1") == 1
    assert page.count("2 partitions entries 1, 2") == 1
    assert "Leader" not in page
    assert "Nothing has been committed" not in page
    assert "Pins… A share group has no committed offsets." in page
    assert "Reset offsets… A share group" not in page
    assert WORKERS[1] in words(person, "/groups/mailing?tab=members")
    assert "a partition begins when a member first names its topic" in words(person, "/groups/mailing?tab=offsets")


@pytest.mark.usefixtures("group")
def test_the_page_of_a_member(person: Client) -> None:
    page = words(person, f"/groups/mailing/members/{WORKERS[0]}")
    assert "share" in page
    assert "Group epoch 7" in page or "epoch 7" in page


@pytest.mark.usefixtures("group")
def test_lists_and_counts(person: Client) -> None:
    page = words(person, "/groups")
    assert "mailing" in page
    assert "share simple" in page
    assert "entries" in page
    assert "1 Share groups" in words(person, "/")


@pytest.mark.usefixtures("group")
def test_its_states_are_two(person: Client) -> None:
    assert "A share group is Empty without members, and else Stable" in words(person, "/groups/mailing/states")


@pytest.mark.usefixtures("group")
def test_its_settings_are_those_of_share_groups(person: Client) -> None:
    page = words(person, "/groups/mailing/config")
    assert "share.session.timeout.ms" in page
    assert "consumer.session.timeout.ms" not in page


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    "tail", ["events", "history", "rebalances", "commits", "snapshot.md", "members.csv", "partitions.csv"]
)
def test_other_pages_can_be_read(person: Client, tail: str) -> None:
    assert person.get(f"/groups/mailing/{tail}").status_code in (200, 404)


def test_an_empty_one(person: Client, seed: Seed) -> None:
    pk = seed.consumer_group("mailing", "Empty", epoch=8, assignment_epoch=8)
    seed.connection.execute("update groups_group set type = 'share', protocol_type = 'share' where id = %s", [pk])
    assert "A share group has no committed offsets, and stays until it is deleted" in words(person, "/groups/mailing")


@pytest.mark.usefixtures("group")
def test_a_reset_offers_no_committed_offsets(operator: Client, seed: Seed) -> None:
    seed.group("other", "Empty")
    found = [
        [
            name in words(operator, f"/groups/{group}/reset")
            for name in ("Earliest", "Copy another group", "Committed at")
        ]
        for group in ("mailing", "other")
    ]
    assert found == [[True, False, False], [True, True, True]]


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(("page", "shown"), [("simulate", "share group"), ("reset", ""), ("delete-offsets", "")])
def test_what_does_not_apply_breaks_no_page(operator: Client, page: str, shown: str) -> None:
    answer = operator.get(f"/groups/mailing/{page}")
    assert answer.status_code < 500
    assert shown in answer.content.decode()
