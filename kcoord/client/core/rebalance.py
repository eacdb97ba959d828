"""One rebalance of one member: join, assign as the leader, sync; on its own lane.

The user's lane prepares a rebalance (commits, revokes) and finishes it (assigns), inside `poll`. Differs from Kafka:
in between the user may poll as briefly as it likes, or not at all for a while, without the member missing its turn.
Source: classic.md 2, 3 and 11.2; http-api.md "Waiting".
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import wire
from kcoord.client.core.backoff import RETRY_AFTER_LIMIT_MS, Backoff
from kcoord.client.core.catalogue import partition_counts
from kcoord.client.core.condition import Condition
from kcoord.client.core.effects import Lanes, ask
from kcoord.client.core.link import Link
from kcoord.client.core.membership import Generation, Membership, Step
from kcoord.client.core.reactions import Api
from kcoord.client.core.strategies import Owned, Strategies, topics_of
from kcoord.client.core.timers import HeartbeatTimer
from kcoord.client.errors import IllegalStateError, InconsistentGroupProtocolError, error_of
from kcoord.client.types import TopicPartition
from kcoord.protocol.errors import Error, ProtocolError

log = logging.getLogger("kcoord.client")

PROTOCOL_TYPE = "consumer"
AT_ONCE_LIMIT = 5
"""How many consecutive requests may be sent without a pause."""

REASON_LIMIT = 255
"""Maximum length of a reason, in characters (KIP-800)."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The member is part of a generation and knows its partitions."""

    generation: Generation
    partitions: frozenset[TopicPartition]
    user_data: bytes = b""
    led: Sequence[str] = ()
    counts: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The user must be notified."""

    error: Exception


@dataclass(frozen=True, slots=True)
class StartOver:
    """The member's generation was lost meanwhile: what it still reads must be reported lost before it joins again."""


Outcome = Joined | Failed | StartOver


@dataclass(frozen=True, slots=True)
class Going:
    """What a member takes into a rebalance. `owned` is what it continues to read meanwhile."""

    topics: frozenset[str]
    owned: Owned
    remembered: Owned
    reason: str


@dataclass(frozen=True, slots=True)
class Shared:
    """State shared by the lanes of one consumer."""

    config: ConsumerConfig
    link: Link
    strategies: Strategies
    condition: Condition
    lanes: Lanes
    membership: Membership
    timer: HeartbeatTimer


