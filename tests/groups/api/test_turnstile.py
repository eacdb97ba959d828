"""Too many joins at once are refused; what members call all the time does not stand in line with them."""

from __future__ import annotations

import httpx
import pytest

from kcoord.process.runtime import Runtime
from kcoord.process.turnstile import AT_ONCE, Turnstile
from tests.support.api import join_body


async def test_joins_that_find_the_queue_full_are_told_to_come_back(
    api: httpx.AsyncClient, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = runtime.get(Turnstile)
    monkeypatch.setattr(gate, "_most", 0)
    monkeypatch.setattr(gate, "_let_in", AT_ONCE)
    refused = await api.post("/v1/groups/g/join", json=join_body(""))
    assert (refused.status_code, refused.json()["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
    assert refused.headers["retry-after"] == "1"
    body = {"member_id": "nobody", "generation_id": 1}
    answered = await api.post("/v1/groups/g/heartbeat", json=body)
    assert answered.json()["error"] == "UNKNOWN_MEMBER_ID"
