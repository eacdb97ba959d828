"""One act on several groups: what the review says, who may act, and the result of each group."""

from __future__ import annotations

import re

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.pages.groups import bulk as group_actions
from frontend.pages.groups.bulk import MOST_GROUPS
from kcoord.protocol.errors import Error, ProtocolError
from tests.frontend.seed import Seed, working_group
from tests.frontend.viewers import allow

URL = "/group-actions"


@pytest.fixture
def groups(seed: Seed) -> list[str]:
    """`billing` with three members, `idle <b>` with two offsets, `spare` with nothing, and one that does not exist."""
    working_group(seed)
    seed.commit(seed.group("idle <b>", "Empty", protocol=None), {("orders", 0): 5, ("bills", 0): 7})
    seed.group("spare", "Empty", protocol=None)
    return ["billing", "idle <b>", "spare", "nobody"]


def plain(page: bytes) -> str:
    """The text of the page, in one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", page.decode().partition("<main")[2]).split())


def left(database: str) -> list[str]:
    """The groups that exist."""
    with psycopg.connect(database) as connection:
        return [name for (name,) in connection.execute("select group_id from groups_group order by 1").fetchall()]


class TestTheList:
    def test_who_may_act_ticks_groups(self, operator: Client, groups: list[str]) -> None:
        page = operator.get("/groups?state=Empty").content.decode()
        assert page.count('form="bulk"') == 2
        assert '<input type="checkbox" name="group" value="idle &lt;b&gt;" form="bulk">' in page
        assert 'name="view" value="state=Empty"' in page
        assert "disabled" not in page.partition('id="bulk"')[2].partition("</form>")[0]

    def test_who_may_do_nothing_is_told_what_is_missing(self, person: Client, groups: list[str]) -> None:
        bar = person.get("/groups").content.decode().partition('id="bulk"')[2].partition("</form>")[0]
        assert re.findall(r'value="(\w+)" disabled', bar) == ["hold", "release", "labels", "delete"]
        assert bar.count("your account needs kick on a group") == 1
        assert "your account needs delete on a group" in bar

    def test_a_part_of_the_permissions_offers_a_part(self, person: Client, groups: list[str]) -> None:
        permit("delete:group:*")
        bar = person.get("/groups").content.decode().partition('id="bulk"')[2].partition("</form>")[0]
        assert re.findall(r'value="(\w+)" disabled', bar) == ["hold", "release", "labels"]
        assert "your account needs kick on a group" in bar


def permit(*rules: str) -> None:
    """Give the person rules."""
    allow(get_user_model().objects.get(username="mara"), *rules)


class TestReview:
    @pytest.mark.parametrize(
        ("act", "expected"),
        [
            (
                "hold",
                [
                    "Its 3 members will be removed, and none can join.",
                    "No member can join.",
                    "No member can join.",
                    "Left out. There is no such group; it may have been deleted.",
                    "Remove members and hold 3 groups",
                ],
            ),
            ("release", ["Left out. It is not held."] * 3 + ["Back to the list"]),
            (
                "delete",
                [
                    "Left out. It has 3 members: stop them, or hold the group first.",
                    "Deleted with 2 committed offsets on 2 topics.",
                    "Deleted; it has no committed offsets.",
                    "Delete 2 groups",
                ],
            ),
        ],
    )
    def test_it_says_what_will_happen_to_each(
        self, operator: Client, groups: list[str], database: str, act: str, expected: list[str]
    ) -> None:
        text = plain(operator.get(URL, {"act": act, "group": groups}).content)
        at = -1
        for part in expected:
            at = text.find(part, at + 1)
            assert at >= 0, (part, text)
        assert "Nothing has been done yet." in text
        assert left(database) == ["billing", "idle <b>", "spare"]

    def test_only_what_can_be_done_is_sent_on(self, operator: Client, groups: list[str]) -> None:
        page = operator.get(URL, {"act": "delete", "group": groups, "view": "state=Empty&evil=1"}).content.decode()
        assert re.findall(r'name="group" value="([^"]+)"', page) == ["idle &lt;b&gt;", "spare"]
        assert '<a class="button secondary" href="/groups?state=Empty">Cancel</a>' in page

    def test_each_act_is_shown_as_a_command(self, operator: Client, groups: list[str]) -> None:
        page = operator.get(URL, {"act": "hold", "group": groups}).content.decode()
        assert page.count("data-copy=") == 3
        assert "/v1/groups/idle%20%3Cb%3E/hold" in page

    def test_at_most_a_hundred(self, operator: Client, groups: list[str]) -> None:
        names = [f"g{number}" for number in range(MOST_GROUPS)]
        assert operator.get(URL, {"act": "hold", "group": names}).status_code == 200
        refused = operator.post(URL, {"act": "hold", "group": [*names, "billing"], "duration_ms": "60000"})
        assert refused.status_code == 400
        assert "101 groups are selected; at most 100 can be reviewed at once. Nothing was done." in plain(
            refused.content
        )

    def test_addresses_that_ask_for_nothing(self, operator: Client, groups: list[str]) -> None:
        assert "No group selected" in plain(operator.get(URL, {"act": "hold"}).content)
        for query in ({}, {"act": "explode", "group": "a"}, {"act": "hold", "group": "x" * 256}):
            assert operator.get(URL, query).status_code == 400

    @pytest.mark.parametrize(("act", "permission"), [("hold", "kick"), ("delete", "delete")])
    def test_who_may_not_is_told_what_is_missing(
        self, person: Client, groups: list[str], database: str, act: str, permission: str
    ) -> None:
        given = {"act": act, "group": groups, "sure": "yes", "duration_ms": "60000"}
        for answer in (person.get(URL, given), person.post(URL, given)):
            assert answer.status_code == 403
            assert f"needs {permission} on a group" in answer.content.decode()
        permit(f"{permission}:group:*")
        assert person.get(URL, given).status_code == 200


class TestResults:
    def test_groups_are_deleted_as_if_one_by_one(self, operator: Client, groups: list[str], database: str) -> None:
        answer = operator.post(URL, {"act": "delete", "group": groups, "sure": "yes"})
        text = plain(answer.content)
        assert "Done for 2 groups, not done for 2: the reasons are in the list." in text
        assert "Not done. It has 3 members" in text
        assert "Not done. There is no such group" in text
        assert left(database) == ["billing"]
        with psycopg.connect(database) as connection:
            lines = connection.execute("select kind, principal from offset_commit_log").fetchall()
        assert lines == [("group_delete", "root")] * 2

    def test_a_deletion_has_to_be_confirmed(self, operator: Client, groups: list[str], database: str) -> None:
        answer = operator.post(URL, {"act": "delete", "group": groups})
        assert answer.status_code == 400
        assert "nothing was deleted" in plain(answer.content)
        assert len(left(database)) == 3

    def test_groups_are_held_with_a_reason_and_let_go_again(
        self, operator: Client, groups: list[str], database: str
    ) -> None:
        given = {"act": "hold", "group": groups, "duration_ms": "300000", "reason": "bug 17"}
        text = plain(operator.post(URL, given).content)
        assert "Held; 3 members removed." in text
        assert "Held; 0 members removed." in text
        with psycopg.connect(database) as connection:
            held = connection.execute("select group_id, held_by, hold_reason from groups_group order by 1").fetchall()
        assert held == [(name, "root", "bug 17") for name in ("billing", "idle <b>", "spare")]
        assert "present hold is replaced" in plain(operator.get(URL, given).content)
        text = plain(operator.post(URL, {"act": "release", "group": groups}).content)
        assert text.count("Its hold has ended: members can join again.") == 3
        with psycopg.connect(database) as connection:
            assert connection.execute("select count(held_until) from groups_group").fetchone() == (0,)

    def test_a_hold_needs_a_duration(self, operator: Client, groups: list[str]) -> None:
        answer = operator.post(URL, {"act": "hold", "group": groups, "duration_ms": "long"})
        assert answer.status_code == 400
        assert "Choose the duration of the hold." in plain(answer.content)

    def test_one_refusal_of_the_service_does_not_stop_the_others(self, operator: Client, groups: list[str]) -> None:
        given = {"act": "hold", "group": groups, "duration_ms": "99999999999"}
        text = plain(operator.post(URL, given).content)
        assert "Done for 0 groups, not done for 4" in text
        assert text.count("group.max.hold.ms") == 3

    def test_a_request_that_takes_too_long_says_what_it_left(
        self, operator: Client, groups: list[str], database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(group_actions, "MOST_SECONDS", -1.0)
        text = plain(operator.post(URL, {"act": "delete", "group": groups, "sure": "yes"}).content)
        assert text.count("Not tried: the groups before it took too long.") == 2
        assert len(left(database)) == 3


class TestTheAudit:
    @pytest.mark.parametrize(
        ("error", "refused"),
        [
            (Error.COORDINATOR_NOT_AVAILABLE, []),
            (Error.NOT_COORDINATOR, []),
            (Error.UNKNOWN_SERVER_ERROR, []),
            (Error.NON_EMPTY_GROUP, [("group.delete", "spare")]),
        ],
        ids=lambda value: value.name if isinstance(value, Error) else "",
    )
    def test_what_the_service_refuses_is_recorded_and_an_outage_is_not(
        self,
        operator: Client,
        groups: list[str],
        database: str,
        monkeypatch: pytest.MonkeyPatch,
        error: Error,
        refused: list[tuple[str, str]],
    ) -> None:
        async def fail(*_: object) -> None:
            raise ProtocolError(error, "no")

        monkeypatch.setattr(group_actions, "delete_now", fail)
        answer = operator.post(URL, {"act": "delete", "group": ["spare"], "sure": "yes"})
        assert answer.status_code == 200
        assert refusals(database) == refused

    def test_groups_that_there_was_no_time_for_were_not_refused(
        self, operator: Client, groups: list[str], database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(group_actions, "MOST_SECONDS", -1.0)
        text = plain(operator.post(URL, {"act": "delete", "group": ["spare"], "sure": "yes"}).content)
        assert group_actions.NOT_TRIED in text
        assert refusals(database) == []


def refusals(database: str) -> list[tuple[str, str]]:
    """The acts that were refused, with their names."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "select act, name from kcoord_auditrecord where result = 'refused' order by seq"
        ).fetchall()
