"""Refused requests in the audit, bounded: a client that sends them as fast as it can must not fill the table.

The first refusal of a kind is recorded at once, for each thing that its request named. A kind is who was refused (or
from which network, if nobody knows who), through which door, what for, and with which error. Those of the same kind
that follow within a minute are counted, and recorded together when the minute is over. A process remembers a bounded
number of kinds; all others are counted as one kind.

Those of the data plane and of Kafka clients are noted behind the answer. A process that is killed loses the counts of
its last minute, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address, ip_address
from typing import Any

import structlog

from kcoord.access.audit.acts import resource_of
from kcoord.access.audit.recording import Act, record
from kcoord.database.pool import Connection
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import BY_CODE, Action, Error, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Caller, Kind

log = structlog.get_logger(__name__)

WINDOW_SECONDS = 60.0
MOST_KNOWN = 500
"""The most kinds of refusals of principals that a process remembers."""
MOST_UNKNOWN = 100
"""The most kinds of refusals of callers without a valid token or account: they cannot crowd out the others."""
MOST_NAMES = 100
"""The most things of one request that get records of their own, as many as a page acts on; others are counted. Callers
without a valid token or account get one record."""
SUBSCRIBER_BITS = 64
"""A subscriber of a provider has at least 2^64 IPv6 addresses; the first half of one identifies it (RFC 6177)."""

Key = tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    act: Act
    caller: Caller
    more: int = 0


class Refusals:
    """The refusals of one process. Use it on the loop of its runtime."""

    def __init__(self, runtime: Runtime, window_seconds: float = WINDOW_SECONDS) -> None:
        self._runtime = runtime
        self._db = runtime.db
        self._window_seconds = window_seconds
        self._seen: dict[Key, _Seen] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._unwritten: list[_Seen] = []
        self._tasks: set[asyncio.Task[None]] = set()
        runtime.on_stop(self.close)

    def note_later(self, act: Act, caller: Caller) -> None:
        """As `note`, behind the answer. While the process starts or ends nothing can be recorded."""
        if self._runtime.loop is None:
            return
        self._spawn(self.note([act], caller))

    async def note(self, acts: Iterable[Act], caller: Caller) -> None:
        """Record what was refused of a request, or count it.

        If Postgres is not available it is recorded later, and logged now.
        """
        begun: dict[Key, set[str]] = {}  # the names of each kind that this request is the first of
        writing: list[_Seen] = []
        for act in acts:
            key, kept, who = self._kind(act, caller)
            if key not in self._seen:
                self._seen[key] = _Seen(kept, replace(who))
                self._timers[key] = asyncio.get_running_loop().call_later(self._window_seconds, self._end, key)
                begun[key] = set()
            names = begun.get(key)
            if names is None or kept.name in names or len(names) == (MOST_NAMES if _is_known(who) else 1):
                self._seen[key].more += 1
            else:
                names.add(kept.name)
                writing.append(_Seen(kept, replace(who), 1))
        if writing:
            await self._write(writing)

    def _kind(self, act: Act, caller: Caller) -> tuple[Key, Act, Caller]:
        """The kind of a refusal, and what is recorded of it: of one kind too many only the door."""
        key = key_of(act, caller)
        if key in self._seen or not self._is_full(caller):
            return key, act, caller
        key = caller.door.value, "too many kinds", str(_is_known(caller))
        return key, Act("request", "path", error="TOO MANY KINDS"), Caller(caller.door, caller.kind)

    def _is_full(self, caller: Caller) -> bool:
        known = _is_known(caller)
        most = MOST_KNOWN if known else MOST_UNKNOWN
        return sum(_is_known(seen.caller) is known for seen in self._seen.values()) >= most

    def _end(self, key: Key) -> None:
        """The minute of a kind is over."""
        del self._timers[key]
        seen = self._seen.pop(key)
        if seen.more or self._unwritten:
            self._spawn(self._write([seen] if seen.more else []))

    async def _write(self, some: list[_Seen]) -> None:
        writing, self._unwritten = [*self._unwritten, *some], []

        async def work(connection: Connection) -> None:
            for one in writing:
                await record(self._db, connection, replace(one.act, count=one.more), one.caller)

        try:
            await self._db.transaction(work, receipt=lambda: None)
        except ProtocolError as error:
            # At most one for each kind, each minute; those of the first minutes of an outage are kept.
            self._unwritten = [*writing, *self._unwritten][: MOST_KNOWN + MOST_UNKNOWN]
            log.warning("refusals_not_recorded_yet", refusals=len(self._unwritten), reason=error.detail)

    def _spawn(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work, name="kcoord-refusal")  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Record what was counted."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        counted = [seen for seen in self._seen.values() if seen.more]
        self._seen.clear()
        if counted or self._unwritten:
            await self._write(counted)


def is_temporary(action: Action) -> bool:
    """Whether an error with this action says that the request may succeed later, or at another node.

    That is an outage, a node that does not coordinate the group, or a full queue: it is no refusal.
    """
    return action in (Action.RETRY, Action.REDISCOVER)


def key_of(act: Act, caller: Caller) -> Key:
    """The kind of a refusal."""
    who = caller.name if _is_known(caller) else network(caller.address)
    return caller.kind.value, who, caller.door.value, act.act, act.error


def network(address: str) -> str:
    """What tells one client from another: its address, its /64 for IPv6 unless that is a mapped IPv4 address."""
    try:
        found = ip_address(address)
    except ValueError:
        return address[:200]  # a Unix socket has none
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    host_bits = 128 - SUBSCRIBER_BITS
    return f"{IPv6Address(int(found) >> host_bits << host_bits)}/{SUBSCRIBER_BITS}"


def _is_known(caller: Caller) -> bool:
    return caller.kind is not Kind.UNKNOWN


SIGN_IN = "sasl_authenticate"

NOT_ALLOWED = frozenset(
    {
        Error.SASL_AUTHENTICATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""Errors that say who may not, rather than what is wrong."""


