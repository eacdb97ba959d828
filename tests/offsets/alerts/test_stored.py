"""Receivers that people add: encrypted in Postgres, never shown, beside those of the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.test import override_settings

from kcoord.config import Config
from kcoord.database.clock import VirtualClock
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error
from offsets.alerts.receivers import LOCAL
from offsets.alerts.stored import LONGEST_ADDRESS, MAX_STORED, ReceiverService
from tests.offsets.alerts.world import World
from tests.support.api import assert_problem
from tests.support.fixtures import ClientWith

RECEIVERS = "/v1/alerts/receivers"
ADDRESS, SECRET = "http://ops.example/a-hidden-path", "a-shared-secret"
HOOK = {"webhook": ADDRESS, "secret": SECRET}
CHAT = {"url": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"}
RULE = {"pattern": "literal", "verdicts": ["stuck"], "receivers": ["hook"]}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of receivers; `ops` is in it."""
    path = tmp_path / "receivers.toml"
    path.write_text('[ops]\nwebhook = "http://127.0.0.1:9/"\n')
    path.chmod(0o600)
    return path


@pytest.fixture
def config(config: Config, file: Path) -> Config:
    """With that file."""
    return config.override({"alerts.receivers.file": str(file)})


async def listed(api: httpx.AsyncClient) -> list[tuple[str, str, str, str]]:
    found = (await api.get(RECEIVERS)).json()["receivers"]
    return [(one["name"], one["kind"], one["source"], one["problem"]) for one in found]


async def put(api: httpx.AsyncClient, name: str, fields: dict[str, str] = HOOK) -> None:
    answer = await api.put(f"{RECEIVERS}/{name}", json=fields)
    assert answer.status_code == 200, answer.text


async def test_one_is_added_replaced_and_deleted(api: httpx.AsyncClient) -> None:
    answer = await api.put(f"{RECEIVERS}/hook", json=HOOK)
    assert answer.json() == {"name": "hook", "kind": "webhook", "source": "database", "problem": ""}
    assert await listed(api) == [("hook", "webhook", "database", ""), ("ops", "webhook", "file", "")]
    await put(api, "hook", CHAT)
    assert await listed(api) == [("hook", "slack", "database", ""), ("ops", "webhook", "file", "")]
    assert (await api.delete(f"{RECEIVERS}/hook")).status_code == 204
    assert await listed(api) == [("ops", "webhook", "file", "")]
    assert_problem(await api.delete(f"{RECEIVERS}/hook"), Error.INVALID_REQUEST, status=404)


