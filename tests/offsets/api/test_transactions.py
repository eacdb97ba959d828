"""POST /v1/groups/{group_id}/offsets/txn-commit and POST /v1/transactions/{transactional_id}/end and /init."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcoord.database.clock import VirtualClock
from kcoord.metrics import COMMANDS, OFFSETS_COMMITTED
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.commits.transactions import store as transaction_store
from tests.support.api import Members, assert_problem, identity
from tests.support.api_transactions import end, ended, fetched, pend, plain_commit, txn_commit

UNSTABLE = Error.UNSTABLE_OFFSET_COMMIT.name


async def journal(runtime: Runtime) -> list[tuple[Any, ...]]:
    async with runtime.db.connection() as connection:
        return await runtime.db.rows(
            connection,
            "select at, kind, group_name, topic, partition, committed_offset, member_id, generation_id, client_id,"
            " transactional_id, expire_timestamp from offset_commit_log order by id",
        )


class TestPending:
    async def test_offsets_are_seen_when_the_transaction_is_committed(self, api: httpx.AsyncClient, topic: str) -> None:
        await plain_commit(api, {0: 99})
        await pend(api, {0: 100, 1: 200})
        assert await fetched(api) == {0: 99}
        assert await fetched(api, stable=True) == {0: UNSTABLE, 1: UNSTABLE}
        assert await ended(api) == (2, 2)
        assert await fetched(api, stable=True) == {0: 100, 1: 200}

    async def test_an_abort_drops_them(self, api: httpx.AsyncClient, topic: str) -> None:
        await plain_commit(api, {0: 99})
        await pend(api, {0: 100, 1: 200})
        assert await ended(api, committed=False) == (2, 0)
        assert await fetched(api, stable=True) == {0: 99}

    async def test_an_end_that_is_sent_again_does_nothing(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 100})
        assert await ended(api) == (1, 1)
        await plain_commit(api, {0: 50})
        assert await ended(api) == (0, 0)
        assert await fetched(api) == {0: 50}

    async def test_a_producer_that_nobody_knows_ends_nothing(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 100})
        assert await ended(api, transactional_id="other", producer_id=8) == (0, 0)
        assert await fetched(api, stable=True) == {0: UNSTABLE}

    async def test_of_plain_and_pending_the_one_written_later_prevails(
        self, api: httpx.AsyncClient, topic: str
    ) -> None:
        await plain_commit(api, {0: 1})
        await pend(api, {0: 2, 1: 2})
        await plain_commit(api, {1: 1})
        assert await ended(api) == (2, 1)
        assert await fetched(api) == {0: 2, 1: 1}

    async def test_of_two_transactions_the_one_that_wrote_later_prevails(
        self, api: httpx.AsyncClient, topic: str
    ) -> None:
        await pend(api, {0: 1})
        await pend(api, {0: 2}, transactional_id="u", producer_id=8)
        assert await ended(api, transactional_id="u", producer_id=8) == (1, 1)
        assert await fetched(api, stable=True) == {0: UNSTABLE}
        assert await ended(api) == (1, 0)
        assert await fetched(api, stable=True) == {0: 2}

    async def test_a_second_commit_replaces_the_first(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 1, 1: 1})
        await pend(api, {0: 2})
        assert await ended(api) == (2, 2)
        assert await fetched(api) == {0: 2, 1: 1}

    async def test_the_end_reaches_every_group(self, api: httpx.AsyncClient, topic: str) -> None:
        for group in ("b", "a", "c"):
            await pend(api, {0: 5}, group)
        await pend(api, {1: 6}, "a", transactional_id="u", producer_id=8)
        assert await ended(api) == (3, 3)
        assert [await fetched(api, group, stable=True) for group in "abc"] == [{0: 5, 1: UNSTABLE}, {0: 5}, {0: 5}]

    async def test_a_group_is_deleted_with_what_is_pending(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 1})
        assert (await api.delete("/v1/groups/g")).status_code == 204
        await plain_commit(api, {1: 1})
        assert await ended(api) == (0, 0)
        assert await fetched(api, stable=True) == {1: 1}

    async def test_an_offset_that_is_deleted_is_not_committed_later(self, api: httpx.AsyncClient, topic: str) -> None:
        """A tombstone takes pending offsets along (offsets.md 4.4)."""
        await pend(api, {0: 1, 1: 1})
        body = {"topics": [{"name": topic, "partitions": [0]}]}
        assert (await api.post("/v1/groups/g/offsets/delete", json=body)).status_code == 200
        assert await ended(api) == (1, 1)
        assert await fetched(api, stable=True) == {1: 1}

    async def test_a_fetch_of_everything_leaves_out_what_is_merely_pending(
        self, api: httpx.AsyncClient, topic: str
    ) -> None:
        await plain_commit(api, {0: 1})
        await pend(api, {0: 2, 1: 2})
        body = {"topics": None, "require_stable": True}
        one = (await api.post("/v1/groups/g/offsets/fetch", json=body)).json()["topics"]
        many = (
            await api.post("/v1/offsets/fetch", json={"groups": [{"group_id": "g"}], "require_stable": True})
        ).json()
        assert [(p["partition"], p["error"], p["committed_offset"]) for p in one[0]["partitions"]] == [
            (0, UNSTABLE, -1)
        ]
        assert many["groups"][0]["topics"] == one
        assert many["groups"][0]["error"] == "NONE"


class TestJournal:
    async def test_it_has_a_line_when_the_transaction_is_committed(
        self, api: httpx.AsyncClient, runtime: Runtime, topic: str, members: Members, clock: VirtualClock
    ) -> None:
        member = await members.stable()
        written_at = clock.now_ms()
        await pend(api, {0: 100}, **identity(member))
        assert await journal(runtime) == []
        clock.advance(1_000)
        await ended(api)
        line = (written_at + 1_000, "txn_commit", "g", topic, 0, 100, member["member_id"], 1, "billing", "t", None)
        assert await journal(runtime) == [line]
        response = await api.post("/v1/groups/g/offsets/fetch", json={"topics": None})
        assert response.json()["topics"][0]["partitions"][0]["commit_timestamp"] == written_at

    async def test_it_has_none_of_what_was_aborted_or_did_not_prevail(
        self, api: httpx.AsyncClient, runtime: Runtime, topic: str
    ) -> None:
        await pend(api, {0: 1})
        await ended(api, committed=False)
        await pend(api, {0: 1})
        await plain_commit(api, {0: 2})
        await ended(api)
        assert [(line[1], line[5]) for line in await journal(runtime)] == [("commit", 2)]

    async def test_operators_can_count(self, api: httpx.AsyncClient, topic: str) -> None:
        offsets = OFFSETS_COMMITTED._value.get()
        refused = COMMANDS.labels("txn_commit", "INVALID_PRODUCER_EPOCH").value
        await pend(api, {0: 1, 1: 1}, producer_epoch=1)
        await txn_commit(api, {0: 1})
        assert OFFSETS_COMMITTED._value.get() - offsets == 2
        assert COMMANDS.labels("txn_commit", "INVALID_PRODUCER_EPOCH").value - refused == 1


class TestProducers:
    async def test_a_larger_epoch_takes_over(self, api: httpx.AsyncClient, topic: str) -> None:
        """What the predecessor left pending is aborted, in every group, and whatever it still sends is refused."""
        await pend(api, {0: 1}, "g")
        await pend(api, {0: 1}, "h")
        await pend(api, {1: 2}, "g", producer_epoch=3)
        for response in (await txn_commit(api, {0: 9}), await end(api), await end(api, committed=False)):
            assert_problem(response, Error.INVALID_PRODUCER_EPOCH)
        assert await fetched(api, "h", stable=True) == {}
        assert await ended(api, producer_epoch=3) == (1, 1)
        assert await fetched(api) == {1: 2}

    async def test_an_end_never_commits_what_a_predecessor_left(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 1})
        assert await ended(api, producer_epoch=1) == (0, 0)
        assert await fetched(api, stable=True) == {}
        assert_problem(await end(api), Error.INVALID_PRODUCER_EPOCH)

    async def test_a_transactional_id_has_one_producer(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 1})
        for response in (
            await txn_commit(api, {0: 2}, producer_id=8),
            await txn_commit(api, {0: 2}, transactional_id="u"),
            await end(api, producer_id=8),
            await end(api, transactional_id="u"),
        ):
            assert_problem(response, Error.INVALID_PRODUCER_ID_MAPPING)
        assert await ended(api) == (1, 1)

    async def test_initializing_gives_a_producer_and_fences_the_one_before(
        self, api: httpx.AsyncClient, topic: str
    ) -> None:
        first = (await api.post("/v1/transactions/t/init")).json()
        assert first == {"producer_id": first["producer_id"], "producer_epoch": 0, "error_code": 0}
        await pend(api, {0: 1}, producer_id=first["producer_id"])
        second = (await api.post("/v1/transactions/t/init")).json()
        assert second == {**first, "producer_epoch": 1}
        assert await fetched(api, stable=True) == {}
        assert_problem(await txn_commit(api, {0: 1}, producer_id=first["producer_id"]), Error.INVALID_PRODUCER_EPOCH)
        await pend(api, {0: 2}, producer_id=second["producer_id"], producer_epoch=1)
        other = (await api.post("/v1/transactions/u/init")).json()
        assert other["producer_id"] != first["producer_id"]

    async def test_a_producer_id_that_a_client_chose_is_not_given_away(
        self, api: httpx.AsyncClient, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await pend(api, {0: 1}, producer_id=70)
        monkeypatch.setattr(transaction_store, "drawn_ids", lambda: [70, 71])
        assert (await api.post("/v1/transactions/b/init")).json()["producer_id"] == 71

    async def test_clients_cannot_take_the_ids_that_come_next(self, api: httpx.AsyncClient, topic: str) -> None:
        first = (await api.post("/v1/transactions/a/init")).json()["producer_id"]
        for ahead in range(1, 21):
            await pend(api, {0: 1}, transactional_id=f"chosen-{ahead}", producer_id=first + ahead)
        await pend(api, {0: 1}, transactional_id="largest", producer_id=2**63 - 1)
        response = await api.post("/v1/transactions/b/init")
        assert response.status_code == 200, response.text
        assert response.json()["producer_id"] not in range(first, first + 21)

    @pytest.mark.parametrize("registered", [False, True])
    async def test_ids_that_are_all_taken_are_a_refusal_that_says_so(
        self, api: httpx.AsyncClient, topic: str, monkeypatch: pytest.MonkeyPatch, registered: bool
    ) -> None:
        await pend(api, {0: 1}, producer_id=70)
        if registered:
            await pend(api, {0: 1}, transactional_id="b", producer_id=71, producer_epoch=32_767)
        monkeypatch.setattr(transaction_store, "drawn_ids", lambda: [70, 70])
        response = await api.post("/v1/transactions/b/init")
        assert_problem(response, Error.COORDINATOR_NOT_AVAILABLE)
        assert "in use" in response.json()["detail"]
        assert response.headers["Retry-After"] == "1"

    async def test_ids_that_are_given_are_exact_as_json_numbers(self, api: httpx.AsyncClient) -> None:
        given = {(await api.post(f"/v1/transactions/t{n}/init")).json()["producer_id"] for n in range(10)}
        assert len(given) == 10
        assert all(0 <= producer_id < 2**53 for producer_id in given)

    async def test_a_producer_out_of_epochs_is_succeeded_under_another_id(
        self, api: httpx.AsyncClient, topic: str
    ) -> None:
        await pend(api, {0: 1}, producer_epoch=32_767)
        fresh = (await api.post("/v1/transactions/t/init")).json()
        assert fresh["producer_id"] != 7
        assert fresh["producer_epoch"] == 0
        assert_problem(await end(api, producer_epoch=32_767), Error.INVALID_PRODUCER_ID_MAPPING)
        assert await fetched(api, stable=True) == {}

    async def test_transactional_ids_may_have_any_characters(self, api: httpx.AsyncClient, topic: str) -> None:
        await pend(api, {0: 1}, transactional_id="zähler 1 %?#")
        assert await ended(api, transactional_id="z%C3%A4hler%201%20%25%3F%23") == (1, 1)
