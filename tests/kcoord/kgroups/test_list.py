"""--list: which groups, which columns, how wide (offsets.md 13.2)."""

from __future__ import annotations

import psycopg
import pytest

from groups.core.model.types import GroupState, VerdictKind
from groups.engine.service import GroupService
from kcoord.client.kgroups.arguments import VERDICTS
from tests.kcoord.kgroups.conftest import Committer, Kgroups
from tests.support.api_consumers import Consumers
from tests.support.rest_groups import group, member, stable_group


@pytest.fixture
async def some(service: GroupService, commit: Committer, orders: str) -> None:
    """A Stable group, one that rebalances, one of Kafka Connect, and a simple one that never had a member."""
    await service.put(stable_group("billing"))
    await service.put(group("stock", GroupState.PREPARING_REBALANCE, member("s1")))
    connector = member("c1", protocol_type="connect")
    await service.put(group("connect-sink", GroupState.STABLE, connector, protocol_type="connect"))
    await commit("simple", {0: 12})


async def test_nothing_is_listed_where_there_is_nothing(kgroups: Kgroups) -> None:
    run = await kgroups("--list")
    assert (run.status, run.out, run.err) == (0, "", "")


async def test_one_group_a_line_and_only_consumer_groups(kgroups: Kgroups, some: None) -> None:
    run = await kgroups("--list")
    assert (run.status, run.out, run.err) == (0, "billing\nsimple\nstock\n", "")


async def test_with_states_and_types(kgroups: Kgroups, some: None) -> None:
    run = await kgroups("--list", "--state", "--type")
    assert run.out == (
        "GROUP                     TYPE                 STATE               \n"
        "billing                   Classic              Stable              \n"
        "simple                    Classic              Empty               \n"
        "stock                     Classic              PreparingRebalance  \n"
    )


async def test_the_columns_asked_for_alone(kgroups: Kgroups, some: None) -> None:
    assert (await kgroups("--list", "--type")).rows[0] == ["GROUP", "TYPE"]
    assert (await kgroups("--list", "--state")).rows[0] == ["GROUP", "STATE"]


async def test_the_first_column_grows_with_the_longest_id(kgroups: Kgroups, service: GroupService) -> None:
    await service.put(group("g" * 40, GroupState.EMPTY))
    header, row = (await kgroups("--list", "--state")).out.splitlines()
    assert header.index("STATE") == row.index("Empty") == 40 + 10 + 1


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--state", "stable"), ["billing"]),
        (("--state", " PREPARINGREBALANCE ,Empty"), ["simple", "stock"]),
        (("--state", "Dead"), []),
        (("--type", "classic"), ["billing", "simple", "stock"]),
        (("--type", "CONSUMER"), []),
        (("--type", "classic,consumer", "--state", "stable,empty"), ["billing", "simple"]),
        (("--state", ""), ["billing", "simple", "stock"]),
    ],
)
async def test_filters(kgroups: Kgroups, some: None, options: tuple[str, ...], ids: list[str]) -> None:
    run = await kgroups("--list", *options)
    assert (run.status, [row[0] for row in run.rows[1:]]) == (0, ids)


async def test_groups_of_the_consumer_protocol(kgroups: Kgroups, consumers: Consumers, orders: str) -> None:
    await consumers.join()
    assert (await kgroups("--list", "--type", "consumer", "--state")).rows[1:] == [["g", "Consumer", "Stable"]]


async def test_many_groups_come_in_pages(kgroups: Kgroups, many: list[str]) -> None:
    assert (await kgroups("--list")).out.splitlines() == many


async def test_ids_with_blanks_and_letters_of_any_language(kgroups: Kgroups, commit: Committer, orders: str) -> None:
    await commit("späte Züge 漢字", {0: 1})
    assert (await kgroups("--list")).out == "späte Züge 漢字\n"


async def test_with_verdicts(kgroups: Kgroups, some: None, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into offsets_groupverdict (group_id, kind, topic, since, number, names)"
            " select g.id, k.kind, '', 1, 1, '{}' from groups_group g, (values ('late'), ('stuck')) k (kind)"
            " where g.group_id = 'stock'"
        )
    assert (await kgroups("--list", "--verdict")).rows == [
        ["GROUP", "VERDICTS"], ["billing", "-"], ["simple", "-"], ["stock", "stuck,late"],
    ]  # fmt: skip
    assert (await kgroups("--list", "--verdict", "LATE, stalled")).rows[1:] == [["stock", "stuck,late"]]
    refused = await kgroups("--list", "--verdict", "fine")
    assert "'fine' is not one of uncovered, unattended, stalled" in refused.err


def test_the_verdicts_are_those_of_the_service() -> None:
    assert list(VERDICTS) == [kind.value for kind in VerdictKind]
