"""Which server coordinates the group, and calls to it. Source: FindCoordinator; http-api.md 2."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar
from urllib.parse import quote

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import wire
from kcoord.client.core.condition import Condition
from kcoord.client.core.http import Disconnected, Http
from kcoord.client.core.servers import Servers, named_coordinator, permitted
from kcoord.protocol.errors import BY_CODE, Error, ProtocolError

T = TypeVar("T")

log = logging.getLogger("kcoord.client")

REDISCOVER = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.REQUEST_TIMED_OUT})
"""Errors after which the coordinator is looked up again (classic.md 11.2)."""

LEAST_AGE_S = 1.0
"""The coordinator is looked up again at most this often while it answers, however small metadata_max_age_ms is."""


class Link:
    """Calls to the group's coordinator; finds it, and finds it again after `forget`.

    The servers of the `url` setting are asked in an order that differs from client to client; one that does not answer
    is skipped. A NOT_COORDINATOR that names the coordinator is followed, once for each request. After a disconnect the
    coordinator is looked up after a random delay, so that the clients of a server that died do not all ask at once.

    Differs from Kafka: any node may serve any group (in the default routing), so an address that the service announces
    but this client cannot reach (behind a proxy, say) is replaced by the server that announced it. And a client whose
    node is no longer the coordinator may stay. It prefers the coordinator: about every metadata_max_age_ms it looks
    whether that is another node, and moves if that one answers.

    Parameters: `rng` decides the order and the delays.
    """

    def __init__(self, config: ConsumerConfig, http: Http, condition: Condition, rng: Random | None = None) -> None:
        self._config = config
        self._http = http
        self._condition = condition
        self._rng = rng or Random()  # noqa: S311 - not for secrets
        self._servers = Servers(config.urls, config.retry_backoff_max_ms / 1000, self._rng)
        self._finding = False
        self._coordinator: str | None = None
        self._search_at = -math.inf
        self._look_at = math.inf
        self._away = False

    @property
    def coordinator(self) -> str | None:
        """The address of the coordinator, None while unknown."""
        return self._coordinator

    def forget(self, coordinator: str | None = None) -> None:
        """The coordinator must be found again (if it is still `coordinator`, where given)."""
        if coordinator is None or coordinator == self._coordinator:
            self._coordinator = None

    async def call(
        self, path: str, body: Mapping[str, Any], kind: type[T], *, held_ms: int = 0, timeout_ms: int | None = None
    ) -> T:
        """POST to `/v1/groups/{group}/{path}` at the coordinator. Raises ProtocolError, Disconnected."""
        group = quote(self._config.group_id, safe="")
        return await self._at_coordinator(
            lambda base: self._http.post(
                f"{base}/v1/groups/{group}/{path}", body, kind, held_ms=held_ms, timeout_ms=timeout_ms
            )
        )

    async def topic(self, topic: str) -> wire.TopicAnswer | None:
        """What the catalogue says of `topic`; None if it does not exist (or may not be seen). Raises ProtocolError."""
        path = f"/v1/topics/{quote(topic, safe='')}"
        try:
            return await self._at_coordinator(lambda base: self._http.get(base + path, wire.TopicAnswer))
        except ProtocolError as failure:
            if failure.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise

    async def report_watermarks(
        self, topic: str, watermarks: Sequence[wire.ReportedWatermark], *, truncated: bool
    ) -> Sequence[wire.ReportedWatermark]:
        """Say where the logs of partitions of `topic` begin and end; returns what counts then.

        Earlier ends than before count only if the logs were `truncated`. Raises ProtocolError, Disconnected.
        """
        path = f"/v1/topics/{quote(topic, safe='')}/watermarks"
        body = {"partitions": watermarks, **({"truncated": True} if truncated else {})}
        answer = await self._at_coordinator(lambda base: self._http.post(base + path, body, wire.ReportAnswer))
        return answer.partitions

    async def _at_coordinator(self, request: Callable[[str], Awaitable[T]]) -> T:
        base = await self.find()
        try:
            return await request(base)
        except ProtocolError as failure:
            named = self._named(base, failure)
            if named is None:
                self._failed(base, failure)
                raise
        if self._coordinator in (None, base):
            self._settle(named)
        try:
            return await request(named)
        except ProtocolError as failure:
            self._failed(named, failure)
            raise

    def _named(self, base: str, failure: ProtocolError) -> str | None:
        """The coordinator that the NOT_COORDINATOR of `base` names, if this client can go there."""
        address = named_coordinator(failure, base)
        return None if address is None or self._servers.is_unreachable(address) else address

    def _failed(self, base: str, failure: ProtocolError) -> None:
        if isinstance(failure, Disconnected):
            self._lost(base)
        elif failure.error in REDISCOVER:
            self._search_later()
            self.forget(base)
            if failure.error is Error.NOT_COORDINATOR:
                self._servers.forgive(self._condition.clock())

    def _lost(self, base: str) -> None:
        self._servers.lost(base, self._condition.clock())
        self._search_later()
        self.forget(base)

    def _search_later(self) -> None:
        """Look the coordinator up after a random delay, which is short compared with a session."""
        now = self._condition.clock()
        if now >= self._search_at:
            # Not before the first back-off ends: the callers that wait for it would all ask at that moment.
            delay_ms = self._config.retry_backoff_ms + self._rng.uniform(0, self._config.spread_ms)
            self._search_at = now + delay_ms / 1000

    async def find(self) -> str:
        """The coordinator's address; asks the known servers if necessary. Raises ProtocolError, Disconnected."""
        while True:
            # One lane asks, the others wait for what it finds.
            await self._condition.wait_for(lambda: not self._finding)
            if self._coordinator is None:
                return await self._find()
            if self._condition.clock() < self._look_at:
                return self._coordinator
            await self._look_again(self._coordinator)

    async def _find(self) -> str:
        self._finding = True
        try:
            await self._condition.wait_for(lambda: False, self._search_at)
            return await self._search()
        finally:
            self._finding = False
            self._condition.notify_all()

    async def _search(self) -> str:
        failure: ProtocolError | None = None
        willing: str | None = None
        for server in self._servers:
            try:
                found = await self._ask(server, self._config.discovery_timeout_ms)
            except (Disconnected, _NotNow) as error:
                if isinstance(error, _NotNow):
                    willing = willing or server
                self._servers.skipped(server)
                failure = error
                continue
            return self._settle(server if self._servers.is_unreachable(found) else found)
        assert failure is not None, "there is at least one server"
        if willing is not None:
            # No node is the coordinator at the moment. In the default routing, any of them serves the group.
            return self._settle(willing)
        if not self._away:
            # Once per outage: it is retried about every second.
            self._away = True
            log.warning("group %s: no server answers, trying again: %s", self._config.group_id, failure)
        raise failure

    async def _look_again(self, base: str) -> None:
        """Look whether the coordinator is another node than `base`, and move there if it answers."""
        self._look_later()
        try:
            found = await self._ask(base, self._config.look_timeout_ms)
        except Disconnected:
            self._lost(base)
            return
        except ProtocolError:
            return
        if found == base:
            return
        try:
            await self._ask(found, self._config.look_timeout_ms)
        except Disconnected:
            self._servers.lost(found, self._condition.clock())
        except ProtocolError:
            pass
        else:
            if self._coordinator == base:
                self._settle(found)

    def _look_later(self) -> None:
        age_s = self._config.metadata_max_age_ms / 1000
        self._look_at = self._condition.clock() + max(LEAST_AGE_S, age_s * self._rng.uniform(0.8, 1.2))

    def _settle(self, found: str) -> str:
        """From now on, `found` is the coordinator."""
        self._coordinator = found
        self._servers.reached(found)
        self._away = False
        self._look_later()
        log.info("group %s: the coordinator is %s", self._config.group_id, found)
        return found

    async def _ask(self, server: str, timeout_ms: int) -> str:
        """The coordinator's address according to `server`; `server` itself if it may not be used."""
        answer = await self._http.get(
            f"{server}/v1/coordinator",
            wire.CoordinatorAnswer,
            params={"group_id": self._config.group_id},
            timeout_ms=timeout_ms,
        )
        entries = [entry for entry in answer.coordinators if entry.key == self._config.group_id]
        if not entries:
            raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, f"{server} did not name a coordinator of the group")
        error = BY_CODE.get(entries[0].error_code, Error.UNKNOWN_SERVER_ERROR)
        if error in (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR):
            raise _NotNow(Error.COORDINATOR_NOT_AVAILABLE, f"{server} has no coordinator for the group now")
        if error is not Error.NONE:
            raise ProtocolError(error)
        return permitted(entries[0].url or server, server) or server


class _NotNow(ProtocolError):
    """A server that knows no coordinator at the moment: another one may."""
