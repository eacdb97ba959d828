"""--describe: every view of groups of both protocols (offsets.md 13.3 and 13.4)."""

from __future__ import annotations

import pytest

from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.protocol.consumer_protocol import Assignment, encode_assignment
from tests.kcoord.kgroups.conftest import Committer, Kgroups
from tests.support.api_consumers import Consumers
from tests.support.rest_groups import group, member

pytestmark = pytest.mark.usefixtures("orders")

COORDINATOR = "127.0.0.1:8000  (127.0.0.1:8000)"


@pytest.fixture
async def billing(service: GroupService, commit: Committer) -> None:
    """A Stable classic group: m2 owns more than m1, m3 nothing; 3 is committed and nobody owns it."""
    members = (member("m1", 0), member("m2", 1, 2, instance_id="till-2"), member("m3"))
    await service.put(group("billing", GroupState.STABLE, *members))
    who = {"member_id": "m1", "generation_id_or_member_epoch": 1}
    await commit("billing", {1: 20, 3: 8}, **who)
    await commit("billing", {0: 130}, epoch=5, **who)


async def test_offsets(kgroups: Kgroups, billing: None) -> None:
    run = await kgroups("--describe", "--group", "billing")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "\n"
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
        "HOST            CLIENT-ID\n"
        "billing         orders          1          20              50              30              m2              "
        "192.0.2.1       client-m2\n"
        "billing         orders          2          -               7               -               m2              "
        "192.0.2.1       client-m2\n"
        "billing         orders          0          130             100             -30             m1              "
        "192.0.2.1       client-m1\n"
        "billing         orders          3          8               -               -               -               "
        "-               -\n"
    )
    assert run == await kgroups("--describe", "--group", "billing", "--offsets")


async def test_offsets_verbose_have_the_leader_epoch(kgroups: Kgroups, billing: None) -> None:
    run = await kgroups("--describe", "--group", "billing", "--offsets", "--verbose")
    assert run.out == (
        "\n"
        "GROUP           TOPIC           PARTITION  LEADER-EPOCH    CURRENT-OFFSET  LOG-END-OFFSET  LAG             "
        "CONSUMER-ID     HOST            CLIENT-ID\n"
        "billing         orders          1          -               20              50              30              "
        "m2              192.0.2.1       client-m2\n"
        "billing         orders          2          -               -               7               -               "
        "m2              192.0.2.1       client-m2\n"
        "billing         orders          0          5               130             100             -30             "
        "m1              192.0.2.1       client-m1\n"
        "billing         orders          3          -               8               -               -               "
        "-               -               -\n"
    )


async def test_lag_counts_to_the_end_of_the_log_wherever_it_starts(kgroups: Kgroups, commit: Committer) -> None:
    """Differs from the lag of the HTTP API, which counts from the start of the log and is never negative."""
    await commit("g", {0: 4, 1: 60})
    rows = (await kgroups("--describe", "--group", "g")).rows
    assert [row[2:6] for row in rows[1:]] == [["0", "4", "100", "96"], ["1", "60", "50", "-10"]]


async def test_members(kgroups: Kgroups, billing: None) -> None:
    run = await kgroups("--describe", "--group", "billing", "--members")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "\n"
        "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS    \n"
        "billing         m1              -                 192.0.2.1       client-m1       1              \n"
        "billing         m2              till-2            192.0.2.1       client-m2       2              \n"
        "billing         m3              -                 192.0.2.1       client-m3       0              \n"
    )


async def test_members_verbose(kgroups: Kgroups, service: GroupService) -> None:
    both = encode_assignment(Assignment({"stock": (0,), "orders": (10, 2)}))
    await service.put(group("g", GroupState.STABLE, member("m1", assignment=both), member("m2")))
    run = await kgroups("--describe", "--group", "g", "--members", "--verbose")
    assert run.out == (
        "\n"
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   "
        "CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   \n"
        "g               m1              192.0.2.1       client-m1       3               -               "
        "orders:2,10;stock:0  -               -                   \n"
        "g               m2              192.0.2.1       client-m2       0               -               "
        "-                    -               -                   \n"
    )


async def test_state(kgroups: Kgroups, billing: None) -> None:
    run = await kgroups("--describe", "--group", "billing", "--state")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "\n"
        "GROUP           COORDINATOR (ID)                 ASSIGNMENT-STRATEGY  STATE                #MEMBERS\n"
        f"billing         {COORDINATOR} range                Stable               3\n"
    )


