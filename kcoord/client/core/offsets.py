"""Committing offsets and reading committed ones.

Source: classic.md 11.2; consumer.md 7 and 11.4; http-api.md 2.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import wire
from kcoord.client.core.backoff import Backoff
from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import ask
from kcoord.client.core.link import Link
from kcoord.client.core.membership import Generation
from kcoord.client.core.subscription import SubscriptionState
from kcoord.client.core.worker import Job, Worker
from kcoord.client.errors import ClientTimeoutError, KcoordError, error_of
from kcoord.client.types import OffsetAndMetadata, Offsets, TopicPartition
from kcoord.protocol.errors import BY_CODE, Error, ProtocolError

T = TypeVar("T")

CommitCallback = Callable[[Offsets, KcoordError | None], Any]
"""Called with the offsets and None, or the error."""

Committed = dict[TopicPartition, OffsetAndMetadata | None]

Identity = Callable[[], Generation]
"""The identity a commit is sent with, read again for each attempt. Raises KcoordError once it cannot succeed."""

log = logging.getLogger("kcoord.client")


class Committer(Protocol):
    """The member on whose behalf offsets are committed and fetched: of either protocol, or none."""

    def begin_commit(self) -> Identity:
        """Begin a commit. Raises RebalanceInProgressError, CommitFailedError where it cannot succeed."""

    def commit_failed(self, failure: ProtocolError, sent: Generation) -> KcoordError | None:
        """A commit sent as `sent` failed: the error for the user; None: another attempt may succeed."""

    def fetches_as(self) -> Generation | None:
        """Who fetches committed offsets; None: no member."""


class LoneReader:
    """The committer of a consumer outside any group: commits carry no member and generation -1."""

    def begin_commit(self) -> Identity:
        """Always without a member."""
        return Generation

    def commit_failed(self, failure: ProtocolError, sent: Generation) -> KcoordError | None:
        """No membership to change."""
        return None if may_pass(failure) else error_of(failure)

    def fetches_as(self) -> Generation | None:
        """No member."""
        return None


class OutdatedMember(ProtocolError):
    """A fetch of committed offsets was refused because of the member's identity when it was sent.

    It counts as STALE_MEMBER_EPOCH: the heartbeat finds out the member's current state, and another attempt is sent
    with that.
    """

    def __init__(self, failure: ProtocolError) -> None:
        super().__init__(Error.STALE_MEMBER_EPOCH, failure.detail, retry_after_ms=failure.retry_after_ms)


@dataclass(frozen=True, slots=True)
class Found:
    """Committed offsets, and the ids of the topics that the service answered them for, as far as it told them."""

    offsets: Committed
    topic_ids: Mapping[TopicPartition, str]


class OffsetManager:
    """Sends commits in the order they were made, and fetches committed offsets. Used by the user's lane.

    Commits name the topic by the id that the partition's position belongs to, so that none of them counts for another
    topic of that name (KIP-848; http-api.md 2).

    `check` is called while waiting: it raises when `wakeup()` was called. `member` is the committer.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        link: Link,
        condition: Condition,
        worker: Worker,
        subscription: SubscriptionState,
        check: Callable[[], None],
    ) -> None:
        self._config = config
        self._link = link
        self._condition = condition
        self._worker = worker
        self._subscription = subscription
        self._check = check
        self._finished: deque[tuple[CommitCallback, Offsets, Job[None]]] = deque()
        self._lost: wire.LostCommits | None = None
        self._is_lost = False
        self._restoring: Job[None] | None = None
        self._restore_at = 0.0
        self.committed_again = 0
        self.member: Committer = LoneReader()

    async def commit(self, offsets: Offsets, timeout_ms: int, *, wakeable: bool = True) -> None:
        """Commit and wait for the answer; transient failures are retried until `timeout_ms` have passed.

        Parameters: `wakeable` is False where a WakeupError would leave a rebalance half done.

        Raises CommitFailedError, RebalanceInProgressError, ClientTimeoutError, and the other errors in the tables.
        """
        if not offsets:
            return
        identity = self.member.begin_commit()
        topic_ids = self._subscription.topic_ids(offsets)
        await self._until(timeout_ms, lambda: self._send(offsets, topic_ids, identity()), wakeable)

    def sink_offsets(self, offsets: Offsets) -> list[dict[str, Any]]:
        """What `kcoord.commit_offsets` takes: the name of each topic, and its id if it is known."""
        names = {tp: {"topic": tp.topic} for tp in offsets}
        for tp, topic_id in self._subscription.topic_ids(offsets).items():
            names[tp]["topic_id"] = topic_id
        return [{**names[tp], **_partition(tp.partition, committed)} for tp, committed in sorted(offsets.items())]

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Commit without waiting and without a retry; `callback` runs in a later call of the user."""
        if not offsets:
            return
        done: Job[None]
        try:
            sent = self.member.begin_commit()()
        except KcoordError as error:
            done = Job(_unsent)
            done.fail(error)
        else:
            topic_ids = self._subscription.topic_ids(offsets)
            done = self._worker.submit(lambda: self._send(offsets, topic_ids, sent))
        self._finished.append((callback or _log_failure, offsets, done))

    async def run_callbacks(self) -> None:
        """Invoke the callbacks of finished asynchronous commits, in order. What the service lost is committed again."""
        self._begin_restoring()
        while self._finished and self._finished[0][2].done:
            callback, offsets, done = self._finished.popleft()
            failure = done.error
            if failure is None:
                await ask(callback, offsets, None)
            elif isinstance(failure, ProtocolError):
                await ask(callback, offsets, error_of(failure))
            elif isinstance(failure, KcoordError):
                await ask(callback, offsets, failure)
            else:
                raise failure

    async def fetch(self, partitions: Iterable[TopicPartition]) -> Found:
        """One attempt to read the committed offsets; None where nothing is committed. Raises ProtocolError."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(set(partitions)):
            topics.setdefault(topic, []).append(partition)
        body: dict[str, Any] = {
            "topics": [{"name": topic, "partitions": numbers} for topic, numbers in topics.items()],
            "require_stable": True,
        }
        answer = await self._fetch(body, self.member.fetches_as())
        self._note_lost(answer.committed_offsets_lost)
        _raise_first((None, 0, answer.error_code) for _ in (0,))
        found: Committed = {TopicPartition(topic, p): None for topic, numbers in topics.items() for p in numbers}
        topic_ids = {topic.name: topic.topic_id for topic in answer.topics if topic.topic_id}
        _raise_first((t.name, p.partition, p.error_code) for t in answer.topics for p in t.partitions)
        for topic_answer in answer.topics:
            for p in topic_answer.partitions:
                if p.committed_offset >= 0:
                    epoch = -1 if p.committed_leader_epoch is None else p.committed_leader_epoch
                    found[TopicPartition(topic_answer.name, p.partition)] = OffsetAndMetadata(
                        p.committed_offset, p.metadata or "", epoch
                    )
        return Found(found, {tp: topic_ids[tp.topic] for tp in found if tp.topic in topic_ids})

    def fetch_later(self, partitions: Iterable[TopicPartition]) -> Job[Found]:
        """`fetch` on the worker, after the commits made before."""
        wanted = list(partitions)
        return self._worker.submit(lambda: self.fetch(wanted))

    async def committed(self, partitions: Iterable[TopicPartition], timeout_ms: int) -> Committed:
        """The committed offsets; transient failures are retried until `timeout_ms` have passed."""
        wanted = list(partitions)
        if not wanted:
            return {}
        found = await self._until(timeout_ms, lambda: self.fetch(wanted))
        for partition, topic_id in found.topic_ids.items():
            state = self._subscription.get(partition)
            if state is not None and state.topic_id is None and not state.renewed:
                # A program that reads without a source begins here: its commits are those of this topic.
                state.topic_id = topic_id
        return found.offsets

    async def _fetch(self, body: dict[str, Any], member: Generation | None) -> wire.FetchAnswer:
        if member is None:
            return await self._link.call("offsets/fetch", body, wire.FetchAnswer)
        body |= {"member_id": member.member_id, "member_epoch": member.generation_id}
        try:
            return await self._link.call("offsets/fetch", body, wire.FetchAnswer)
        except ProtocolError as failure:
            if failure.error in _OUTDATED:
                raise OutdatedMember(failure) from failure
            raise

    async def _send(self, offsets: Offsets, topic_ids: Mapping[TopicPartition, str], sent: Generation) -> None:
        """One commit request. Raises ProtocolError where another attempt may succeed, else KcoordError."""
        body = {
            "generation_id_or_member_epoch": sent.generation_id,
            "member_id": sent.member_id,
            "group_instance_id": self._config.group_instance_id if sent.member_id else None,
            "topics": _topics(offsets, topic_ids),
        }
        try:
            answer = await self._link.call("offsets/commit", body, wire.CommitAnswer)
            self._note_gone(answer)
            self._note_lost(answer.committed_offsets_lost)
            _raise_first((t.name or t.topic_id, p.partition, p.error_code) for t in answer.topics for p in t.partitions)
            self._subscription.note_acknowledged(offsets)
        except ProtocolError as failure:
            told = self.member.commit_failed(failure, sent)
            if told is None:
                raise
            raise told from failure

    def _note_gone(self, answer: wire.CommitAnswer) -> None:
        unknown = Error.UNKNOWN_TOPIC_ID.code
        gone = {t.topic_id for t in answer.topics if t.topic_id and any(p.error_code == unknown for p in t.partitions)}
        if gone:
            self._subscription.gone |= gone
            self._condition.notify_all()

    def _note_lost(self, lost: wire.LostCommits | None) -> None:
        if lost is None or lost == self._lost:
            return
        self._lost, self._is_lost = lost, True
        log.warning(
            "group %s: the service lost commits of %s to %s in a fail-over: what it no longer has is committed again",
            self._config.group_id,
            lost.since,
            lost.until,
        )
        self._condition.notify_all()

    def _begin_restoring(self) -> None:
        """In the user's lane, which knows whether the member may commit now; once more if it failed, after a pause."""
        is_running = self._restoring is not None and not self._restoring.done
        if not self._is_lost or is_running or self._condition.clock() < self._restore_at:
            return
        try:
            identity = self.member.begin_commit()
        except KcoordError:
            return
        self._restore_at = self._condition.clock() + self._config.retry_backoff_max_ms / 1000
        self._restoring = self._worker.submit(lambda: self._restore(identity()))

    async def _restore(self, sent: Generation) -> None:
        """Commit again what was acknowledged of this member's partitions, where nothing is committed now, or less."""
        lost, known = self._lost, self._subscription.acknowledged()
        found = (await self.fetch(known)).offsets if known else {}
        behind = {tp: kept for tp, kept in known.items() if (now := found[tp]) is None or now.offset < kept.offset}
        if behind:
            await self._send(behind, self._subscription.topic_ids(behind), sent)
            self.committed_again += len(behind)
        self._is_lost = self._lost != lost

    async def patiently(self, task: Callable[[], Awaitable[T]], timeout_ms: int) -> T:
        """Run a look-up on the worker; transient failures are retried until `timeout_ms` have passed."""
        return await self._until(timeout_ms, task)

    async def _until(self, timeout_ms: int, task: Callable[[], Awaitable[T]], wakeable: bool = True) -> T:
        """Run `task` on the worker repeatedly until it succeeds, fails permanently, or the time is over."""
        config = self._config
        deadline = self._condition.clock() + timeout_ms / 1000
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        check = self._check if wakeable else _no_check
        while True:
            job = self._worker.submit(task)
            try:
                await self._condition.wait_for(lambda job=job: job.done, deadline, check)  # type: ignore[misc]
            finally:
                # A caller that gave up, or was cancelled, is not told how it ended.
                job.drop()
            await self.run_callbacks()
            if not job.done:
                raise ClientTimeoutError(f"no answer within {timeout_ms} ms")
            failure = job.error
            if failure is None:
                return job.result()
            if not isinstance(failure, ProtocolError):
                raise failure
            if not may_pass(failure):
                raise error_of(failure)
            resume_at = self._condition.clock() + backoff.next_ms(failure.retry_after_ms) / 1000
            if resume_at >= deadline:
                raise ClientTimeoutError(f"not done within {timeout_ms} ms: {failure}") from failure
            log.info("group %s: %s: %s; trying again", config.group_id, failure.error.name, failure)
            await self._condition.wait_for(lambda: False, resume_at, check)