def is_refusal(act: str, error: ProtocolError) -> bool:
    """Whether an error belongs in the audit: the caller may not do this, or an act was refused for good."""
    return error.error in NOT_ALLOWED or (bool(act) and not is_temporary(error.action))


def note_error(runtime: Runtime, operation: str, error: ProtocolError, act: str = "") -> None:
    """Record that the current caller was refused an operation as a whole. `act`: what it performs, if it does."""
    refused = Act(act or "request", "operation", operation, reason=error.detail, error=error.error.name)
    runtime.get(Refusals).note_later(refused, current.caller())


def note_refusals(runtime: Runtime, act: str, group_id: str, answer: Mapping[str, Any] | None) -> None:
    """Record what an answer to a Kafka client refuses of an act, each name on its own; nothing without an act.

    `group_id`: the group that the request names, "" if its answer names what it is about.
    """
    if not act or answer is None:
        return
    for code, name, reason in _refused(answer, group_id):
        error = BY_CODE.get(code)
        if error is None or not is_temporary(error.value.action):
            refused = Act(act, resource_of(act), name, reason=reason, error=str(code) if error is None else error.name)
            runtime.get(Refusals).note_later(refused, current.caller())


NAMES = ("name", "resource_name", "group_id", "topic_name")
"""The fields of an answer's entries that say what they are about."""


def _refused(answer: Mapping[str, Any], group_id: str) -> Iterator[tuple[int, str, str]]:
    """The errors of an answer, each with the name that it is about and the reason."""
    if answer.get("error_code"):
        yield answer["error_code"], group_id, str(answer.get("error_message") or "")
    for entry in _entries(answer):
        name = next((str(entry[field]) for field in NAMES if entry.get(field)), "")
        if entry.get("error_code"):
            yield entry["error_code"], group_id or name, str(entry.get("error_message") or "")
        for part in _entries(entry):
            if part.get("error_code"):
                yield part["error_code"], group_id, f"topic {name!r}, partition {part.get('partition_index')}"


def _entries(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The mappings in the lists of a part of an answer."""
    for value in part.values():
        if isinstance(value, list | tuple):
            yield from (entry for entry in value if isinstance(entry, Mapping))
