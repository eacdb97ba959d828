"""How receivers are told: a real HTTP server and a real mail server on loopback, and what goes wrong with them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from aiosmtpd.controller import Controller
from django.test import override_settings

from groups.labels import GroupLabels
from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from offsets.alerts import receivers as module
from offsets.alerts.checks import CLAIM_MS, AlertChecks
from offsets.alerts.service import AlertService
from offsets.alerts.stored import ReceiverService
from offsets.alerts.types import MessageView
from offsets.core.alerts import ATTEMPTS
from tests.conftest import START_MS
from tests.offsets.alerts.world import ADMIN, World, rule

SECRET = "a shared secret"


class Hook(ThreadingHTTPServer):
    """A program that is told. `answers`: the statuses to answer with, then 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    """The server, in a thread."""
    server = Hook()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def file(tmp_path: Path, hook: Hook) -> Path:
    """The file of receivers; one is called ops."""
    path = tmp_path / "receivers.toml"
    path.write_text(f'[ops]\nwebhook = "{hook.url}"\nsecret = "{SECRET}"\n')
    path.chmod(0o600)
    return path


@pytest.fixture
def config(config: Config, file: Path) -> Config:
    """With that file, and links."""
    return config.override({"alerts.receivers.file": str(file), "alerts.link.url": "https://kcoord.example/"})


async def opened(runtime: Runtime, world: World, *names: str, groups: int = 1) -> None:
    """A rule that tells these receivers, and alerts on this number of groups."""
    await runtime.get(AlertService).store(rule(receivers=names), ADMIN)
    for number in range(groups):
        await world.group(f"bill/ü {number}" if number else "bill-0")
        await world.verdict(f"bill/ü {number}" if number else "bill-0", "stuck", START_MS - 5_000)
    assert await runtime.get(AlertChecks).check() == groups


async def only_message(runtime: Runtime) -> MessageView:
    (found,) = await runtime.get(AlertService).messages()
    return found


async def test_a_program_is_told_all_there_is_and_can_check_who_told_it(
    runtime: Runtime, world: World, hook: Hook
) -> None:
    await opened(runtime, world, "ops")
    assert await runtime.get(AlertChecks).send() == 1
    ((headers, body),) = hook.got
    message = await only_message(runtime)
    (alert,) = (await runtime.get(AlertService).alerts()).items
    assert json.loads(body) == {
        "id": str(message.id),
        "notice": "opened",
        "rule": "billing",
        "rule_id": alert.rule_id,
        "receiver": "ops",
        "at": "2023-11-14T22:13:20.000Z",
        "alerts": [
            {
                "group_id": "bill-0",
                "cause": "stuck",
                "value": None,
                "threshold": None,
                "since": "2023-11-14T22:13:15.000Z",
                "url": "https://kcoord.example/groups/bill-0",
                "labels": {},
            }
        ],
        "alert_count": 1,
    }
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["X-Kcoord-Signature"] == f"sha256={signature}"
    assert headers["X-Kcoord-Message"] == str(message.id)
    assert (message.state, message.sent_at, message.error) == ("sent", START_MS, "")
    assert await runtime.get(AlertChecks).send() == 0


async def test_an_outage_of_many_groups_is_one_message(runtime: Runtime, world: World, hook: Hook) -> None:
    await opened(runtime, world, "ops", groups=25)
    assert await runtime.get(AlertChecks).send() == 1
    body = json.loads(hook.got[0][1])
    assert (len(body["alerts"]), body["alert_count"]) == (20, 25)
    assert body["alerts"][1]["url"].startswith("https://kcoord.example/groups/bill%2F%C3%BC%20")