async def test_state_verbose_of_a_classic_group(kgroups: Kgroups, service: GroupService) -> None:
    await service.put(group("g", GroupState.COMPLETING_REBALANCE, member("m1")))
    run = await kgroups("--describe", "--group", "g", "--state", "--verbose")
    assert run.err == "\nWarning: Consumer group 'g' is rebalancing.\n"
    assert run.out == (
        "\n"
        "GROUP           COORDINATOR (ID)                 ASSIGNMENT-STRATEGY  STATE                GROUP-EPOCH     "
        "TARGET-ASSIGNMENT-EPOCH   #MEMBERS\n"
        f"g               {COORDINATOR} -                    CompletingRebalance  -               "
        "-                         1\n"
    )


class TestConsumerProtocol:
    @pytest.fixture(autouse=True)
    async def handover(self, consumers: Consumers, commit: Committer, orders: str) -> None:
        """m1 has been told to give two of its four partitions to m2, and has them until it says it gave them up."""
        first = await consumers.join()
        who = {"member_id": "m1", "generation_id_or_member_epoch": first["member_epoch"]}
        await commit("g", {0: 30}, epoch=2, **who)
        await consumers.join("m2", instance_id="till-2")
        await consumers.go_on(first)

    async def test_offsets(self, kgroups: Kgroups) -> None:
        run = await kgroups("--describe", "--group", "g", "--verbose")
        assert (run.status, run.err) == (0, "\nWarning: Consumer group 'g' is rebalancing.\n")
        assert [row[1:8] for row in run.rows[1:]] == [
            ["orders", "0", "2", "30", "100", "70", "m1"],
            ["orders", "1", "-", "-", "50", "-", "m1"],
            ["orders", "2", "-", "-", "7", "-", "m1"],
            ["orders", "3", "-", "-", "-", "-", "m1"],
        ]

    async def test_members(self, kgroups: Kgroups) -> None:
        run = await kgroups("--describe", "--group", "g", "--members", "--verbose")
        assert run.out == (
            "\n"
            "GROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     "
            "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   \n"
            "g               m1              -                 127.0.0.1       billing         4               "
            "1               orders:0,1,2,3       2               orders:2,3          \n"
            "g               m2              till-2            127.0.0.1       billing         0               "
            "2               -                    2               orders:0,1          \n"
        )

    async def test_state(self, kgroups: Kgroups) -> None:
        run = await kgroups("--describe", "--group", "g", "--state", "--verbose")
        assert run.out == (
            "\n"
            "GROUP           COORDINATOR (ID)                 ASSIGNMENT-STRATEGY  STATE                "
            "GROUP-EPOCH     TARGET-ASSIGNMENT-EPOCH   #MEMBERS\n"
            f"g               {COORDINATOR} range                Reconciling          "
            "2               2                         2\n"
        )