async def test_its_address_is_nowhere_to_be_read(
    api: httpx.AsyncClient, runtime: Runtime, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [await api.put(f"{RECEIVERS}/hook", json=HOOK), await api.put(f"{RECEIVERS}/hook", json=HOOK)]
    answers += [await api.get(RECEIVERS), await api.delete(f"{RECEIVERS}/ops")]
    await put(api, "chat", CHAT)
    with psycopg.connect(database) as connection:
        rows = connection.execute("select t::text from offsets_alertreceiver t").fetchall()
        audit = connection.execute("select t::text from kcoord_auditrecord t").fetchall()
    told = [answer.text for answer in answers] + [repr(one) for one in await runtime.get(ReceiverService).all()]
    assert len(rows) == 2
    for text in [*map(str, rows), *map(str, audit), *told, caplog.text]:
        assert not re.search("hidden|shared|TIiajkdn", text)
    hook, chat = await runtime.get(ReceiverService).find("hook"), await runtime.get(ReceiverService).find("chat")
    assert hook is not None
    assert chat is not None
    assert (hook.address, hook.secret, chat.address) == (ADDRESS, SECRET, CHAT["url"])


async def test_the_same_address_is_never_encrypted_alike(api: httpx.AsyncClient, database: str) -> None:
    await put(api, "hook")
    await put(api, "other")
    with psycopg.connect(database) as connection:
        assert len(connection.execute("select distinct sealed from offsets_alertreceiver").fetchall()) == 2


async def test_what_was_encrypted_for_one_is_of_no_use_to_another(api: httpx.AsyncClient, database: str) -> None:
    await put(api, "hook")
    with psycopg.connect(database) as connection:
        connection.execute("update offsets_alertreceiver set name = 'renamed'")
        connection.commit()
    assert "enter its address again" in (await listed(api))[1][3]


async def test_the_file_wins(api: httpx.AsyncClient, file: Path, runtime: Runtime) -> None:
    assert (
        "is in the file"
        in assert_problem(await api.put(f"{RECEIVERS}/ops", json=HOOK), Error.INVALID_REQUEST, status=409)["detail"]
    )
    assert_problem(await api.delete(f"{RECEIVERS}/ops"), Error.INVALID_REQUEST, status=409)
    await put(api, "hook", CHAT)
    file.write_text('[hook]\nwebhook = "http://127.0.0.1:9/"\n')
    ((_, kind, source, problem),) = await listed(api)
    assert (kind, source, "is not used" in problem) == ("webhook", "file", True)
    used = await runtime.get(ReceiverService).find("hook")
    assert used is not None
    assert used.address == "http://127.0.0.1:9/"
    assert (await api.delete(f"{RECEIVERS}/hook")).status_code == 204
    assert await listed(api) == [("hook", "webhook", "file", "")]


async def test_another_process_has_it_at_once(
    api: httpx.AsyncClient, config: Config, database: str, clock: VirtualClock
) -> None:
    other = Runtime(config, database, clock)
    await other.start()
    try:
        await put(api, "hook")
        found = await other.get(ReceiverService).find("hook")
    finally:
        await other.stop()
    assert found is not None
    assert found.address == ADDRESS


async def test_with_another_key_its_address_is_entered_again(api: httpx.AsyncClient, runtime: Runtime) -> None:
    await put(api, "hook")
    with override_settings(SECRET_KEY="another key of 32 characters and more"):
        ((_, kind, _, problem), ops) = await listed(api)
        assert (kind, "enter its address again" in problem) == ("webhook", True)
        assert ops == ("ops", "webhook", "file", "")
        outcome = (await api.post(f"{RECEIVERS}/hook/test")).json()
        assert outcome == {"sent": False, "error": problem}
        assert (await api.post("/v1/alerts/rules", json={**RULE, "name": "r", "group_name": "g"})).status_code == 201
        await put(api, "hook")
        assert (await listed(api))[0] == ("hook", "webhook", "database", "")


async def test_it_takes_admin_on_the_cluster(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    await put(api, "hook")
    reader = await client_with("describe:cluster:kafka-cluster", "admin:group:*")
    assert len(await listed(reader)) == 2
    for answer in (
        await reader.put(f"{RECEIVERS}/new", json=HOOK),
        await reader.put(f"{RECEIVERS}/hook", json=HOOK),
        await reader.delete(f"{RECEIVERS}/hook"),
        await reader.delete(f"{RECEIVERS}/none"),
        await reader.post(f"{RECEIVERS}/hook/test"),
    ):
        assert_problem(answer, Error.CLUSTER_AUTHORIZATION_FAILED)
    assert len(await listed(api)) == 2


NO_SENSE: list[tuple[dict[str, Any], str, str]] = [
    ({}, "webhook", "give either a webhook or a url"),
    ({**HOOK, **CHAT}, "webhook", "give either a webhook or a url"),
    ({"webhook": "ftp://hidden/x"}, "webhook", "not an http or https address"),
    ({"url": "nonsense://hidden"}, "url", "Apprise does not know the url"),
    ({"url": "hidden"}, "url", "Apprise does not know the url"),
    ({"url": "slack://hidden/x"}, "url", "Apprise does not know the url"),
    ({**CHAT, "secret": "hidden"}, "secret", "a secret belongs to a webhook"),
    ({"webhook": "http://hidden/" + "x" * LONGEST_ADDRESS}, "webhook", ""),
    ({**HOOK, "color": "hidden"}, "color", "no such field"),
    ({"webhook": 5}, "webhook", "must be a string"),
    *[({"url": f"{scheme}://hidden"}, "url", "only the file may have it") for scheme in sorted(LOCAL)],
    ({"url": "DBUS://"}, "url", "only the file may have it"),
    ({"url": CHAT["url"] + "?Template=/etc/hidden"}, "url", "only the file may have it"),
    ({"url": CHAT["url"] + "?temp%6cate=/etc/hidden"}, "url", "only the file may have it"),
    ({"url": "mailto://u:p@b.example?pgppub=/etc/hidden"}, "url", "only the file may have it"),
    ({"url": "fcm://project/token?keyfile=/etc/hidden"}, "url", "only the file may have it"),
]


async def test_what_makes_no_sense_is_refused_by_field(
    api: httpx.AsyncClient, subtests: pytest.Subtests, caplog: pytest.LogCaptureFixture
) -> None:
    for fields, field, told in NO_SENSE:
        with subtests.test(f"{fields}"):
            body = assert_problem(await api.put(f"{RECEIVERS}/new", json=fields), Error.INVALID_REQUEST, field=field)
            assert told in body["detail"]
            assert "hidden" not in body["detail"]
    assert "hidden" not in caplog.text
    assert_problem(await api.put(f"{RECEIVERS}/a%20b", json=HOOK), Error.INVALID_REQUEST, field="name")
    assert len(await listed(api)) == 1


def test_what_acts_on_the_machine_is_known() -> None:
    """A new Apprise may know more: what needs no host, and what reads files, of which each was looked at."""
    from apprise import plugins
    from apprise.manager_plugins import NotificationManager

    manager = NotificationManager()
    manager.load_modules()
    for plugin in manager.plugins():
        if all(set(template.split("://")[1]) <= set("_/") for template in plugin.templates):
            assert ({plugin.protocol} if isinstance(plugin.protocol, str) else {*plugin.protocol}) <= LOCAL
    folder = Path(plugins.__file__).parent
    reads = re.compile(r"AppriseAttachment\(asset=|keyfile=")
    found = {path.relative_to(folder).parts[0] for path in folder.rglob("*.py") if reads.search(path.read_text())}
    # By `template`, `keyfile`, `pgp…` and `subfile`; mqtt has none of its address.
    assert found == {"discord.py", "email", "fcm", "mqtt.py", "slack.py", "telegram.py", "vapid", "workflows.py"}


async def test_one_that_rules_name_is_kept(api: httpx.AsyncClient, client_with: ClientWith) -> None:
    await put(api, "hook")
    for name in ("plans", "secret"):
        await api.post("/v1/alerts/rules", json={**RULE, "name": f"of {name}", "group_name": name})
    told = assert_problem(await api.delete(f"{RECEIVERS}/hook"), Error.INVALID_REQUEST, status=409)["detail"]
    assert told.endswith("named by rules, which have to change first: of plans, of secret")
    blind = await client_with("admin:cluster:kafka-cluster", "describe:group:*", "deny:describe:group:secret")
    told = assert_problem(await blind.delete(f"{RECEIVERS}/hook"), Error.INVALID_REQUEST, status=409)["detail"]
    assert told.endswith(": of plans")
    for rule in (await api.get("/v1/alerts/rules")).json()["rules"]:
        if rule["group_name"] == "plans":
            await api.delete(f"/v1/alerts/rules/{rule['id']}")
    told = assert_problem(await blind.delete(f"{RECEIVERS}/hook"), Error.INVALID_REQUEST, status=409)["detail"]
    assert told.endswith(": that you may not see")
    assert len(await listed(api)) == 2


async def test_there_are_not_too_many(api: httpx.AsyncClient, database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into offsets_alertreceiver select 'r' || n, 'webhook', '', 1, 'x' from generate_series(2, %s) n",
            [MAX_STORED],
        )
    await put(api, "hook")
    assert_problem(await api.put(f"{RECEIVERS}/more", json=HOOK), Error.INVALID_REQUEST)
    await put(api, "hook", CHAT)
    assert len(await listed(api)) == MAX_STORED + 1


async def test_a_file_that_cannot_be_used_is_said(api: httpx.AsyncClient, file: Path, world: World) -> None:
    await put(api, "hook")
    file.write_text("[a")
    for answer in (
        await api.get(RECEIVERS),
        await api.put(f"{RECEIVERS}/new", json=HOOK),
        await api.delete(f"{RECEIVERS}/hook"),
        await api.post(f"{RECEIVERS}/hook/test"),
    ):
        assert_problem(answer, Error.INVALID_CONFIG)