async def test_what_is_refused_is_sent_again_with_the_same_id_and_then_no_more(
    runtime: Runtime, world: World, hook: Hook, clock: VirtualClock
) -> None:
    await opened(runtime, world, "ops")
    hook.answers = [500] * (ATTEMPTS + 1)
    for attempt in range(1, ATTEMPTS + 1):
        assert await runtime.get(AlertChecks).send() == 0
        message = await only_message(runtime)
        assert (message.attempts, message.error) == (attempt, "the answer was 500")
        if message.next_at is not None:
            clock.advance(message.next_at - START_MS - 1 - (clock_now(clock) - START_MS))
            assert await runtime.get(AlertChecks).send() == 0, "not before it is due"
            clock.advance(1)
    assert message.state == "failed"
    clock.advance(86_400_000)
    assert await runtime.get(AlertChecks).send() == 0
    assert len(hook.got) == ATTEMPTS
    assert len({headers["X-Kcoord-Message"] for headers, _ in hook.got}) == 1
    outcomes = await runtime.get(AlertService).outcomes()
    assert (outcomes.sent, outcomes.waiting, outcomes.failed) == (0, 0, 1)


def clock_now(clock: VirtualClock) -> int:
    now = clock.override_ms
    assert now is not None
    return now


async def test_a_redirect_is_not_followed(runtime: Runtime, world: World, hook: Hook) -> None:
    await opened(runtime, world, "ops")
    hook.answers = [307]
    assert await runtime.get(AlertChecks).send() == 0
    assert (await only_message(runtime)).error == "the answer was 307"
    assert len(hook.got) == 1


