"""`--through wire`: Kafka's protocol over sockets, as clients speak it; otherwise as `--through http`.

Requests that clients of Kafka's protocol have (`wire_terms`) go through a gateway on loopback, in the version that the
case names. What only this service has, topics and settings of a case for example, is arranged over HTTP.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcoord.door.kafka.gateway import Gateway
from tests.conformance.cases import Case, Suite
from tests.conformance.driver import Call
from tests.conformance.http_backend import HttpBackend
from tests.conformance.http_consumer import ConsumerHttpDriver
from tests.conformance.http_driver import HttpDriver
from tests.conformance.http_terms import Args, Exchange, HttpAnswer, HttpRequest
from tests.conformance.wire_requests import Translation
from tests.conformance.wire_terms import TRANSLATIONS
from tests.wire.client import WireClient


@dataclass(frozen=True, slots=True)
class WireExchange(Exchange):
    """An exchange whose requests travel by Kafka's protocol."""

    translation: Translation | None = None


class WireDriver(HttpDriver):
    """As `HttpDriver`; each request has a connection to itself until it is answered."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._exchanges: Mapping[str, Exchange] = {
            name: WireExchange(exchange.requests, exchange.read, TRANSLATIONS.get(name))
            for name, exchange in self._exchanges.items()
        }
        self._free: dict[str, list[WireClient]] = defaultdict(list)
        self._clients: list[WireClient] = []
        self._gateway: Gateway | None = None

    async def start(self) -> None:
        """As the base, with a gateway on a port of its own."""
        from groups.api.kafka.apis import APIS as OF_GROUPS  # they need Django, which the backend sets up
        from offsets.api.kafka.apis import APIS as OF_OFFSETS

        self._gateway = Gateway(self._runtime, (*OF_GROUPS, *OF_OFFSETS))
        self._gateway.start()
        await super().start()

    async def close(self) -> None:
        """Close all connections, then as the base: what was parked is abandoned."""
        for client in self._clients:
            client.abort()
        if self._gateway is not None:
            await self._gateway.stop()
        await super().close()

    def _authorize(self, secret: str) -> None:
        super()._authorize(secret)
        self._secret = secret

    async def _exchange(self, exchange: Exchange, requests: Sequence[HttpRequest], args: Args, call: Call) -> None:
        translation = exchange.translation if isinstance(exchange, WireExchange) else None
        if translation is None:
            await super()._exchange(exchange, requests, args, call)
            return
        answers = [await self._ask(translation, request, args) for request in requests]
        call.response = exchange.read(answers, args)

    async def _ask(self, translation: Translation, request: HttpRequest, args: Args) -> HttpAnswer:
        """The answer as HTTP would give it."""
        sent = translation.request(request, args)
        client = await self._client_for(self._secret)
        client.client_id = sent.client_id
        client.send(sent.api, sent.version, **sent.fields)
        answer = await client.receive(sent.api, sent.version)
        self._free[self._secret].append(client)
        return translation.read(answer, sent)

    async def _client_for(self, secret: str) -> WireClient:
        """A connection that nothing else waits on, logged in with this token."""
        if self._free[secret]:
            return self._free[secret].pop()
        assert self._gateway is not None
        client = WireClient(self._gateway.port)
        self._clients.append(await client.__aenter__())
        return await client.log_in(secret)


class ConsumerWireDriver(WireDriver, ConsumerHttpDriver):
    """The same for cases of the consumer convention."""


class WireBackend(HttpBackend):
    """Starts the application once, and a coordinator with a gateway for each run."""

    name = "wire"

    @staticmethod
    def _driver_type(case: Case) -> type[HttpDriver]:
        return ConsumerWireDriver if case.suite is Suite.CONSUMER else WireDriver