async def test_an_empty_group_has_rows_and_a_notice(kgroups: Kgroups, commit: Committer) -> None:
    await commit("g", {1: 3})
    offsets = await kgroups("--describe", "--group", "g")
    assert (offsets.status, offsets.err) == (0, "\nConsumer group 'g' has no active members.\n")
    assert offsets.rows[1:] == [["g", "orders", "1", "3", "50", "47", "-", "-", "-"]]
    members = await kgroups("--describe", "--group", "g", "--members")
    assert (members.status, members.err) == (0, offsets.err)
    assert members.rows == [["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]]
    state = await kgroups("--describe", "--group", "g", "--state")
    assert state.err == offsets.err
    assert state.rows[1] == ["g", *COORDINATOR.split(), "-", "Empty", "0"]


async def test_an_empty_group_without_offsets_is_only_a_notice(kgroups: Kgroups, service: GroupService) -> None:
    await service.put(group("g", GroupState.EMPTY))
    run = await kgroups("--describe", "--group", "g")
    assert (run.status, run.out, run.err) == (0, "", "\nConsumer group 'g' has no active members.\n")


async def test_a_group_that_does_not_exist(kgroups: Kgroups) -> None:
    error = "\nError: Consumer group 'nobody' does not exist.\n"
    for view in ("--offsets", "--state"):
        run = await kgroups("--describe", "--group", "nobody", view)
        assert (run.status, run.out, run.err) == (1, error, "")
    run = await kgroups("--describe", "--group", "nobody", "--members")
    header = "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS    \n"
    assert (run.status, run.out) == (1, error + header)


async def test_a_group_of_another_protocol_type_is_an_error_and_the_rest_goes_on(
    kgroups: Kgroups, service: GroupService, billing: None
) -> None:
    connector = member("c1", protocol_type="connect")
    await service.put(group("a-sink", GroupState.STABLE, connector, protocol_type="connect"))
    run = await kgroups("--describe", "--group", "billing", "--group", "a-sink", "--state")
    assert run.status == 1
    assert run.out.startswith("\nError: 'a-sink' is not a consumer group: its protocol type is 'connect'.\n\nGROUP")
    assert run.rows[-1][0] == "billing"


async def test_all_groups_in_the_order_of_their_ids(kgroups: Kgroups, many: list[str], billing: None) -> None:
    run = await kgroups("--describe", "--all-groups", "--state")
    assert run.status == 0
    assert [row[0] for row in run.rows if row[0] != "GROUP"] == ["billing", *many]


async def test_each_group_once_in_the_order_of_their_ids(kgroups: Kgroups, commit: Committer) -> None:
    for name in ("b", "a"):
        await commit(name, {0: 1})
    run = await kgroups("--describe", "--group", "b", "--group", "a", "--group", "b")
    assert [row[0] for row in run.rows if row[0] != "GROUP"] == ["a", "b"]


async def test_more_offsets_than_a_page_has(
    kgroups: Kgroups, commit: Committer, topics: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcoord.client.kgroups.api.PAGE", 10)
    await topics.create("wide", 25)
    await topics.set_watermarks("wide", [Watermark(partition, 0, 100) for partition in range(25)])
    await commit("g", {partition: partition for partition in range(25)}, topic="wide")
    rows = (await kgroups("--describe", "--group", "g")).rows[1:]
    assert [row[2:6] for row in rows] == [[str(n), str(n), "100", str(100 - n)] for n in range(25)]


async def test_more_watermarks_than_a_page_has(
    kgroups: Kgroups, service: GroupService, topics: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcoord.client.kgroups.api.PAGE", 10)
    await topics.create("wide", 25)
    await topics.set_watermarks("wide", [Watermark(partition, 0, 100 + partition) for partition in range(25)])
    await service.put(group("g", GroupState.STABLE, member("m1", *range(25), topic="wide")))
    rows = (await kgroups("--describe", "--group", "g")).rows[1:]
    assert [row[2:6] for row in rows] == [[str(n), "-", str(100 + n), "-"] for n in range(25)]


async def test_a_topic_that_was_deleted_has_no_log(
    kgroups: Kgroups, service: GroupService, topics: TopicService
) -> None:
    await service.put(group("g", GroupState.STABLE, member("m1", 0)))
    await topics.delete("orders")
    run = await kgroups("--describe", "--group", "g")
    assert (run.status, run.rows[1][1:6]) == (0, ["orders", "0", "-", "-", "-"])


@pytest.mark.parametrize("name", ["späte Züge 漢字", "50% off?#&=+", "..a", "a" * 255])
async def test_any_group_id(kgroups: Kgroups, commit: Committer, service: GroupService, name: str) -> None:
    await service.put(group(name, GroupState.STABLE, member("m1", 0)))
    run = await kgroups("--describe", "--group", name, "--state")
    assert (run.status, run.err) == (0, "")
    header, row = run.out.splitlines()[1:]
    assert row.startswith(name.ljust(15) + " 127.0.0.1:8000")
    assert header.index("COORDINATOR") == max(15, len(name)) + 1


async def test_a_group_id_that_cannot_be(kgroups: Kgroups) -> None:
    run = await kgroups("--describe", "--group", "a/b")
    assert run.status == 1
    assert "could not be described: INVALID_GROUP_ID: the group id must not contain '/'" in run.out


async def test_no_member_can_play_with_the_terminal(kgroups: Kgroups, service: GroupService) -> None:
    await service.put(group("g", GroupState.STABLE, member("m1", client_id="\x1b[2Jx\ny", client_host="")))
    run = await kgroups("--describe", "--group", "g", "--members")
    assert run.rows[1] == ["g", "m1", "-", "\\x1b[2Jx\\ny", "0"]
