"""One coordinator behind the HTTP application, for cases of the consumer convention (consumer.md 0.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import quote

from groups.configs import DecisionContexts
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.turn import ResolveRegexes
from groups.engine.service import GroupService
from groups.store.store import GroupStore
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProtocolError
from tests.conformance import consumer_terms, http_consumer_terms
from tests.conformance.cases import Case
from tests.conformance.driver import BrokenPromise, Call, Response
from tests.conformance.http_driver import HttpDriver
from tests.conformance.http_terms import HttpRequest, group_path

OFFLOAD = "group.consumer.assignor.offload.enable"
_READS = frozenset({"ConsumerGroupDescribe", "ListGroups", "ShareGroupDescribe"})


def settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration of a case as settings of the service, which has none for what the convention leaves off."""
    return {
        name: ",".join(value) if isinstance(value, list) else value
        for name, value in config.items()
        if (name, value) != (OFFLOAD, False)
    }


class ConsumerHttpDriver(HttpDriver):
    """As `HttpDriver`, with topics that change, settings of groups, and the answers of consumer groups."""

    def __init__(self, case: Case, runtime: Runtime, clock: VirtualClock, secret: str) -> None:
        super().__init__(case, runtime, clock, secret)
        self._exchanges = http_consumer_terms.exchanges(self._topics)
        self._resolutions: dict[str, ResolveRegexes] = {}

    async def start(self) -> None:
        """As the base. Regular expressions are resolved when a case waits for it, as its convention has it."""
        contexts = self._runtime.get(DecisionContexts)
        self._resolve, contexts.resolve = contexts.resolve, self._hold  # type: ignore[method-assign]
        await super().start()

    async def _hold(self, effect: ResolveRegexes) -> NoReturn:
        self._resolutions[effect.group_id] = effect
        raise ProtocolError(Error.COORDINATOR_NOT_AVAILABLE, "resolved later")

    async def call(self, name: str, args: Mapping[str, Any]) -> Call:
        """As the base. Reads tell what is stored, and what is overdue is stored by the next tick: it has run."""
        if name in _READS:
            await self.look()
        return await super().call(name, args)

    async def inspect(self, group_id: str) -> Response:
        """The consumer or share group as its rows say; one that went on as a classic group does not exist as such."""
        await self.look()
        group = (await GroupStore(self._runtime).read(group_id)).group
        if not isinstance(group, EpochGroup):
            return {"exists": False}
        return consumer_terms.inspected(group, self._topics.name_of)

    async def control(self, kind: str, args: Any) -> None:
        """Topics and settings are changed through the API."""
        match kind:
            case "alter_topic":
                await self._done(HttpRequest("PATCH", _topic_path(args), {"partitions": args["partitions"]}))
            case "delete_topic":
                await self._done(HttpRequest("DELETE", _topic_path(args)))
            case "set_group_config":
                await self._done(HttpRequest("PATCH", group_path(args["group_id"], "/config"), args["config"]))
            case "await_regex_resolution" if args["group_id"] in self._resolutions:
                resolved = await self._resolve(self._resolutions.pop(args["group_id"]))
                await self._runtime.get(GroupService).execute(resolved)
            case "await_regex_resolution":
                pass
            case _:
                await super().control(kind, args)

    async def _done(self, request: HttpRequest) -> None:
        answer = await self._send(request)
        if answer.error != "NONE":
            raise BrokenPromise(f"{request.method} {request.path} is refused: {answer.body!r}")
        await self._rest()


def _topic_path(args: Mapping[str, Any]) -> str:
    return f"/v1/topics/{quote(args['name'], safe='')}"
