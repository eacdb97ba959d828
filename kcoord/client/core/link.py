"""Which server coordinates the group, and calls to it. Source: FindCoordinator; http-api.md 2."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from kcoord.client.config import ConsumerConfig
from kcoord.client.core import wire
from kcoord.client.core.http import Disconnected, Http
from kcoord.client.core.news import News
from kcoord.protocol.errors import BY_CODE, Error, ProtocolError

T = TypeVar("T")

log = logging.getLogger("kcoord.client")

REDISCOVER = frozenset({Error.COORDINATOR_NOT_AVAILABLE, Error.NOT_COORDINATOR, Error.REQUEST_TIMED_OUT})
"""Errors after which the coordinator is looked up again (classic.md 11.2)."""


class Link:
    """Calls to the group's coordinator; finds it, and finds it again after `forget`.

    The servers of the `url` setting are tried in turn; one that does not answer is
    skipped. Differs from Kafka: any node may serve any group, so an address that the service announces but this
    client cannot reach (behind a proxy, say) is replaced by the server that announced it.
    """

    def __init__(self, config: ConsumerConfig, http: Http, news: News) -> None:
        self._config = config
        self._http = http
        self._news = news
        self._finding = False
        self._coordinator: str | None = None
        self._next = 0
        self._unreachable: set[str] = set()
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
        base = await self.find()
        group = quote(self._config.group_id, safe="")
        try:
            return await self._http.post(
                f"{base}/v1/groups/{group}/{path}", body, kind, held_ms=held_ms, timeout_ms=timeout_ms
            )
        except Disconnected:
            self._lost(base)
            raise
        except ProtocolError as failure:
            if failure.error in REDISCOVER:
                self.forget(base)
            if failure.error is Error.NOT_COORDINATOR:
                self._unreachable.clear()
            raise

    async def topic_partitions(self, topic: str) -> int | None:
        """How many partitions `topic` has; None if it does not exist (or may not be seen). Raises ProtocolError."""
        base = await self.find()
        try:
            answer = await self._http.get(f"{base}/v1/topics/{quote(topic, safe='')}", wire.TopicAnswer)
        except Disconnected:
            self._lost(base)
            raise
        except ProtocolError as failure:
            if failure.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                return None
            raise
        return answer.partitions

    async def find(self) -> str:
        """The coordinator's address; asks the known servers if necessary. Raises ProtocolError, Disconnected."""
        # One lane asks, the others wait for what it finds.
        await self._news.until(lambda: not self._finding)
        if self._coordinator is not None:
            return self._coordinator
        self._finding = True
        try:
            return await self._search()
        finally:
            self._finding = False
            self._news.changed()

    async def _search(self) -> str:
        failure: ProtocolError | None = None
        for _ in self._config.urls:
            server = self._config.urls[self._next % len(self._config.urls)]
            try:
                found = await self._ask(server)
            except (Disconnected, _NotNow) as error:
                self._next += 1
                failure = error
                continue
            self._coordinator = found
            self._away = False
            log.info("group %s: the coordinator is %s", self._config.group_id, found)
            return found
        assert failure is not None, "there is at least one server"
        if not self._away:
            # Once per outage: it is retried about every second.
            self._away = True
            log.warning("group %s: no server answers, trying again: %s", self._config.group_id, failure)
        raise failure

    async def _ask(self, server: str) -> str:
        answer = await self._http.get(
            f"{server}/v1/coordinator", wire.CoordinatorAnswer, params={"group_id": self._config.group_id}
        )
        entries = [entry for entry in answer.coordinators if entry.key == self._config.group_id]
        if not entries:
            raise ProtocolError(Error.UNKNOWN_SERVER_ERROR, f"{server} did not name a coordinator of the group")
        error = BY_CODE.get(entries[0].error_code, Error.UNKNOWN_SERVER_ERROR)
        if error in (Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR):
            raise _NotNow(Error.COORDINATOR_NOT_AVAILABLE, f"{server} has no coordinator for the group now")
        if error is not Error.NONE:
            raise ProtocolError(error)
        announced = (entries[0].url or server).rstrip("/")
        if server.startswith("https:") and not announced.startswith("https:"):
            # The token was sent over TLS; it must not be sent without.
            return server
        return server if announced in self._unreachable else announced

    def _lost(self, base: str) -> None:
        self.forget(base)
        if base in self._config.urls:
            # It may be the server that would be asked first: start with the next one.
            self._next += 1
        else:
            self._unreachable.add(base)


class _NotNow(ProtocolError):
    """A server that knows no coordinator at the moment: another one may."""
