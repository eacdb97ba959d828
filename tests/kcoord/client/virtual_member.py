"""A member whose minutes pass in no time: the core of the client on the virtual driver."""

from __future__ import annotations

from typing import Any

from kcoord.client import ConsumerConfig
from kcoord.client.core.consumer import ConsumerCore
from kcoord.client.types import RecordSource
from tests.kcoord.client.scripted import URL, ScriptedCoordinator
from tests.kcoord.client.sources import lettered
from tests.kcoord.client.virtual import Virtual


class Member:
    """A core that subscribes to topic t; requests are noted with the time at which they are sent."""

    def __init__(self, server: ScriptedCoordinator, source: RecordSource | None = None, **settings: Any) -> None:
        self.times: list[tuple[float, str]] = []

        def handle(request: Any) -> Any:
            reports = len(server.reports)
            response = server.handle(request)
            api = "watermarks" if len(server.reports) > reports else server.sent[-1].api
            self.times.append((self.driver.now, api))
            return response

        self.driver = Virtual(handle)
        config = ConsumerConfig.of({"group_id": "g", "url": URL, "auto_offset_reset": "earliest", **settings})
        self.core = ConsumerCore(config, source or lettered(4, 1000), self.driver.condition, self.driver)
        self.core.subscribe(["t"], None, None)

    def poll(self, timeout_ms: int = 1000) -> Any:
        """One poll of the user."""
        return self.driver.run(self.core.poll(timeout_ms, None))

    def at(self, api: str) -> list[float]:
        """When requests of `api` were sent."""
        return [time for time, name in self.times if name == api]
