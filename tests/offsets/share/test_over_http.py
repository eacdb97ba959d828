"""Random sequences over HTTP: the answers and the tables against the model, in virtual time, with several members.

Source: share.md 7.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import httpx
import psycopg
import pytest

from kcoord.database.clock import VirtualClock
from offsets.share.store import Rules
from tests.offsets.share.model import Items, LockLost
from tests.offsets.share.test_against_model import MEMBERS, check, state_of, stored
from tests.support.items import GROUP, asked, joined

STEPS = 60
KINDS = ("accept", "gap", "release", "reject", "renew")


class Sequence:
    """A group with one partition, its model, and what was done."""

    def __init__(self, api: httpx.AsyncClient, database: str, clock: VirtualClock, seed: int) -> None:
        self.api = api
        self.clock = clock
        self.random = Random(seed)
        backoff = self.random.choice((0, 1_000))
        limit, locks = self.random.choice((2, 3)), self.random.choice((100, 2_000))
        self.rules = Rules(delivery_limit=limit, most_locks=locks, backoff_ms=backoff, backoff_max_ms=3_000)
        self.items = Items(self.rules)
        self.accepted: set[int] = set()
        self.given_out: list[tuple[int, list[int], str]] = []
        self.epochs: dict[str, int] = {}
        self.database = database

    async def begin(self) -> None:
        settings = {
            "share.delivery.count.limit": self.rules.delivery_limit,
            "share.partition.max.record.locks": self.rules.most_locks,
            "share.release.backoff.ms": self.rules.backoff_ms,
            "share.release.backoff.max.ms": self.rules.backoff_max_ms,
        }
        assert (await self.api.patch(f"{GROUP}/config", json=settings)).status_code == 200
        for member_id in MEMBERS:
            await self.join(member_id)

    @property
    def now(self) -> int:
        return self.clock.now_ms()

    async def join(self, member_id: str) -> None:
        await joined(self.api, member_id)
        self.clock.advance(1_000)  # one target a second
        await self.beat_all(member_id)

    async def beat_all(self, *more: str) -> None:
        named = {"member_epoch": 0, "subscribed_topic_names": ["job"]}
        for member_id in {*self.epochs, *more}:
            answer = await asked(self.api, "share-heartbeat", member_id=member_id, **named)
            self.epochs[member_id] = answer["member_epoch"]

    async def acquire(self) -> None:
        member_id, most = self.random.choice([*self.epochs]), self.random.choice((1, 3, 8, 200))
        lock_ms = self.random.choice((None, None, 15_000))
        end = self.items.end_offset + self.random.choice((-1, 0, 3, 6))
        self.items.end_offset = max(self.items.end_offset, end)
        entries = self.entries(member_id) if self.random.random() < 0.3 else []
        answer = await asked(
            self.api,
            "acquire",
            member_id=member_id,
            member_epoch=self.epochs[member_id],
            max_records=most,
            lock_ms=lock_ms,
            ends=[{"topic": "job", "partition": 0, "end_offset": max(end, 0)}],
            settle=entries,
        )
        self.compare(member_id, entries, answer["settled"])
        expected = self.items.take(most, self.now)
        found: dict[int, list[int]] = {}
        for lock in answer["locks"]:
            offsets = [offset for first, last in lock["offsets"] for offset in range(first, last + 1)]
            count = lock["delivery_count"]
            found[count] = sorted([*found.get(count, []), *offsets])
            self.items.give(lock["lock"], member_id, offsets, count, lock_ms or self.rules.lock_ms, self.now)
            self.given_out.append((lock["lock"], offsets, member_id))
        assert found == expected

    async def settle(self) -> None:
        member_id = self.random.choice(MEMBERS)
        entries = self.entries(member_id)
        if entries:
            answer = await asked(self.api, "settle", member_id=member_id, items=entries)
            self.compare(member_id, entries, answer["items"])

    def entries(self, member_id: str) -> list[dict[str, Any]]:
        """What the member says of its last locks, now and then of those of others; some are over, some settled."""
        mine = [entry for entry in self.given_out[-12:] if entry[2] == member_id or self.random.random() < 0.1]
        found = []
        for lock_id, offsets, _ in self.random.sample(mine, min(len(mine), self.random.randint(1, 3))):
            usual = self.random.choice(("accept", "release", None))
            entry: dict[str, Any] = {"lock": lock_id, "delay_ms": self.random.choice((None, 0, 5_000))}
            for offset in offsets:
                kind = usual or self.random.choice((*KINDS, ""))
                if kind:
                    entry.setdefault(kind, []).append([offset, offset])
            if len(entry) > 2:
                found.append(entry)
        return found

    def compare(self, member_id: str, entries: list[dict[str, Any]], results: list[dict[str, Any]]) -> None:
        """Each entry in its turn."""
        for entry, result in zip(entries, results, strict=True):
            parts = {kind: {first for first, _ in entry.get(kind, [])} for kind in KINDS}
            lock = self.items.locks.get(entry["lock"])
            before = set(lock.held) if lock else set()
            try:
                self.items.settle(entry["lock"], member_id, parts, self.now, entry["delay_ms"])
                expected: tuple[str | None, str | None] = (None, None)
                self.accepted |= (parts["accept"] | parts["gap"]) & before
            except LockLost as lost:
                expected = (lost.why, lost.held_by)
            assert (result["why"], result["held_by"]) == expected
            assert result["error_code"] == (121 if expected[0] else 0)

    async def operate(self) -> None:
        kind = self.random.choice(("release", "reject"))
        offsets = {self.random.randrange(max(self.items.next_offset, 1)) for _ in range(3)}
        body = {"items": [{"topic": "job", "partition": 0, "offsets": [[o, o] for o in sorted(offsets)]}]}
        response = await self.api.post(f"{GROUP}/items/{kind}", json=body)
        count = self.items.operate(kind, offsets, self.now)
        assert response.json() == {f"{kind}d" if kind == "release" else "rejected": count}

    async def replay(self) -> None:
        letters = (await self.api.get(f"{GROUP}/dead-letters?limit=1000")).json()["dead_letters"]
        causes = {offset: dead.cause for offset, dead in self.items.dead.items()}
        assert {letter["offset"]: letter["cause"] for letter in letters} == causes
        chosen = letters[: self.random.randint(0, 3)]
        if chosen:
            body = {"ids": [letter["id"] for letter in chosen]}
            response = await self.api.post(f"{GROUP}/dead-letters/replay", json=body)
            assert response.json() == {"replayed": len(chosen)}
            self.items.replay([letter["offset"] for letter in chosen], self.now)

    async def leave(self) -> None:
        member_id = self.random.choice(MEMBERS)
        if member_id in self.epochs and len(self.epochs) > 1:
            del self.epochs[member_id]
            await asked(self.api, "share-heartbeat", member_id=member_id, member_epoch=-1)
            self.items.leave([member_id], self.now)
            self.clock.advance(1_000)
            await self.beat_all()
        elif member_id not in self.epochs:
            await self.join(member_id)

    async def time(self) -> None:
        self.clock.advance(self.random.choice((1, 5_000, 16_000, 31_000)))
        await self.beat_all()

    def look(self) -> None:
        with psycopg.connect(self.database, autocommit=True) as connection:
            row = connection.execute("select id from offsets_sharepartition").fetchone()
            assert row is not None
            assert stored(connection, row[0]) == state_of(self.items)
        check(self.items, self.accepted)


@pytest.mark.parametrize("seed", range(4))
async def test_answers_and_tables_are_what_the_model_says(
    api: httpx.AsyncClient, job: str, database: str, clock: VirtualClock, seed: int
) -> None:
    await play(Sequence(api, database, clock, seed))


@pytest.mark.whole("the same with more seeds")
@pytest.mark.parametrize("seed", range(100, 106))
async def test_more_sequences(api: httpx.AsyncClient, job: str, database: str, clock: VirtualClock, seed: int) -> None:
    await play(Sequence(api, database, clock, seed))


async def play(sequence: Sequence) -> None:
    await sequence.begin()
    acts = (sequence.acquire, sequence.settle, sequence.operate, sequence.replay, sequence.leave, sequence.time)
    for _ in range(STEPS):
        (act,) = sequence.random.choices(acts, (30, 40, 4, 4, 4, 10))
        await act()
        await asyncio.to_thread(sequence.look)
