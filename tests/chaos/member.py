"""One member of the chaos: our client as a user would run it, and a history of what happens to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence

import httpx

from kcoord.client import AsyncConsumer, AsyncConsumerRebalanceListener, Record, TopicPartition
from kcoord.client.errors import FatalError, KcoordError
from tests.chaos.history import Writer
from tests.chaos.wire import Recorded
from tests.chaos.workload import COMMIT_S, MemberSpec

PAUSE_S = 1.0
"""After a call that failed, and before a member is replaced."""

LAST_FAILURE = 5
"""How often in a row a poll may fail before the consumer is replaced."""

CLOSE_MS = 5_000


class Work:
    """A source without an end: every COMMIT_S there are some records for each partition."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, int], float] = {}

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> Sequence[Record]:
        """Two records if it is time for them."""
        now = time.monotonic()
        if now < self._due.setdefault((topic, partition), now):
            return ()
        self._due[topic, partition] = now + COMMIT_S
        return [Record(topic, partition, offset + n) for n in range(min(2, max_records))]

    def beginning_offset(self, topic: str, partition: int) -> int:
        """Nothing was ever removed."""
        return 0

    def end_offset(self, topic: str, partition: int) -> int:
        """Of no use: nobody begins at the end."""
        return 2**40


class Told(AsyncConsumerRebalanceListener):
    """Writes down what the listener is told."""

    def __init__(self, member: str, history: Writer) -> None:
        self._member = member
        self._history = history

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """From now on they are its own."""
        self._write("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """The line is written as the last thing: until then they are its own."""
        self._write("revoked", revoked)

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """They are no longer its own."""
        self._write("lost", lost)

    def _write(self, kind: str, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self._history.write(kind, m=self._member, ps=[[tp.topic, tp.partition] for tp in partitions])


class ChaosMember:
    """Polls, commits what it got, and begins again with another consumer if its own fails for good."""

    def __init__(self, spec: MemberSpec, url: str, token: str, history: Writer, life: str) -> None:
        self._spec = spec
        self._url, self._token = url, token
        self._history = history
        self._life = life
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Close it soon."""
        self._stop.set()

    async def run(self) -> None:
        """Until it is stopped."""
        attempt = 0
        while not self._stop.is_set():
            attempt += 1
            await self._one(f"{self._spec.name}#{self._life}.{attempt}")

    async def _one(self, name: str) -> None:
        """One consumer from its beginning to its end."""
        client = httpx.AsyncClient(transport=Recorded(name, self._history))
        settings = self._spec.settings(self._url, self._token)
        consumer = AsyncConsumer(source=Work(), http_client=client, **settings)
        self._history.write("begin", m=name, g=self._spec.group.name, session_s=self._spec.group.session_s)
        try:
            consumer.subscribe([self._spec.group.topic], listener=Told(name, self._history))
            await self._work(name, consumer)
        except KcoordError as error:
            self._history.write("failed", m=name, error=f"{type(error).__name__}: {error}")
        finally:
            try:
                await consumer.close(autocommit=False, timeout_ms=CLOSE_MS)
            finally:
                self._history.write("end", m=name)
        if not self._stop.is_set():
            await asyncio.sleep(PAUSE_S)

    async def _work(self, name: str, consumer: AsyncConsumer) -> None:
        shown, failures = "", 0
        while not self._stop.is_set():
            try:
                records = await consumer.poll(500, max_records=100)
                failures = 0
            except KcoordError as error:
                failures += 1
                if isinstance(error, FatalError) or failures == LAST_FAILURE:
                    raise
                records = {}
                self._history.write("refused", m=name, error=f"poll: {type(error).__name__}: {error}")
                await asyncio.sleep(PAUSE_S)
            if shown != consumer.state.value:
                shown = consumer.state.value
                self._history.write("state", m=name, s=shown)
            if records:
                await self._commit(name, consumer)

    async def _commit(self, name: str, consumer: AsyncConsumer) -> None:
        """Commit; a failure is no reason to stop: the next poll takes part again, the next commit covers this one."""
        try:
            await consumer.commit()
        except FatalError:
            raise
        except KcoordError as error:
            self._history.write("refused", m=name, error=f"commit: {type(error).__name__}: {error}")
