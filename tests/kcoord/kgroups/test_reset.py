"""--reset-offsets: every strategy, what is shown, done and undone (offsets.md 13.5)."""

from __future__ import annotations

import asyncio
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.client.kgroups.api import Api
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.lag.samples import SampleService
from tests.kcoord.kgroups.conftest import Committer, Kgroups, Run
from tests.support.rest_groups import group, stable_group

pytestmark = pytest.mark.usefixtures("orders")

RESET = ("--reset-offsets", "--group", "g")
WARNING = "\nWarning: neither --dry-run nor --execute was given: this is a dry run, nothing is changed.\n"
APPLIED = re.compile(r"\n(\S+): plan (\S+) was applied; undo it with: kgroups (.*)\n")
HEADER = ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]


@pytest.fixture
async def g(commit: Committer) -> None:
    """The group g, without members; nothing is committed on partition 2."""
    await commit("g", {0: 40, 1: 20})


async def offsets_of(api: httpx.AsyncClient, group_id: str = "g") -> dict[int, int]:
    """What a group has committed on `orders`."""
    response = await api.get(f"/v1/groups/{group_id}/offsets")
    return {found["partition"]: found["committed_offset"] for found in response.json().get("offsets", [])}


def instant(ms: int) -> str:
    """An instant as the tool takes it."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")


def new_offsets(run: Run) -> dict[str, str]:
    """The new offsets by partition in the table of a run that succeeded."""
    assert run.status == 0, run
    assert run.rows[0] == HEADER
    return {row[2]: row[3] for row in run.rows[1:]}


async def test_the_table(kgroups: Kgroups, g: None, api: httpx.AsyncClient) -> None:
    run = await kgroups(*RESET, "--all-topics", "--to-earliest", "--dry-run")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "\n"
        "GROUP                          TOPIC                          PARTITION  NEW-OFFSET     \n"
        "g                              orders                         0          10             \n"
        "g                              orders                         1          0              \n"
    )
    assert await offsets_of(api) == {0: 40, 1: 20}


async def test_without_a_word_it_is_a_dry_run_with_a_warning(kgroups: Kgroups, g: None, api: httpx.AsyncClient) -> None:
    run = await kgroups(*RESET, "--all-topics", "--to-latest")
    assert (run.status, run.err) == (0, WARNING)
    assert new_offsets(run) == {"0": "100", "1": "50"}
    assert await offsets_of(api) == {0: 40, 1: 20}


async def test_execute_commits_and_tells_how_to_take_it_back(kgroups: Kgroups, g: None, api: httpx.AsyncClient) -> None:
    run = await kgroups(*RESET, "--all-topics", "--to-latest", "--execute", "--reason", "bug 17")
    assert new_offsets(run) == {"0": "100", "1": "50"}
    assert await offsets_of(api) == {0: 100, 1: 50}
    told = APPLIED.fullmatch(run.err)
    assert told is not None, run.err
    plan = (await api.get(f"/v1/groups/g/offsets/plans/{told[2]}")).json()
    assert (plan["state"], plan["reason"], plan["strategy"]) == ("applied", "bug 17", "to-latest")
    assert plan["applied_by"].startswith("local:")

    shown = await kgroups(*RESET, "--undo", told[2], "--dry-run")
    assert (new_offsets(shown), shown.err) == ({"0": "40", "1": "20"}, "")
    assert await offsets_of(api) == {0: 100, 1: 50}
    undone = await kgroups(*shlex.split(told[3]))
    assert new_offsets(undone) == {"0": "40", "1": "20"}
    assert undone.err == f"\ng: plan {told[2]} was undone.\n"
    assert await offsets_of(api) == {0: 40, 1: 20}

    for how, why in (("--execute", "INVALID_REQUEST: the plan cannot be undone: it was undone"), ("--dry-run", "")):
        again = await kgroups(*RESET, "--undo", told[2], how)
        assert (again.status, again.out.startswith("\nError: Plan"), why in again.out) == (1, True, True), again


@pytest.mark.parametrize("plan", ["nonsense", "0b0ce5a3-0000-4000-8000-000000000000", "a/b", ".."])
@pytest.mark.parametrize(("step", "past"), [("approve", "approved"), ("apply", "applied"), ("undo", "undone")])
async def test_a_plan_that_the_group_has_not(kgroups: Kgroups, g: None, plan: str, step: str, past: str) -> None:
    run = await kgroups(*RESET, f"--{step}", plan, "--execute")
    assert run.status == 1
    assert run.out.startswith(f"\nError: Plan {plan!r} of group 'g' cannot be {past}: ")


async def test_a_plan_of_someone_else_is_approved_and_applied(
    kgroups: Kgroups, g: None, api: httpx.AsyncClient
) -> None:
    made = await api.post("/v1/groups/g/offsets/plan", json={"strategy": "to-latest"})
    plan = made.json()["id"]
    shown = await kgroups(*RESET, "--approve", plan)
    assert new_offsets(shown) == {"0": "100", "1": "50"}
    approved = await kgroups(*RESET, "--approve", plan, "--execute")
    assert (new_offsets(approved), approved.err) == ({"0": "100", "1": "50"}, f"\ng: plan {plan} was approved.\n")
    found = (await api.get(f"/v1/groups/g/offsets/plans/{plan}")).json()
    assert (found["state"], found["approved_by"][:6]) == ("planned", "local:")
    assert await offsets_of(api) == {0: 40, 1: 20}

    applied = await kgroups(*RESET, "--apply", plan, "--execute")
    assert new_offsets(applied) == {"0": "100", "1": "50"}
    told = APPLIED.fullmatch(applied.err)
    assert told is not None, applied.err
    assert told[2] == plan
    assert await offsets_of(api) == {0: 100, 1: 50}
    again = await kgroups(*RESET, "--apply", plan, "--dry-run")
    assert (again.status, "its state is applied" in again.out) == (1, True)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (("--to-offset", "30"), {"0": "30", "1": "30", "2": "7"}),
        (("--to-offset", "5"), {"0": "10", "1": "5", "2": "5"}),
        (("--to-earliest",), {"0": "10", "1": "0", "2": "0"}),
        (("--to-latest",), {"0": "100", "1": "50", "2": "7"}),
        (("--to-current",), {"0": "40", "1": "20", "2": "7"}),
    ],
)
async def test_partitions_of_a_topic(
    kgroups: Kgroups, g: None, strategy: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert new_offsets(await kgroups(*RESET, "--topic", "orders:0,1,2", *strategy, "--dry-run")) == expected


@pytest.mark.parametrize(
    ("by", "expected"),
    [("5", {"0": "45", "1": "25"}), ("-25", {"0": "15", "1": "0"}), ("+1000", {"0": "100", "1": "50"})],
)
async def test_shift_by(kgroups: Kgroups, g: None, by: str, expected: dict[str, str]) -> None:
    assert new_offsets(await kgroups(*RESET, "--all-topics", "--shift-by", by, "--dry-run")) == expected


async def test_what_is_clamped_is_told(kgroups: Kgroups, g: None) -> None:
    run = await kgroups(*RESET, "--topic", "orders:1", "--to-offset", "70", "--dry-run")
    assert new_offsets(run) == {"1": "50"}
    assert run.err == "\ng: orders-1: 70 is outside the log, which ends at 50\n"


async def test_all_partitions_of_a_topic_also_where_nothing_is_committed(
    kgroups: Kgroups, g: None, topics: TopicService
) -> None:
    await topics.set_watermarks("orders", [Watermark(3, 1, 2)])
    run = await kgroups(*RESET, "--topic", "orders", "--to-latest", "--dry-run")
    assert new_offsets(run) == {"0": "100", "1": "50", "2": "7", "3": "2"}


async def test_shift_by_of_a_partition_without_an_offset_aborts_all_of_it(
    kgroups: Kgroups, g: None, commit: Committer, api: httpx.AsyncClient
) -> None:
    await commit("a", {0: 30, 2: 3})
    options = ("--topic", "orders:0,2", "--shift-by", "1", "--execute")
    run = await kgroups("--reset-offsets", "--group", "a", "--group", "g", *options)
    assert run.status == 1
    assert "\nError: No group was reset, because of group 'g': INVALID_REQUEST" in run.out
    assert "orders-2" in run.out
    assert await offsets_of(api, "a") == {0: 30, 2: 3}


class TestTimes:
    @pytest.fixture
    async def start_ms(
        self, runtime: Runtime, topics: TopicService, clock: VirtualClock, g: None, commit: Committer
    ) -> int:
        """Since this instant the log of partition 0 grew by a record a second; after a minute g committed 90."""
        start = clock.now_ms()
        for second in range(0, 61, 10):
            await topics.set_watermarks("orders", [Watermark(0, 10, 100 + second)])
            await runtime.get(SampleService).sample()
            clock.advance(10_000)
        await commit("g", {0: 90})
        return start

    async def test_to_datetime(self, kgroups: Kgroups, start_ms: int) -> None:
        at = instant(start_ms + 30_000)
        run = await kgroups(*RESET, "--topic", "orders:0", "--to-datetime", at, "--dry-run")
        assert new_offsets(run) == {"0": "130"}
        shifted = instant(start_ms + 30_000 + 3_600_000)
        assert await kgroups(*RESET, "--topic", "orders:0", "--to-datetime", f"{shifted}+01:00", "--dry-run") == run

    async def test_by_duration(self, kgroups: Kgroups, start_ms: int) -> None:
        run = await kgroups(*RESET, "--topic", "orders:0", "--by-duration", "PT40S", "--dry-run")
        assert new_offsets(run) == {"0": "130"}

    async def test_after_the_last_record_is_the_end_with_a_warning(self, kgroups: Kgroups, start_ms: int) -> None:
        at = instant(start_ms + 86_400_000)
        run = await kgroups(*RESET, "--topic", "orders:0", "--to-datetime", at, "--dry-run")
        assert new_offsets(run) == {"0": "160"}
        assert run.err.startswith("\ng: orders-0: ")
        assert "the end of the log" in run.err

    async def test_to_committed_at(self, kgroups: Kgroups, start_ms: int) -> None:
        at = instant(start_ms + 30_000)
        run = await kgroups(*RESET, "--all-topics", "--to-committed-at", at, "--dry-run")
        assert new_offsets(run) == {"0": "40", "1": "20"}


async def test_copy_from_group(kgroups: Kgroups, g: None, api: httpx.AsyncClient) -> None:
    run = await kgroups("--reset-offsets", "--group", "new", "--all-topics", "--copy-from-group", "g", "--execute")
    assert new_offsets(run) == {"0": "40", "1": "20"}
    assert await offsets_of(api, "new") == {0: 40, 1: 20}


async def test_an_unknown_group_is_made(kgroups: Kgroups, api: httpx.AsyncClient) -> None:
    run = await kgroups("--reset-offsets", "--group", "new one", "--topic", "orders:1", "--to-latest", "--execute")
    assert run.status == 0
    assert run.rows[1] == ["new", "one", "orders", "1", "50"]
    assert (await kgroups("--list", "--state")).rows[1] == ["new", "one", "Empty"]


async def test_nothing_to_commit_makes_nothing(kgroups: Kgroups) -> None:
    run = await kgroups("--reset-offsets", "--group", "new", "--all-topics", "--to-latest", "--execute")
    assert (run.status, run.rows) == (0, [HEADER])
    assert run.err == "\nGroup 'new' has no committed offsets: there is nothing to reset.\n"
    assert (await kgroups("--list")).out == ""


async def test_groups_with_members_are_errors_and_the_rest_goes_on(
    kgroups: Kgroups, service: GroupService, g: None, api: httpx.AsyncClient
) -> None:
    await service.put(stable_group("busy"))
    run = await kgroups("--reset-offsets", "--all-groups", "--all-topics", "--to-earliest", "--execute")
    assert run.status == 1
    error, *table = run.out.strip("\n").splitlines()
    assert error == "Error: Offsets of group 'busy' can only be reset while it is inactive; its state is Stable."
    assert [line.split() for line in table if line] == [HEADER, ["g", "orders", "0", "10"], ["g", "orders", "1", "0"]]
    assert await offsets_of(api) == {0: 10, 1: 0}


async def test_a_member_that_joins_in_between_keeps_its_offsets(
    kgroups: Kgroups, service: GroupService, g: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group was empty when it was described and planned."""
    loop, apply = asyncio.get_running_loop(), Api.apply

    def joined_before(self: Api, group_id: str, plan_id: str) -> None:
        asyncio.run_coroutine_threadsafe(service.put(stable_group("g")), loop).result(10)
        apply(self, group_id, plan_id)

    monkeypatch.setattr(Api, "apply", joined_before)
    run = await kgroups(*RESET, "--topic", "orders:0", "--to-earliest", "--execute")
    assert (run.status, run.rows[-1]) == (1, HEADER)
    assert "Error: Group 'g' was not reset: NON_EMPTY_GROUP: " in run.out
    assert "was applied" not in run.err


