"""--delete and --delete-offsets (offsets.md 13.6)."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx
import pytest

from groups.engine.service import GroupService
from kcoord.database.clock import VirtualClock
from tests.kcoord.kgroups.conftest import Committer, Kgroups
from tests.support.rest_groups import stable_group

pytestmark = pytest.mark.usefixtures("orders")


@pytest.fixture
async def three(service: GroupService, commit: Committer) -> None:
    """Two groups without members and one that works."""
    await commit("old one", {0: 40, 1: 20})
    await commit("older", {0: 1})
    await service.put(stable_group("busy"))


class TestGroups:
    async def test_all_of_them_go(self, kgroups: Kgroups, three: None) -> None:
        run = await kgroups("--delete", "--group", "older", "--group", "old one", "--group", "older")
        expected = "Deletion of requested consumer groups ('old one', 'older') was successful.\n"
        assert (run.status, run.out, run.err) == (0, expected, "")
        assert (await kgroups("--list")).out == "busy\n"

    async def test_some_of_them_do_not(self, kgroups: Kgroups, three: None) -> None:
        run = await kgroups("--delete", "--group", "older", "--group", "busy", "--group", "nobody")
        assert (run.status, run.err) == (1, "")
        first, second, third, fourth, *rest = run.out.splitlines()
        assert (first, second) == ("", "Error: Deletion of some consumer groups failed:")
        assert third.startswith("* Group 'busy' could not be deleted due to: NON_EMPTY_GROUP: ")
        assert fourth.startswith("* Group 'nobody' could not be deleted due to: GROUP_ID_NOT_FOUND: ")
        assert rest == ["", "These consumer groups were deleted successfully: 'older'"]

    async def test_what_was_deleted_can_be_brought_back_from_the_journal(
        self, kgroups: Kgroups, three: None, clock: VirtualClock
    ) -> None:
        before = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        clock.advance(1_000)
        assert (await kgroups("--delete", "--group", "old one")).status == 0
        options = ("--all-topics", "--to-committed-at", before, "--execute")
        run = await kgroups("--reset-offsets", "--group", "old one", *options)
        assert (run.status, [row[-2:] for row in run.rows[1:]]) == (0, [["0", "40"], ["1", "20"]])
        assert (await kgroups("--list", "--state", "empty")).rows[1:] == [["old", "one", "Empty"], ["older", "Empty"]]

    async def test_none_of_them_does(self, kgroups: Kgroups, three: None) -> None:
        run = await kgroups("--delete", "--group", "busy")
        assert run.status == 1
        assert "successful" not in run.out

    async def test_all_groups(self, kgroups: Kgroups, three: None) -> None:
        run = await kgroups("--delete", "--all-groups")
        assert run.status == 1
        assert run.out.endswith("These consumer groups were deleted successfully: 'old one', 'older'\n")
        assert (await kgroups("--list")).out == "busy\n"

    async def test_all_groups_where_there_is_none(self, kgroups: Kgroups) -> None:
        run = await kgroups("--delete", "--all-groups")
        assert (run.status, run.out) == (0, "There are no consumer groups.\n")

    async def test_more_groups_than_an_address_can_name(
        self, kgroups: Kgroups, many: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kcoord.client.kgroups.api.LONGEST_QUERY", 50)
        run = await kgroups("--delete", "--all-groups")
        assert run.status == 0
        assert all(f"'{group_id}'" in run.out for group_id in many)
        assert (await kgroups("--list")).out == ""


class TestOffsets:
    async def test_the_table(self, kgroups: Kgroups, three: None, api: httpx.AsyncClient) -> None:
        run = await kgroups("--delete-offsets", "--group", "old one", "--topic", "orders:1,0")
        assert (run.status, run.err) == (0, "")
        assert run.out == (
            "The offsets of group 'old one' were deleted.\n"
            "\n"
            "TOPIC           PARTITION  STATUS         \n"
            "orders          0          Successful     \n"
            "orders          1          Successful     \n"
        )
        assert (await kgroups("--describe", "--group", "old one")).out == ""

    async def test_all_partitions_of_a_topic_by_number(self, kgroups: Kgroups, three: None, wide: str) -> None:
        run = await kgroups("--delete-offsets", "--group", "old one", "--topic", wide)
        assert run.status == 0
        assert run.rows[2:] == [[wide, str(number), "Successful"] for number in range(12)]

    async def test_all_topics_are_those_committed_on(self, kgroups: Kgroups, three: None, wide: str) -> None:
        run = await kgroups("--delete-offsets", "--group", "old one", "--all-topics")
        assert (run.status, run.rows[2:]) == (0, [["orders", "0", "Successful"], ["orders", "1", "Successful"]])
        again = await kgroups("--delete-offsets", "--group", "old one", "--all-topics")
        assert (again.status, again.out) == (0, "Group 'old one' has no committed offsets.\n")

    async def test_what_there_is_not(self, kgroups: Kgroups, three: None) -> None:
        run = await kgroups("--delete-offsets", "--group", "old one", "--topic", "orders:0,9", "--topic", "nowhere")
        assert run.status == 1
        assert run.out.startswith("\nError: Not all offsets of group 'old one' could be deleted; each has its status")
        status = "Error: UNKNOWN_TOPIC_OR_PARTITION: This topic or partition does not exist."
        assert run.out.splitlines()[3:] == [
            "TOPIC           PARTITION  STATUS         ",
            f"nowhere         -          {status}",
            "orders          0          Successful     ",
            f"orders          9          {status}",
        ]

    async def test_of_a_topic_that_members_read(self, kgroups: Kgroups, three: None) -> None:
        run = await kgroups("--delete-offsets", "--group", "busy", "--topic", "orders:0")
        assert run.status == 1
        assert run.rows[-1][:4] == ["orders", "0", "Error:", "GROUP_SUBSCRIBED_TO_TOPIC:"]

    async def test_of_a_group_that_does_not_exist(self, kgroups: Kgroups) -> None:
        run = await kgroups("--delete-offsets", "--group", "nobody", "--topic", "orders:0")
        assert run.status == 1
        assert run.out.startswith("\nError: Offsets of group 'nobody' could not be deleted: GROUP_ID_NOT_FOUND: ")
        assert run.rows[-1][:4] == ["orders", "0", "Error:", "GROUP_ID_NOT_FOUND:"]

    @pytest.fixture
    async def wide(self, api: httpx.AsyncClient) -> str:
        """A topic whose partitions are not in order as texts."""
        response = await api.post("/v1/topics", json={"name": "wide", "partitions": 12})
        return str(response.json()["name"])