async def _unsent() -> None:
    """The task of a commit that was refused before it was sent."""


def _no_check() -> None:
    return None


def _partition(partition: int, committed: OffsetAndMetadata) -> dict[str, Any]:
    """Without what has its default, which the service would read and compare."""
    found: dict[str, Any] = {"partition": partition, "committed_offset": committed.offset}
    if committed.leader_epoch != -1:
        found["committed_leader_epoch"] = committed.leader_epoch
    if committed.metadata:
        found["committed_metadata"] = committed.metadata
    return found


def _topics(offsets: Offsets, topic_ids: Mapping[TopicPartition, str]) -> list[dict[str, Any]]:
    topics: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for tp, committed in sorted(offsets.items()):
        key = ("topic_id", topic_ids[tp]) if tp in topic_ids else ("name", tp.topic)
        topics.setdefault(key, []).append(_partition(tp.partition, committed))
    return [{key: named, "partitions": partitions} for (key, named), partitions in topics.items()]


def _raise_first(items: Iterable[tuple[str | None, int, int]]) -> None:
    """Raise the error of the first item that has one."""
    for topic, partition, code in items:
        if code:
            error = BY_CODE.get(code, Error.UNKNOWN_SERVER_ERROR)
            where = f"{topic}-{partition}: " if topic is not None else ""
            raise ProtocolError(error, f"{where}{error.value.help}")


_PASSING = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.REQUEST_TIMED_OUT,
        Error.UNSTABLE_OFFSET_COMMIT,
        Error.THROTTLING_QUOTA_EXCEEDED,
        Error.STALE_MEMBER_EPOCH,
    }
)

_OUTDATED = frozenset({Error.UNKNOWN_MEMBER_ID, Error.FENCED_MEMBER_EPOCH, Error.STALE_MEMBER_EPOCH})


def may_pass(failure: ProtocolError) -> bool:
    """Another attempt may succeed."""
    return failure.error in _PASSING


def _log_failure(offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KcoordError | None) -> None:
    if error is not None:
        log.warning("the commit of %s failed: %s", ", ".join(f"{tp}={o.offset}" for tp, o in offsets.items()), error)
