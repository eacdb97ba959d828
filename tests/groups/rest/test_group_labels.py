"""Labels of one group: their rules, who may change them, and that groups are found by them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from groups.labels import GroupLabels
from kcoord.control.rest.labels import MAX_LABEL_NAME, MAX_LABEL_VALUE, MAX_LABELS, merged
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from offsets import group_list
from offsets.group_list import Q
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

PATH = "/v1/groups/g/labels"


async def patch(api: httpx.AsyncClient, labels: object, group_id: str = "g") -> httpx.Response:
    """Change labels of a group."""
    return await api.patch(f"/v1/groups/{group_id}/labels", json={"labels": labels})


async def labels_of(api: httpx.AsyncClient, group_id: str = "g") -> dict[str, str]:
    """The labels of a group."""
    response = await api.get(f"/v1/groups/{group_id}/labels")
    assert response.status_code == 200, response.text
    return dict(response.json()["labels"])


async def listed(api: httpx.AsyncClient, query: str) -> list[str]:
    """The ids of the groups that the list has."""
    response = await api.get(f"/v1/groups?{query}")
    assert response.status_code == 200, response.text
    return [group["group_id"] for group in response.json()["groups"]]


async def test_labels_are_set_and_removed_one_by_one(api: httpx.AsyncClient) -> None:
    assert (await api.get(PATH)).json() == {"group_id": "g", "labels": {}, "updated_at": None, "updated_by": None}
    changed = (await patch(api, {"team": "money", "owner": "ann"})).json()
    assert list(changed["labels"].items()) == [("owner", "ann"), ("team", "money")], "by name"
    assert changed["updated_at"]
    assert changed["updated_by"].startswith("test-")
    assert (await patch(api, {"team": None, "contact": "https://chat.example.com/x", "absent": None})).json()[
        "labels"
    ] == {"contact": "https://chat.example.com/x", "owner": "ann"}
    assert await labels_of(api, "h") == {}
    await patch(api, {"owner": None, "contact": None})
    assert (await api.get(PATH)).json()["updated_at"] is None


async def test_labels_are_in_descriptions_and_lists(api: httpx.AsyncClient) -> None:
    await patch(api, {"owner": "ann"})
    assert (await api.get("/v1/groups/g")).status_code == 404, "labels create no group"
    await api.post("/v1/groups", json={"group_id": "g"})
    await api.post("/v1/groups", json={"group_id": "h"})
    assert (await api.get("/v1/groups/g")).json()["labels"] == {"owner": "ann"}
    rows = (await api.get("/v1/groups")).json()["groups"]
    assert [(row["group_id"], row["labels"]) for row in rows] == [("g", {"owner": "ann"}), ("h", {})]


async def test_labels_survive_the_deletion_of_the_group(api: httpx.AsyncClient) -> None:
    await api.post("/v1/groups", json={"group_id": "g"})
    await patch(api, {"owner": "ann"})
    assert (await api.delete("/v1/groups/g")).status_code == 204
    assert await labels_of(api) == {"owner": "ann"}


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"": "x"}, "a label name has 1 to 63 characters"),
        ({"n" * (MAX_LABEL_NAME + 1): "x"}, "a label name has 1 to 63 characters"),
        ({"n" * (MAX_LABEL_NAME + 1): None}, "a label name has 1 to 63 characters"),
        ({"owner": "x" * (MAX_LABEL_VALUE + 1)}, "255 characters"),
        ({"owner": 5}, "must be a string"),
        ({f"l{n}": "x" for n in range(MAX_LABELS + 1)}, "labels: there are 66 labels; at most 64"),
        (["owner"], "labels"),
        ({"owner": "\0"}, "NUL"),
    ],
)
async def test_what_is_refused_changes_nothing(api: httpx.AsyncClient, labels: Any, reason: str) -> None:
    await patch(api, {"team": "money"})
    response = await patch(api, labels if not isinstance(labels, dict) else {"team": "other", **labels})
    assert_problem(response, Error.INVALID_REQUEST)
    assert reason in response.json()["detail"]
    assert await labels_of(api) == {"team": "money"}


async def test_as_many_labels_as_there_may_be(api: httpx.AsyncClient) -> None:
    most = {f"l{n:02}": "x" for n in range(MAX_LABELS)}
    assert (await patch(api, most)).status_code == 200
    assert "there are 65 labels" in (await patch(api, {"one-more": "x"})).json()["detail"]
    replaced = await patch(api, {"one-more": "x", "l00": None})
    assert len(replaced.json()["labels"]) == MAX_LABELS


async def test_changing_takes_admin_and_reading_describe(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    await patch(api, {"owner": "ann"})
    reader = await client_with("describe:group:g")
    assert await labels_of(reader) == {"owner": "ann"}
    assert_problem(await patch(reader, {"owner": "me"}), Error.GROUP_AUTHORIZATION_FAILED)
    stranger = await client_with("describe:group:other")
    assert_problem(await stranger.get(PATH), Error.GROUP_ID_NOT_FOUND)
    assert_problem(await patch(stranger, {"owner": "me"}), Error.GROUP_ID_NOT_FOUND)
    assert await labels_of(api) == {"owner": "ann"}


async def test_changes_are_told_by_the_events(api: httpx.AsyncClient) -> None:
    await patch(api, {"owner": "ann", "team": "money"})
    await patch(api, {"owner": "ann"})
    await patch(api, {"owner": None, "team": "other"})
    events = (await api.get("/v1/groups/g/events")).json()["events"]
    assert [event["kind"] for event in events] == ["labels_changed"] * 2
    assert events[0]["detail"]["labels"] == {"owner": ["ann", None], "team": ["money", "other"]}
    assert events[1]["detail"]["labels"] == {"owner": [None, "ann"], "team": [None, "money"]}
    assert events[0]["detail"]["principal"].startswith("test-")


async def test_changes_at_once_are_all_kept(runtime: Runtime) -> None:
    labels = runtime.get(GroupLabels)
    await asyncio.gather(*(labels.alter("g", {f"l{n}": str(n), "owner": str(n)}, "ann") for n in range(8)))
    found = (await labels.describe("g")).labels
    assert {f"l{n}": str(n) for n in range(8)}.items() <= found.items()
    removed = [labels.alter("g", {name: None}, "ann") for name in found]
    await asyncio.gather(*removed, labels.alter("g", {"last": "x"}, "ann"))
    assert (await labels.describe("g")).labels == {"last": "x"}


@pytest.mark.parametrize("few", [group_list.FEW_ROWS, 1], ids=["looked up", "group by group"])
async def test_the_list_is_filtered_by_labels_of_groups_and_topics(
    api: httpx.AsyncClient, client_with: ClientWith, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(group_list, "FEW_ROWS", few)
    await api.post("/v1/topics", json={"name": "orders", "partitions": 1, "labels": {"team": "money"}})
    start = [{"name": "orders", "partitions": [{"partition": 0, "committed_offset": 1}]}]
    for group_id in ("a", "b", "c", "d"):
        topics = start if group_id == "d" else []
        await api.post("/v1/groups", json={"group_id": group_id, "topics": topics})
    await patch(api, {"team": "money", "owner": "ann"}, "a")
    await patch(api, {"team": "other"}, "b")
    await patch(api, {"team": "money"}, "absent")
    assert await listed(api, "label=team%3Dmoney") == ["a", "d"]
    assert await listed(api, "label=team") == ["a", "b", "d"]
    assert await listed(api, "label=team%3Dother&label=owner%3Dann") == ["a", "b"]
    assert await listed(api, "label=money") == []
    assert await listed(api, "label=team&q=b") == ["b"]
    narrow = await client_with("describe:group:a", "describe:group:d")
    assert await listed(narrow, "label=team%3Dmoney") == ["a"], "the topic is not to be seen, the group's own label is"


def test_many_labels_are_found_with_an_index(database: str) -> None:
    condition = Q.labelled_groups.partition("where ")[2].partition("limit")[0]
    parameters = {"pairs": [Jsonb({"team": "t7"}), Jsonb({"team": "t8"})], "names": ["rare"]}
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "insert into groups_grouplabels (group_name, labels, updated_at, updated_by)"
            " select 'g' || n, jsonb_build_object('team', 't' || n % 2000)"
            " || case when n % 5000 = 0 then '{\"rare\": \"x\"}'::jsonb else '{}' end, 0, 'ann'"
            " from generate_series(1, 20000) n"
        )
        connection.execute("vacuum analyze groups_grouplabels")
        statement = f"explain select 1 from groups_grouplabels l where {condition}"
        plan = "\n".join(row[0] for row in connection.execute(statement.encode(), parameters))
    assert plan.count("Bitmap Index Scan on groups_grouplabels_labels") == 2, plan
    assert "Seq Scan" not in plan


NAMES = st.text("ab", min_size=1, max_size=3)
VALUES = st.text("xy", max_size=3)


@given(st.dictionaries(NAMES, VALUES), st.lists(st.dictionaries(NAMES, st.none() | VALUES)))
def test_changes_one_after_another_are_their_last_values(
    labels: dict[str, str], changes: list[dict[str, str | None]]
) -> None:
    after = labels
    for change in changes:
        after = merged(after, change)
    last: dict[str, str | None] = dict(labels)
    for change in changes:
        last |= change
    assert after == {name: value for name, value in last.items() if value is not None}
    assert list(after) == sorted(after) or not changes


@given(st.dictionaries(st.text(max_size=70), st.none() | st.text(max_size=260), max_size=80))
def test_a_merge_keeps_the_rules(changes: dict[str, str | None]) -> None:
    wanted = {name: value for name, value in changes.items() if value is not None}
    keeps = len(wanted) <= MAX_LABELS and all(
        1 <= len(name) <= MAX_LABEL_NAME and len(value or "") <= MAX_LABEL_VALUE and "\0" not in name + (value or "")
        for name, value in changes.items()
    )
    if keeps:
        assert merged({}, changes) == wanted
    else:
        with pytest.raises(ProtocolError, match="label"):
            merged({}, changes)
