"""The showcase as a whole, at its smallest: its own service, all states and verdicts, and nothing left behind."""

from __future__ import annotations

import signal
import time
from typing import Any

import httpx
import psutil
import pytest

from groups.core.model.types import VerdictKind
from kcoord.tools.showcase.cast import LEAST_GROUPS
from tests.support.processes import wait_until_gone
from tests.support.showcase import run_showcase

pytestmark = [pytest.mark.processes, pytest.mark.whole("a whole showcase; its parts are tested in process")]

STATES = {"Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Reconciling"}
VERDICTS = {kind.value for kind in VerdictKind}
SHOWN_SECONDS = 420.0
STOP_SECONDS = 90.0


def groups(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = client.get("/v1/groups", params={"limit": "100", "cursor": cursor} if cursor else {"limit": "100"})
        content = page.raise_for_status().json()
        found.extend(content["groups"])
        cursor = content.get("next_cursor") or ""
        if not cursor:
            return found


def test_all_states_and_verdicts_are_shown_and_nothing_is_left() -> None:
    states: set[str] = set()
    verdicts: set[str] = set()
    with run_showcase("--groups", str(LEAST_GROUPS)) as showcase:
        headers = {"Authorization": f"Bearer {showcase.known.api_token}"}
        deadline = time.monotonic() + SHOWN_SECONDS
        with httpx.Client(base_url=showcase.url, headers=headers, trust_env=False) as client:
            while not (states >= STATES and verdicts >= VERDICTS):
                missing = f"never seen: {STATES - states} {VERDICTS - verdicts}"
                assert time.monotonic() < deadline, showcase.running.report(missing)
                for group in groups(client):
                    states.add(group["state"])
                    assert group["labels"]["owner"] == group["group_id"].split("-", 1)[0]
                    verdicts.update(entry["verdict"] for entry in group.get("verdicts", []))
                time.sleep(1)
        started = psutil.Process(showcase.running.pid).children(recursive=True)
        assert len(started) > 3
        assert showcase.running.terminate(STOP_SECONDS) == 128 + signal.SIGTERM
        wait_until_gone(*(process.pid for process in started))
        assert not showcase.data_dir.exists()
