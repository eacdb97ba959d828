"""How long a revoked token is still accepted by several servers, from when its deletion was asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from tests.support.processes import Running

RULES = [{"operation": "read", "resource": "group", "pattern": "prefix", "name": ""}]
HEARTBEAT = {"member_id": "m", "generation_id": 1}
REFUSED = 401
PATIENCE_SECONDS = 30.0


@dataclass(slots=True)
class Asking:
    """Sends heartbeats to one server, one after the other, until its token is refused."""

    url: str
    secret: str
    accepted: threading.Event = field(default_factory=threading.Event)
    refused_at: float | None = None

    def run(self) -> None:
        """`refused_at`: by the performance counter, None if it was accepted for PATIENCE_SECONDS."""
        until = time.perf_counter() + PATIENCE_SECONDS
        headers = {"Authorization": f"Bearer {self.secret}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS) as client:
            while time.perf_counter() < until:
                if client.post("/v1/groups/nobody/heartbeat", json=HEARTBEAT).status_code == REFUSED:
                    self.refused_at = time.perf_counter()
                    return
                self.accepted.set()


def revocation(servers: Sequence[Running], administrator: str) -> tuple[float, float]:
    """Seconds until the last of the servers refused a token that the first one deleted, and of the deletion itself."""
    headers = {"Authorization": f"Bearer {administrator}"}
    with httpx.Client(base_url=servers[0].url, headers=headers, timeout=PATIENCE_SECONDS) as client:
        made = client.post("/v1/tokens", json={"name": "revoked", "rules": RULES}).raise_for_status().json()
        asking = [Asking(server.url, made["secret"]) for server in servers]
        threads = [threading.Thread(target=one.run) for one in asking]
        for thread in threads:
            thread.start()
        for one in asking:
            assert one.accepted.wait(PATIENCE_SECONDS), f"{one.url} did not accept the token"
        began = time.perf_counter()
        client.delete(f"/v1/tokens/{made['id']}").raise_for_status()
        deleted = time.perf_counter()
    for thread in threads:
        thread.join()
    refused = [one.refused_at for one in asking if one.refused_at is not None]
    assert len(refused) == len(asking), "a revoked token is still accepted"
    return max(refused) - began, deleted - began
