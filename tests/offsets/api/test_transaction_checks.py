"""What transactional commits refuse, and in which order: members, producers, rights, bad input."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groups.engine.service import GroupService
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from tests.support.api import Members, assert_problem, identity
from tests.support.api_consumers import Consumers
from tests.support.api_transactions import end, ended, fetched, pend, plain_commit, txn_body, txn_commit
from tests.support.fixtures import ClientWith


class TestMembers:
    """Validation by the group: offsets.md 4.1, rows 5 and 8 to 10."""

    async def test_a_rebalance_does_not_stop_a_transaction(
        self, api: httpx.AsyncClient, topic: str, members: Members
    ) -> None:
        """The group is in CompletingRebalance; a plain commit is told to join again."""
        (member,) = await members.joined()
        plain = {
            "member_id": member["member_id"],
            "generation_id_or_member_epoch": 1,
            "topics": txn_body({0: 1})["topics"],
        }
        response = await api.post("/v1/groups/g/offsets/commit", json=plain)
        assert_problem(response, Error.REBALANCE_IN_PROGRESS)
        await pend(api, {0: 1}, **identity(member))

    async def test_of_a_group_with_members_nobody_needs_to_be_one(
        self, api: httpx.AsyncClient, topic: str, members: Members
    ) -> None:
        await members.stable()
        await pend(api, {0: 1})

    async def test_who_says_it_is_a_member_must_be_one(
        self, api: httpx.AsyncClient, topic: str, members: Members
    ) -> None:
        member = identity(await members.stable())
        for changes, error in (
            ({**member, "generation_id": 2}, Error.ILLEGAL_GENERATION),
            ({**member, "generation_id": -1}, Error.ILLEGAL_GENERATION),
            ({**member, "member_id": "nobody"}, Error.UNKNOWN_MEMBER_ID),
            ({**member, "group_instance_id": "nobody"}, Error.UNKNOWN_MEMBER_ID),
            ({"generation_id": 1}, Error.UNKNOWN_MEMBER_ID),
        ):
            assert_problem(await txn_commit(api, {0: 1}, **changes), error)
        assert await fetched(api, stable=True) == {}

    async def test_a_group_that_does_not_exist(self, api: httpx.AsyncClient, topic: str) -> None:
        assert_problem(await txn_commit(api, {0: 1}, generation_id=0), Error.ILLEGAL_GENERATION)
        assert (await api.get("/v1/groups/g")).status_code == 404
        await pend(api, {0: 1})
        assert (await api.get("/v1/groups/g")).json()["state"] == "Empty"

    async def test_no_session_is_renewed(
        self, api: httpx.AsyncClient, topic: str, members: Members, service: GroupService, clock: VirtualClock
    ) -> None:
        member = identity(await members.stable())
        clock.advance(9_000)
        await pend(api, {0: 1}, **member)
        clock.advance(1_000)
        assert_problem(await txn_commit(api, {0: 1}, **member), Error.UNKNOWN_MEMBER_ID)

    async def test_the_fence_of_the_producer_comes_before_the_group(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 1}, producer_epoch=1)
        for group in ("g", "nowhere"):
            response = await txn_commit(api, {0: 1}, group, member_id="nobody", generation_id=3)
            assert_problem(response, Error.INVALID_PRODUCER_EPOCH)

    async def test_the_empty_group_id_and_a_stopped_coordinator(
        self, api: httpx.AsyncClient, topic: str, service: GroupService
    ) -> None:
        assert_problem(await txn_commit(api, {0: 1}, ""), Error.INVALID_GROUP_ID)
        service.active = False
        for response in (
            await txn_commit(api, {0: 1}, ""),
            await end(api),
            await api.post("/v1/transactions/t/init"),
        ):
            assert_problem(response, Error.COORDINATOR_NOT_AVAILABLE)


class TestConsumerGroups:
    async def test_the_epoch_of_a_member_is_checked_in_the_words_of_the_older_api(
        self, api: httpx.AsyncClient, runtime: Runtime, topic: str
    ) -> None:
        """offsets.md 4.1, row 10: STALE_MEMBER_EPOCH is turned into ILLEGAL_GENERATION."""
        joined = await Consumers(api, runtime).join("m1")
        epoch = joined["member_epoch"]
        response = await txn_commit(api, {0: 1}, member_id="m1", generation_id=epoch + 1)
        assert_problem(response, Error.ILLEGAL_GENERATION)
        response = await txn_commit(api, {0: 1}, member_id="nobody", generation_id=epoch)
        assert_problem(response, Error.UNKNOWN_MEMBER_ID)
        assert await fetched(api, stable=True) == {}
        await pend(api, {0: 1}, member_id="m1", generation_id=epoch)
        assert await ended(api) == (1, 1)

    async def test_a_stable_fetch_checks_the_member_too(
        self, api: httpx.AsyncClient, runtime: Runtime, topic: str
    ) -> None:
        epoch = (await Consumers(api, runtime).join("m1"))["member_epoch"]
        await pend(api, {0: 1}, member_id="m1", generation_id=epoch)
        fetch = {"topics": [{"name": topic, "partitions": [0]}], "require_stable": True}
        for who, error in (
            ({"member_id": "m1", "member_epoch": epoch + 1}, Error.STALE_MEMBER_EPOCH),
            ({"member_id": "", "member_epoch": -1}, Error.UNKNOWN_MEMBER_ID),
        ):
            response = await api.post("/v1/groups/g/offsets/fetch", json={**fetch, **who})
            assert_problem(response, error)
        body = {**fetch, "member_id": "m1", "member_epoch": epoch}
        (found,) = (await api.post("/v1/groups/g/offsets/fetch", json=body)).json()["topics"][0]["partitions"]
        assert found["error"] == "UNSTABLE_OFFSET_COMMIT"


class TestPartitions:
    @pytest.fixture
    def config(self) -> Config:
        return Config({"offset.metadata.max.bytes": 3})

    async def test_each_is_answered_on_its_own(self, api: httpx.AsyncClient, topic: str) -> None:
        partitions = [
            {"partition": 0, "committed_offset": 1, "committed_metadata": "long"},
            {"partition": 1, "committed_offset": "9223372036854775807", "committed_metadata": None},
            {"partition": 3, "committed_offset": 1},
            {"partition": -1, "committed_offset": 1},
        ]
        topics = [{"name": topic, "partitions": partitions}, {"name": "no", "partitions": partitions[:1]}]
        response = await txn_commit(api, {}, topics=topics)
        errors = [[p["error"] for p in entry["partitions"]] for entry in response.json()["topics"]]
        unknown = "UNKNOWN_TOPIC_OR_PARTITION"
        assert errors == [["OFFSET_METADATA_TOO_LARGE", "NONE", unknown, unknown], [unknown]]
        assert await ended(api) == (1, 1)
        assert await fetched(api) == {1: 2**63 - 1}

    async def test_a_partition_that_is_named_twice_has_its_last_offset(
        self, api: httpx.AsyncClient, topic: str
    ) -> None:
        twice = [{"partition": 0, "committed_offset": 1}, {"partition": 0, "committed_offset": 2}]
        response = await txn_commit(api, {}, topics=[{"name": topic, "partitions": twice}])
        assert [p["error"] for p in response.json()["topics"][0]["partitions"]] == ["NONE", "NONE"]
        assert await ended(api) == (1, 1)
        assert await fetched(api) == {0: 2}

    async def test_nothing_left_is_answered_without_group_and_producer(
        self, api: httpx.AsyncClient, service: GroupService
    ) -> None:
        """offsets.md 2.2: the coordinator is not asked, and may be stopped."""
        service.active = False
        response = await txn_commit(api, {0: 1}, member_id="nobody", generation_id=3)
        assert response.json()["topics"][0]["partitions"][0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
        service.active = True
        assert await ended(api, producer_id=99) == (0, 0)


class TestAccess:
    async def test_the_transactional_id_comes_first_then_the_group(self, client_with: ClientWith, topic: str) -> None:
        neither = await client_with("read:topic:*", "describe:transactional-id:*", "read:transactional-id:tt")
        assert_problem(await txn_commit(neither, {0: 1}), Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        assert_problem(await end(neither), Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        response = await neither.post("/v1/transactions/t/init")
        assert_problem(response, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        no_group = await client_with("read:topic:*", "read:transactional-id:t")
        assert_problem(await txn_commit(no_group, {0: 1}), Error.GROUP_AUTHORIZATION_FAILED)

    async def test_topics_are_refused_one_by_one(self, client_with: ClientWith, runtime: Runtime, topic: str) -> None:
        await runtime.get(TopicService).create("secret", 1)
        client = await client_with("read:topic:orders", "read:transactional-id:t*", "read:group:g")
        topics = [{"name": name, "partitions": [{"partition": 0, "committed_offset": 1}]} for name in ("secret", topic)]
        response = await txn_commit(client, {}, topics=topics)
        errors = [entry["partitions"][0]["error"] for entry in response.json()["topics"]]
        assert errors == ["TOPIC_AUTHORIZATION_FAILED", "NONE"]
        assert await ended(client) == (1, 1)

    async def test_who_may_describe_the_cluster_sees_that_groups_are_there_and_no_more(
        self, api: httpx.AsyncClient, client_with: ClientWith, topic: str, members: Members
    ) -> None:
        await plain_commit(api, {0: 1}, "mine")
        member = await members.stable("theirs")

        async def names(client: httpx.AsyncClient, query: str = "") -> list[str]:
            return [group["group_id"] for group in (await client.get(f"/v1/groups{query}")).json()["groups"]]

        limited = await client_with("describe:group:mine", "describe:cluster:other")
        assert await names(limited) == ["mine"]
        for rule in ("describe:cluster:*", "describe:cluster:kafka-cluster", "admin:cluster:*"):
            client = await client_with("describe:group:mine", rule)
            assert await names(client) == ["mine", "theirs"]
            assert await names(client, f"?member={member['member_id']}") == []
            for path in ("", "/offsets", "/events", "/config"):
                assert (await client.get(f"/v1/groups/theirs{path}")).status_code == 404, path
            fetch = await client.post("/v1/groups/theirs/offsets/fetch", json={})
            assert_problem(fetch, Error.GROUP_AUTHORIZATION_FAILED)


BAD_PRODUCERS = [
    ("producer_id", -1),
    ("producer_id", 2**63),
    ("producer_id", "9223372036854775808"),
    ("producer_id", "-1"),
    ("producer_id", "1e3"),
    ("producer_id", None),
    ("producer_epoch", -1),
    ("producer_epoch", 32_768),
    ("producer_epoch", "0"),
]


class TestBadInput:
    @pytest.mark.parametrize(("field", "value"), BAD_PRODUCERS)
    async def test_producers(self, api: httpx.AsyncClient, topic: str, field: str, value: Any) -> None:
        for response in (await txn_commit(api, {0: 1}, **{field: value}), await end(api, **{field: value})):
            body = assert_problem(response, Error.INVALID_REQUEST, field=field)
            assert "2^63 - 1" in body["detail"] or "32767" in body["detail"] or "64 bits" in body["detail"]

    @pytest.mark.parametrize("transactional_id", ["", "a/b", "x" * 256, "line\nfeed", "\x7f", None, 5])
    async def test_transactional_ids_in_bodies(self, api: httpx.AsyncClient, topic: str, transactional_id: Any) -> None:
        response = await txn_commit(api, {0: 1}, transactional_id=transactional_id)
        assert_problem(response, Error.INVALID_REQUEST, field="transactional_id")

    @pytest.mark.parametrize("raw", ["", "a%2Fb", "a/b", "x" * 256, "%0A", "%FF", "%", "%zz", "%00"])
    async def test_transactional_ids_in_paths(self, api: httpx.AsyncClient, raw: str) -> None:
        for call, body in (("end", {"producer_id": 1, "producer_epoch": 0, "committed": True}), ("init", None)):
            url = httpx.URL(scheme="http", host="testserver", raw_path=f"/v1/transactions/{raw}/{call}".encode())
            assert_problem(await api.post(url, json=body), Error.INVALID_REQUEST, field="transactional_id")

    async def test_nothing_of_a_refused_commit_is_registered(self, api: httpx.AsyncClient, topic: str) -> None:
        await txn_commit(api, {0: 2**63})
        await txn_commit(api, {0: 1}, typo=1)
        await pend(api, {0: 1}, producer_id=8)