class Rebalance:
    """Joins and syncs until the member is stable, its generation is lost, or something fatal happens.

    `outcome` is set, which is condition, when it is over.
    """

    def __init__(self, shared: Shared, going: Going) -> None:
        self._shared = shared
        self._going = going
        self._stopped = False
        self._departures = shared.membership.departures
        self._at_once = 0
        self._backoff = Backoff(shared.config.retry_backoff_ms, shared.config.retry_backoff_max_ms)
        self.outcome: Outcome | None = None
        self.ended = False

    @property
    def topics(self) -> frozenset[str]:
        """The subscription it joins with."""
        return self._going.topics

    def start(self) -> None:
        """Start: the member is joining from now on."""
        if not self._must_start_over():
            self._shared.membership.begin_join()
        self._shared.lanes.start(f"kcoord-join-{self._shared.config.group_id}", self._run())

    def stop(self) -> None:
        """Send nothing more; the outcome no longer matters."""
        self._stopped = True
        self._shared.condition.notify_all()

    async def _run(self) -> None:
        outcome: Outcome = Failed(IllegalStateError("the rebalance was stopped: close this consumer"))
        try:
            outcome = await self._rejoin()
        except ProtocolError as failure:
            outcome = Failed(error_of(failure))
        except Exception as error:  # noqa: BLE001 - a custom assignor may raise anything; poll() raises it
            outcome = Failed(error)
        finally:
            self.outcome = outcome
            self.ended = True
            self._shared.condition.notify_all()

    async def _rejoin(self) -> Outcome:
        reason = self._going.reason
        while True:
            if self._must_start_over():
                return StartOver()
            sent = self._shared.membership.begin_join()
            try:
                answer = await self._join(sent, reason)
            except ProtocolError as failure:
                await self._react(Api.JOIN, failure, sent)
                continue
            outcome = await self._joined(answer, sent)
            if outcome is not None:
                return outcome

    def _must_start_over(self) -> bool:
        lost = bool(self._going.owned.partitions) and not self._shared.membership.generation.known
        return lost or self._over()

    def _over(self) -> bool:
        """The member left in the meantime (the user closed, unsubscribed or does not poll)."""
        return self._stopped or not self._stays()

    def _stays(self) -> bool:
        return self._shared.membership.departures == self._departures

    async def _join(self, sent: Generation, reason: str) -> wire.JoinAnswer:
        config = self._shared.config
        going = self._going
        owned = Owned(going.owned.partitions, sent.generation_id)
        topics = sorted(going.topics)
        protocols = await ask(self._shared.strategies.protocols, topics, owned, going.remembered, config.client_rack)
        body = {
            "member_id": sent.member_id,
            "group_instance_id": config.group_instance_id,
            "client_id": config.client_id,
            "session_timeout_ms": config.session_timeout_ms,
            "rebalance_timeout_ms": config.max_poll_interval_ms,
            "protocol_type": PROTOCOL_TYPE,
            "protocols": protocols,
            "reason": reason[:REASON_LIMIT],
            "max_wait_ms": config.max_wait_ms,
        }
        return await self._shared.link.call("join", body, wire.JoinAnswer, held_ms=config.max_wait_ms)

    async def _joined(self, answer: wire.JoinAnswer, sent: Generation) -> Outcome | None:
        """The join succeeded: sync. None: join again."""
        if answer.protocol_type not in (None, PROTOCOL_TYPE):
            raise InconsistentGroupProtocolError(
                f"the group's protocol type is {answer.protocol_type!r}, this member's is {PROTOCOL_TYPE!r}"
            )
        generation = Generation(answer.generation_id, answer.member_id, answer.protocol_name)
        is_leader = answer.leader == answer.member_id
        if self._over() or not self._shared.membership.joined(generation, is_leader, sent):
            return None
        self._at_once = 0
        self._backoff.reset()
        self._shared.timer.reset(self._shared.condition.clock())
        self._shared.condition.notify_all()
        log.info(
            "group %s: joined generation %d as %s%s, assignor %s",
            self._shared.config.group_id,
            generation.generation_id,
            generation.member_id,
            " (leader)" if is_leader else "",
            generation.protocol_name,
        )
        if not is_leader:
            return await self._synced(generation, [], (), {})
        return await self._lead(answer, generation)

    async def _lead(self, answer: wire.JoinAnswer, generation: Generation) -> Outcome | None:
        topics = topics_of(answer.members)
        counts = await self._counts(topics, generation)
        if counts is None:
            return None
        assignments: list[dict[str, Any]] = []
        if not answer.skip_assignment:
            assign = self._shared.strategies.assign
            assigned = await ask(assign, generation.protocol_name or "", answer.members, counts)
            assignments = [
                {"member_id": member_id, "partitions": {topic: list(ps) for topic, ps in partitions.items() if ps}}
                for member_id, partitions in assigned.items()
            ]
        return await self._synced(generation, assignments, topics, counts)

    async def _counts(self, topics: Sequence[str], generation: Generation) -> dict[str, int] | None:
        """The partition counts, requested for as long as the group waits for its leader. None: join again."""
        while not self._stopped:
            try:
                return await partition_counts(self._shared.link, topics)
            except ProtocolError as failure:
                if not failure.error.value.retriable:
                    raise
                log.warning("partition counts could not be looked up: %s", failure)
                await self._wait(self._backoff.next_ms(failure.retry_after_ms))
            if self._shared.membership.generation != generation:
                return None
        return None

    async def _synced(
        self,
        sent: Generation,
        assignments: Sequence[Mapping[str, Any]],
        led: Sequence[str],
        counts: dict[str, int],
    ) -> Outcome | None:
        """Sync until there is an answer. None: join again."""
        config = self._shared.config
        body = {
            "member_id": sent.member_id,
            "generation_id": sent.generation_id,
            "group_instance_id": config.group_instance_id,
            "protocol_type": PROTOCOL_TYPE,
            "protocol_name": sent.protocol_name,
            "assignments": assignments,
            "max_wait_ms": config.max_wait_ms,
        }
        while not self._stopped:
            try:
                answer = await self._shared.link.call("sync", body, wire.SyncAnswer, held_ms=config.max_wait_ms)
            except ProtocolError as failure:
                if await self._react(Api.SYNC, failure, sent) in (Step.RESEND, Step.RETRY):
                    continue
                return None
            partitions, user_data = _assignment(answer, sent)
            if self._over() or not self._shared.membership.synced(sent):
                return None
            return Joined(sent, partitions, user_data, led, counts)
        return None

    async def _react(self, api: Api, failure: ProtocolError, sent: Generation) -> Step:
        """Change the state according to `failure`, wait if required. Raises `failure` if it is fatal."""
        if self._over():
            if failure.error is Error.MEMBER_ID_REQUIRED and self._stays():
                # If known, the id can be given back; if unknown, the group would wait for it.
                self._shared.membership.failed(api, failure, sent)
            return Step.JOIN
        step = self._shared.membership.failed(api, failure, sent)
        self._shared.condition.notify_all()
        if step is Step.RAISE:
            raise failure
        if step is not Step.RESEND:
            log.info("group %s: %s: %s: %s", self._shared.config.group_id, api.value, failure.error.name, failure)
        await self._pause(step, failure.retry_after_ms)
        return step

    async def _pause(self, step: Step, retry_after_ms: int | None) -> None:
        """Wait as long as `step` requires. "At once" is taken literally, but not indefinitely: a server that
        repeatedly answers at once with the same failure is given time.
        """
        self._at_once = 0 if step in (Step.RETRY, Step.JOIN_LATER) else self._at_once + 1
        if self._at_once in range(1, AT_ONCE_LIMIT + 1):
            delay_ms = float(min(retry_after_ms or 0, RETRY_AFTER_LIMIT_MS))
        else:
            delay_ms = self._backoff.next_ms(retry_after_ms)
        await self._wait(delay_ms)

    async def _wait(self, delay_ms: float) -> None:
        await self._shared.condition.pause(delay_ms / 1000, lambda: self._stopped)


def _assignment(answer: wire.SyncAnswer, sent: Generation) -> tuple[frozenset[TopicPartition], bytes]:
    """The partitions and user data of a sync answer.

    Differs from Kafka: a member that its leader left out (no bytes at all) has no partitions, instead of failing.
    """
    for name, theirs, ours in (
        ("type", answer.protocol_type, PROTOCOL_TYPE),
        ("name", answer.protocol_name, sent.protocol_name),
    ):
        if theirs is not None and theirs != ours:
            raise InconsistentGroupProtocolError(f"the sync answered protocol {name} {theirs!r}, the join {ours!r}")
    if answer.partitions is None and answer.assignment:
        raise InconsistentGroupProtocolError("the leader's assignment is not a ConsumerProtocol assignment")
    try:
        user_data = base64.b64decode(answer.user_data, validate=True) if answer.user_data else b""
    except binascii.Error as error:
        raise InconsistentGroupProtocolError("the user data of the assignment is not base64") from error
    chosen = {TopicPartition(topic, p) for topic, partitions in (answer.partitions or {}).items() for p in partitions}
    return frozenset(chosen), user_data