async def test_a_partition_that_cannot_be_planned_is_an_error(kgroups: Kgroups, g: None) -> None:
    for topic, told in (
        ("orders:3", "start and end of its log are unknown"),
        ("nowhere", "there is no topic 'nowhere'"),
    ):
        run = await kgroups(*RESET, "--topic", topic, "--to-latest", "--dry-run")
        assert run.status == 1
        assert run.out.startswith("\nError: Group 'g' cannot be reset: ")
        assert told in run.out


async def test_a_plan_of_more_lines_than_a_page_has(
    kgroups: Kgroups, topics: TopicService, commit: Committer, api: httpx.AsyncClient
) -> None:
    await topics.create("wide", 250)
    await topics.set_watermarks("wide", [Watermark(partition, 0, 100 + partition) for partition in range(250)])
    run = await kgroups(*RESET, "--topic", "wide", "--to-latest", "--execute")
    assert new_offsets(run) == {str(n): str(100 + n) for n in range(250)}
    told = APPLIED.fullmatch(run.err)
    assert told is not None
    assert new_offsets(await kgroups(*RESET, "--undo", told[2], "--execute")) == {str(n): "-" for n in range(250)}


class TestCsv:
    @pytest.fixture(autouse=True)
    async def two(self, commit: Committer, orders: str) -> None:
        await commit("g", {0: 40, 1: 20})
        await commit("späte Züge, 漢字", {1: 7})

    async def test_export_of_one_group(self, kgroups: Kgroups) -> None:
        run = await kgroups(*RESET, "--all-topics", "--to-current", "--dry-run", "--export")
        assert (run.status, run.out, run.err) == (0, "orders,0,40\norders,1,20\n", "")

    async def test_export_of_many_groups_names_them(self, kgroups: Kgroups) -> None:
        options = ("--all-topics", "--to-current", "--dry-run", "--export")
        expected = 'g,orders,0,40\ng,orders,1,20\n"späte Züge, 漢字",orders,1,7\n'
        assert (await kgroups("--reset-offsets", "--all-groups", *options)).out == expected
        both = await kgroups("--reset-offsets", "--group", "g", "--group", "späte Züge, 漢字", *options)
        assert both.out == expected

    async def test_errors_of_an_export_do_not_stand_in_the_csv(self, kgroups: Kgroups, service: GroupService) -> None:
        """Differs from Kafka, whose tool prints them between the lines."""
        await service.put(stable_group("busy"))
        run = await kgroups("--reset-offsets", "--all-groups", "--all-topics", "--to-current", "--dry-run", "--export")
        assert run.status == 1
        assert run.out.splitlines()[0] == "g,orders,0,40"
        assert "Error: Offsets of group 'busy'" in run.err

    async def test_execute_and_export_go_together(self, kgroups: Kgroups, api: httpx.AsyncClient) -> None:
        run = await kgroups(*RESET, "--topic", "orders:0", "--to-latest", "--execute", "--export")
        assert (run.status, run.out) == (0, "orders,0,100\n")
        assert await offsets_of(api) == {0: 100, 1: 20}

    @pytest.mark.parametrize("groups", [("--group", "g"), ("--all-groups",)])
    async def test_what_was_exported_can_be_read_back(
        self, kgroups: Kgroups, api: httpx.AsyncClient, tmp_path: Path, groups: tuple[str, ...]
    ) -> None:
        exported = await kgroups("--reset-offsets", *groups, "--all-topics", "--to-current", "--dry-run", "--export")
        file = tmp_path / "offsets.csv"
        file.write_text(exported.out, encoding="utf-8")
        moved = await kgroups("--reset-offsets", *groups, "--all-topics", "--to-earliest", "--execute")
        assert moved.status == 0
        assert await offsets_of(api) == {0: 10, 1: 0}
        back = await kgroups("--reset-offsets", *groups, "--from-file", str(file), "--execute", "--export")
        assert (back.status, back.out) == (0, exported.out)
        assert await offsets_of(api) == {0: 40, 1: 20}

    async def test_a_group_that_the_file_does_not_name_is_an_error_without_rows(
        self, kgroups: Kgroups, tmp_path: Path
    ) -> None:
        file = tmp_path / "offsets.csv"
        file.write_text("g,orders,0,90\n")
        options = ("--from-file", str(file), "--dry-run")
        run = await kgroups("--reset-offsets", "--group", "g", "--group", "other", *options)
        assert (run.status, run.rows[-1]) == (1, ["g", "orders", "0", "90"])
        assert (
            "Error: Group 'other' cannot be reset: INVALID_REQUEST: csv: contains no lines of group 'other'" in run.out
        )

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"orders,0\nh,orders,0,1\norders,x,1\n", "line 1: 2 fields"),
            (b"\n\norders,0,-3\n", "line 3: the offset '-3' is not a whole number"),
            (b"", "contains no offsets"),
            (b"\xff\xfe", "cannot be read: "),
            (None, "cannot be read: "),
        ],
    )
    async def test_a_bad_file_changes_nothing(
        self, kgroups: Kgroups, api: httpx.AsyncClient, tmp_path: Path, content: bytes | None, told: str
    ) -> None:
        file = tmp_path / "offsets.csv"
        if content is not None:
            file.write_bytes(content)
        run = await kgroups(*RESET, "--from-file", str(file), "--execute")
        assert (run.status, run.err) == (1, "")
        assert run.out.startswith(f"\nError: The file {str(file)!r} can")
        assert told in run.out
        assert await offsets_of(api) == {0: 40, 1: 20}

    async def test_three_columns_need_just_one_group(self, kgroups: Kgroups, tmp_path: Path) -> None:
        file = tmp_path / "offsets.csv"
        file.write_text("orders,0,90\n")
        for groups in (("--all-groups",), ("--group", "g", "--group", "h")):
            run = await kgroups("--reset-offsets", *groups, "--from-file", str(file), "--execute")
            assert run.status == 1
            assert "does not name groups: use exactly one --group" in run.out


async def test_a_group_of_another_protocol_type_is_left_alone(kgroups: Kgroups, service: GroupService) -> None:
    await service.put(group("sink", GroupState.EMPTY, protocol_type="connect"))
    run = await kgroups("--reset-offsets", "--group", "sink", "--topic", "orders:0", "--to-latest", "--execute")
    assert run.status == 1
    assert "Error: 'sink' is not a consumer group" in run.out