async def test_a_receiver_that_never_answers_is_given_up_after_a_while(
    runtime: Runtime, world: World, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        file.write_text(f'[ops]\nwebhook = "http://127.0.0.1:{frozen.getsockname()[1]}/"\n')
        await opened(runtime, world, "ops")
        assert await runtime.get(AlertChecks).send() == 0
    assert "no answer within" in (await only_message(runtime)).error


async def test_slow_receivers_hold_one_caller_and_not_all(runtime: Runtime, world: World, file: Path) -> None:
    """Each caller is a thread of the worker, which runs the timers as well."""
    is_asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await reader.read()

    with contextlib.closing(await asyncio.start_server(never, "127.0.0.1")) as slow:
        file.write_text(f'[ops]\nwebhook = "http://127.0.0.1:{slow.sockets[0].getsockname()[1]}/"\n')
        await opened(runtime, world, "ops")
        sending = asyncio.create_task(runtime.get(AlertChecks).send())
        await is_asked.wait()
        assert await runtime.get(AlertChecks).send() == 0
        assert not sending.done()
        sending.cancel()
        await asyncio.wait({sending})
    assert not runtime.get(AlertChecks)._is_sending


async def test_people_who_are_slow_to_be_told_are_given_up(
    runtime: Runtime, world: World, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apprise limits each read, so it is left alone with its thread."""
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.2)
    over = threading.Event()
    monkeypatch.setattr(module, "_notify_now", lambda *given: over.wait(30))
    file.write_text('[chat]\nurl = "json://127.0.0.1"\n')
    await opened(runtime, world, "chat")
    assert await runtime.get(AlertChecks).send() == 0
    over.set()
    assert "no answer within" in (await only_message(runtime)).error


async def test_two_workers_send_each_message_once(
    runtime: Runtime, database: str, clock: VirtualClock, config: Config, world: World, hook: Hook
) -> None:
    for number in range(12):
        await runtime.get(AlertService).store(rule(name=f"rule {number}"), ADMIN)
    await world.group("bill")
    await world.verdict("bill", "stuck", START_MS)
    other = Runtime(config, database, clock)
    await other.start()
    try:
        assert sum(await asyncio.gather(*(each.get(AlertChecks).check() for each in (runtime, other)))) == 12
        assert sum(await asyncio.gather(*(each.get(AlertChecks).send() for each in (runtime, other)))) == 12
    finally:
        await other.stop()
    assert len({headers["X-Kcoord-Message"] for headers, _ in hook.got}) == len(hook.got) == 12


async def test_a_message_of_a_worker_that_died_is_sent_by_the_next(
    runtime: Runtime, world: World, hook: Hook, clock: VirtualClock, database: str
) -> None:
    await opened(runtime, world, "ops")
    with psycopg.connect(database) as connection:  # claimed, and never heard of again
        connection.execute("update offsets_alertmessage set attempts = 1, next_at = %s", [START_MS + CLAIM_MS])
    assert await runtime.get(AlertChecks).send() == 0
    clock.advance(CLAIM_MS)
    assert await runtime.get(AlertChecks).send() == 1


async def test_people_are_told_by_mail(runtime: Runtime, world: World, file: Path) -> None:
    mails: list[str] = []

    class Inbox:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            mails.append(envelope.content.decode())
            return "250 OK"

    controller = Controller(Inbox(), hostname="127.0.0.1", port=0)
    with socket.create_server(("127.0.0.1", 0)) as free:
        controller.port = free.getsockname()[1]
    controller.start()
    try:
        file.write_text(f'[mail]\nurl = "mailto://127.0.0.1:{controller.port}?from=k@b.example&to=ops@b.example"\n')
        await world.group("bill-1")
        await world.lag("bill-1", 12_345)
        await runtime.get(GroupLabels).alter("bill-1", {"owner": "payments", "color": "red"}, "ops")
        await runtime.get(AlertService).store(rule(receivers=["mail"]), ADMIN)
        await runtime.get(AlertChecks).check()
        assert await runtime.get(AlertChecks).send() == 1, (await only_message(runtime)).error
    finally:
        controller.stop()
    (mail,) = mails
    assert "Subject: kcoord: billing: group bill-1" in mail
    assert "lag of 12,345 records" in mail
    assert "owner: payments" in mail
    assert "red" not in mail


async def test_a_receiver_that_was_removed_fails_visibly(runtime: Runtime, world: World, file: Path) -> None:
    await opened(runtime, world, "ops")
    file.write_text("")
    assert await runtime.get(AlertChecks).send() == 0
    assert (await only_message(runtime)).error == "there is no receiver 'ops'"


async def test_a_test_is_sent_at_once_and_says_how_it_went(runtime: Runtime, hook: Hook) -> None:
    assert await runtime.get(ReceiverService).test("ops", ADMIN) == ""
    assert json.loads(hook.got[0][1])["notice"] == "test"
    hook.answers = [403]
    assert await runtime.get(ReceiverService).test("ops", ADMIN) == "the answer was 403"


async def test_one_that_was_added_is_told_by_the_worker(runtime: Runtime, world: World, hook: Hook) -> None:
    await runtime.get(ReceiverService).put("added", {"webhook": hook.url, "secret": SECRET}, ADMIN)
    await opened(runtime, world, "added", "ops")
    assert await runtime.get(AlertChecks).send() == 2
    signatures = {
        headers["X-Kcoord-Signature"] == f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"
        for headers, body in hook.got
    }
    assert (len(hook.got), signatures) == (2, {True})


async def test_a_worker_with_another_key_says_so_and_one_with_the_key_sends(
    runtime: Runtime, world: World, hook: Hook, clock: VirtualClock
) -> None:
    await runtime.get(ReceiverService).put("added", {"webhook": hook.url}, ADMIN)
    await opened(runtime, world, "added")
    await runtime.get(AlertService).store(rule(name="other"), ADMIN)
    await runtime.get(AlertChecks).check()
    with override_settings(SECRET_KEY="another key of 32 characters and more"):
        assert await runtime.get(AlertChecks).send() == 1, "to ops alone"
    waiting = next(one for one in await runtime.get(AlertService).messages() if one.receiver == "added")
    assert (waiting.state, waiting.attempts, "enter its address again" in waiting.error) == ("waiting", 1, True)
    assert waiting.next_at is not None
    clock.advance(waiting.next_at - START_MS)
    assert await runtime.get(AlertChecks).send() == 1
