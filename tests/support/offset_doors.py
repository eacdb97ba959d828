"""Commits and fetches for `tests.support.doors`: offsets that are made up, by lanes that answer when they are told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from groups.core.model.types import Topic, TopicView
from groups.topics import TopicService
from kcoord.config import Config
from kcoord.process.off_loop import Later
from kcoord.protocol.errors import Error, ProtocolError
from offsets.commits.service import OffsetService
from offsets.core.commit import Commit
from offsets.core.types import FetchedOffset, OffsetCommitReply, OffsetFetch, OffsetFetchReply
from tests.support.doors import CLOSE, DEADLINE, Door, heartbeat

TOPIC = Topic("00000000-0000-0000-0000-000000000001", "t", 8)
VIEW = TopicView(3, {TOPIC.name: TOPIC}, {TOPIC.topic_id: TOPIC})
DOWN = ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "no database", retry_after_ms=2_500)


class Topics:
    """A catalogue that is known."""

    def known(self) -> TopicView:
        return VIEW

    async def view(self) -> TopicView:
        return VIEW

    async def find(self, **_: Any) -> TopicView:
        return VIEW

    async def current(self) -> TopicView:
        return VIEW


@dataclass(slots=True)
class Offsets:
    """Takes commits of members by their names: `ok…` and `later…` succeed, `down…` fail, `broken…` meet a bug, the
    catalogue changes under those of `slow…`, and others are not known. They are written when `may_land` is set, as it
    is at first.
    """

    metadata_limit: int = 100
    begun: list[Commit] = field(default_factory=list)
    awaited: list[Any] = field(default_factory=list)
    again: set[str] = field(default_factory=set)
    """Members whose commit is looked up again, because the catalogue changed; the next one is in `awaited`."""
    fetched: list[OffsetFetch] = field(default_factory=list)
    may_land: asyncio.Event = field(default_factory=asyncio.Event)
    seen: Callable[[], object] = lambda: None
    """Called whenever a commit is begun, and whenever one ends off the lane."""

    def __post_init__(self) -> None:
        self.may_land.set()

    def write(self, plain: Commit) -> asyncio.Future[OffsetCommitReply | None]:
        is_again = plain.member_id in self.again
        (self.awaited if is_again else self.begun).append(plain)
        if plain.member_id.startswith("slow"):
            self.again ^= {plain.member_id}
        self.seen()
        written: asyncio.Future[OffsetCommitReply | None] = asyncio.get_running_loop().create_future()
        self._soon(lambda: self._write(plain.member_id, written, is_again=is_again))
        return written

    def _write(self, member_id: str, written: asyncio.Future[OffsetCommitReply | None], *, is_again: bool) -> None:
        if written.done():
            return
        if member_id.startswith("down"):
            written.set_exception(DOWN)
        elif member_id.startswith("broken"):
            written.set_exception(RuntimeError("broken"))
        elif member_id.startswith("slow") and not is_again:
            written.set_result(None)
        elif member_id.startswith(("ok", "later", "slow")):
            written.set_result(OffsetCommitReply(Error.NONE, DEADLINE))
        else:
            written.set_result(OffsetCommitReply(Error.UNKNOWN_MEMBER_ID, detail="who is that?"))

    def _soon(self, then: Callable[[], None]) -> None:
        async def when_told() -> None:
            await self.may_land.wait()
            then()

        task = asyncio.get_running_loop().create_task(when_told())
        TASKS.add(task)
        task.add_done_callback(TASKS.discard)

    def fetch(self, fetch: OffsetFetch) -> Awaitable[OffsetFetchReply]:
        if fetch.require_stable or not any(partitions for _, partitions in fetch.topics or ()):
            return self._fetch_alone(fetch)
        self.fetched.append(fetch)
        found: asyncio.Future[OffsetFetchReply] = asyncio.get_running_loop().create_future()
        reply = OffsetFetchReply(Error.NONE, tuple(OFFSETS))
        if fetch.member_id == "none":
            self._soon(lambda: found.set_exception(ProtocolError(Error.UNKNOWN_MEMBER_ID, "who is that?")))
        else:
            self._soon(lambda: found.set_result(reply))
        return Later(found, lambda reply: reply)

    async def _fetch_alone(self, fetch: OffsetFetch) -> OffsetFetchReply:
        await asyncio.sleep(0)
        self.awaited.append(fetch)
        return OffsetFetchReply(Error.NONE, tuple(OFFSETS if fetch.topics is None else ()))


TASKS: set[asyncio.Task[None]] = set()
OFFSETS = [FetchedOffset("t", 1, 7, 2, "m", 1_700_000_000_000)]


def offset_door(**settings: Any) -> tuple[Door, Offsets]:
    """A door whose offsets are made up."""
    door = Door(Config(settings))
    return door, give_offsets(door)


def give_offsets(door: Door) -> Offsets:
    """Make up the offsets of a door."""
    offsets = Offsets()
    door.runtime._services |= {OffsetService: offsets, TopicService: Topics()}
    return offsets


def commit(
    member: str,
    *headers: bytes,
    topic: bytes = b'"name":"t"',
    partitions: bytes = b'[{"partition":1,"committed_offset":7}]',
    group: bytes = b"g",
) -> bytes:
    """A commit, as members send it."""
    topics = b'[{%b,"partitions":%b}]' % (topic, partitions)
    body = b'{"member_id":"%b","generation_id_or_member_epoch":1,"topics":%b}' % (member.encode(), topics)
    return heartbeat(body, *headers, group=group, call=b"offsets/commit")


def fetch(*headers: bytes, more: bytes = b"", topics: bytes = b'[{"name":"t","partitions":[1,2]}]') -> bytes:
    """A fetch."""
    return heartbeat(b'{"topics":%b%b}' % (topics, more), *headers, call=b"offsets/fetch")


LAST_COMMIT = commit("ok-last", CLOSE)


def request_ids(read: bytes) -> list[bytes]:
    """Those of the answers, in order."""
    return re.findall(rb"x-request-id: (\S+)\r\n", read)
