"""Every page that changes something leaves one record when it succeeds, and one when it is refused.

The pages are those of the URL table that accept POST: a new one has to be added here, or the test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.test import Client
from django.urls import URLPattern, reverse
from psycopg.rows import namedtuple_row
from pytest_django.fixtures import SettingsWrapper

from frontend.pages.groups.bulk import Act
from frontend.urls import urlpatterns
from groups.core.model.types import GroupState
from groups.engine.service import GroupService
from groups.topics import TopicService, Watermark
from kcoord.access.audit.acts import ACTS, resource_of
from kcoord.access.audit.chain import Audit
from kcoord.access.rights import ALL_ALLOWED, Principal
from kcoord.access.tokens import create_token, parse_rule
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.resets.strategies import Reset, Strategy
from offsets.alerts.service import AlertService
from offsets.plans.creation import GroupCreation, NewGroup, StartOffset
from offsets.plans.service import PlanService
from offsets.runs import service as runs
from tests.frontend.alert_seed import told
from tests.frontend.conftest import PASSWORD
from tests.frontend.item_seed import queue
from tests.frontend.seed import Seed
from tests.offsets.alerts.world import rule
from tests.support.rest_groups import group, member
from tests.support.selection import sample

OWN = {"views": "lists of groups that people save for themselves"}
"""Pages that change only what their user sees."""

PAGES = {
    str(pattern.name): [view.audit, *getattr(view, "audit_by_form", {}).values()]
    for pattern in urlpatterns
    if hasattr(view := getattr(pattern.callback, "view_class", pattern.callback), "audit") and pattern.name not in OWN
}
"""Pages with the acts that they name."""

NEW = "battery staple correct horse"

SAMPLES: dict[str, Any] = {
    "str": "g", "uuid": UUID(int=1), "int": 1, "path": "m",
}  # fmt: skip


@dataclass
class Story:
    """How a page is used once. `prepare` returns parts of the URL. `act`: what is recorded, if not that of `PAGES`."""

    prepare: Callable[[], dict[str, Any] | None] | None = None
    form: dict[str, Any] = field(default_factory=dict)
    query: str = ""
    act: str = ""
    refused: bool = True


def _put(state: GroupState, *members: Any) -> None:
    async def put(runtime: Runtime) -> None:
        await runtime.get(GroupService).put(group("g", state, *members))

    bridge.call(put)


def empty() -> dict[str, Any]:
    _put(GroupState.EMPTY)
    return {"group_id": "g"}


def stable() -> dict[str, Any]:
    _put(GroupState.STABLE, member("m", 0, session_deadline=4_000_000_000_000))
    return {"group_id": "g"}


async def _commit(runtime: Runtime) -> None:
    await runtime.get(TopicService).create("orders", 3)
    await runtime.get(TopicService).set_watermarks("orders", [Watermark(0, 0, 100)])
    await runtime.get(GroupCreation).create(NewGroup("g", [StartOffset("orders", 0, 5)], {}, "x"))


def committed() -> dict[str, Any]:
    bridge.call(_commit)
    return {"group_id": "g"}


def planned() -> dict[str, Any]:
    async def plan(runtime: Runtime) -> str:
        await _commit(runtime)
        operator = Principal(0, "x", ALL_ALLOWED)
        return (await runtime.get(PlanService).create("g", Reset(Strategy.TO_EARLIEST), operator)).id

    return {"group_id": "g", "plan_id": UUID(bridge.call(plan))}


def token() -> dict[str, Any]:
    create_token("deploy", [parse_rule("read:group:g")])
    from kcoord.models import ApiToken

    return {"token_id": ApiToken.objects.get(name="deploy").pk}


RULE = {"name": "r", "pattern": "literal", "group_name": "g", "verdicts": "stuck", "receivers": "oncall", "for_ms": "5"}


def ruled() -> dict[str, Any]:
    given = rule(name="r", pattern="literal", group_name="g", receivers=["oncall"])

    async def make(runtime: Runtime) -> int:
        return (await runtime.get(AlertService).store(given, Principal(0, "x", ALL_ALLOWED))).id

    return {"rule_id": bridge.call(make)}


def alerted() -> None:
    """There is one alert, with the id 7."""
    ruled()

    async def insert(runtime: Runtime) -> None:
        async with runtime.db.connection() as connection:
            await connection.execute(
                "insert into offsets_alert (id, rule_id, group_name, cause, since, opened_at)"
                " select 7, id, 'g', 'stuck', 1, 1 from offsets_alertrule"
            )

    bridge.call(insert)


def queued() -> dict[str, Any]:
    """Partition 0 of `entries` has items in every state; the dead letters are 1 to 3."""
    with psycopg.connect(bridge.call(_conninfo), autocommit=True) as connection:
        queue(Seed(connection))
    return {"group_id": "mailing"}


async def _conninfo(runtime: Runtime) -> str:
    return runtime.db.conninfo


def running() -> dict[str, Any]:
    return {"run_id": UUID(bridge.call(lambda runtime: runtime.get(runs.SparkRuns).start("archive", principal="x")).id)}


STORIES = {
    "login": Story(None, {"username": "root", "password": PASSWORD}),
    "logout": Story(refused=False),
    "password": Story(None, {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW}),
    "create-group": Story(None, {"group_id": "g", "offsets": ""}),
    "delete-group": Story(empty, {"confirm": "g"}),
    "hold-group": Story(stable, {"duration_ms": "60000", "reason": "bug 17"}),
    "kick-member": Story(stable, {"reason": "it hangs"}, "?member=m"),
    "config": Story(lambda: {"group_id": "g"}, {"consumer.session.timeout.ms": "50000"}),
    "labels": Story(lambda: {"group_id": "g"}, {"label:owner": "ann", "shown:owner": ""}),
    "pins": Story(lambda: {"group_id": "g"}, {"topic": "orders"}),
    "items": Story(queued, {"act": "release", "item": '["entries", 0, [[50, 59]]]', "sure": "yes"}),
    "dead-letters": Story(queued, {"act": "replay", "letter": "1", "sure": "yes"}),
    "reset-offsets": Story(committed, {"strategy": "to-earliest", "scope": "all"}),
    "offset-plan": Story(planned, {"act": "apply", "removals": "on"}),
    "delete-offsets": Story(committed, {"confirm": "g", "t": "orders"}),
    "group-actions": Story(empty, {"act": "delete", "group": "g", "sure": "yes"}, act="group.delete"),
    "start-run": Story(None, {}, "?kind=archive"),
    "cancel-run": Story(running),
    "create-token": Story(None, {"name": "deploy", "preset": "consumer", "groups": "g", "topics": "orders"}),
    "grant": Story(None, {"kind": "User", "holder": "root", "preset": "consumer", "groups": "g", "topics": "orders"}),
    "alerts": Story(alerted, {"act": "mute", "alert": "7", "duration_ms": "3600000"}),
    "create-alert-rule": Story(None, RULE),
    "alert-rule": Story(ruled, {"act": "delete", "sure": "yes"}, act="alert.delete"),
    "token": Story(token, {"act": "revoke", "confirm": "deploy"}, act="token.delete"),
}


def changing(client: Client) -> set[str]:
    """The names of all pages that accept POST."""
    found = set()
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        kwargs = {name: SAMPLES[type(c).__name__.removesuffix("Converter").replace("String", "str").lower()]
                  for name, c in pattern.pattern.converters.items()}  # fmt: skip
        for asking in (client, Client()):
            answer = asking.options(reverse(f"frontend:{pattern.name}", kwargs=kwargs))
            if "POST" in answer.headers.get("Allow", ""):
                found.add(str(pattern.name))
    return found


@pytest.fixture(autouse=True)
def _no_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, settings: SettingsWrapper) -> Iterator[None]:
    monkeypatch.setattr(runs, "start_process", lambda *_: 1)
    monkeypatch.setattr("offsets.runs.run_process.RunLogs.create", lambda self, run_id: tmp_path / run_id)
    settings.KCOORD = settings.KCOORD.override({"archive.path": str(tmp_path / "archive"), **told(tmp_path)})
    return


def head() -> int:
    return bridge.call(lambda runtime: runtime.get(Audit).chain()).seq


def records(seed: Seed, after: int) -> list[Any]:
    with psycopg.connect(seed.connection.info.dsn, row_factory=namedtuple_row) as connection:
        return connection.execute("select * from kcoord_auditrecord where seq > %s order by seq", [after]).fetchall()


def post(client: Client, name: str, story: Story, parts: dict[str, Any]) -> Any:
    return client.post(reverse(f"frontend:{name}", kwargs=parts) + story.query, story.form)


def refused_act(name: str, story: Story) -> str:
    """What a refused form is recorded as."""
    return story.act or PAGES.get(name, ["request"])[0]


@pytest.mark.parametrize("name", STORIES)
def test_a_page_leaves_one_record(operator: Client, seed: Seed, name: str) -> None:
    story = STORIES[name]
    parts = story.prepare() or {} if story.prepare is not None else {}
    if name == "group-actions":
        parts = {}
    if name == "login":
        operator.logout()
    before = head()
    answer = post(operator, name, story, parts)
    assert answer.status_code in (200, 302), answer.content.decode()
    (found,) = records(seed, before)
    assert (found.result, found.act) == ("done", story.act or PAGES[name][0])
    assert name == "alerts" or found.resource == resource_of(found.act)
    assert (found.kind, found.principal, found.door) == ("person", "root", "dashboard")
    assert found.address == "127.0.0.1"
    assert PASSWORD not in f"{found.before}{found.after}"
    assert bridge.call(lambda runtime: runtime.get(Audit).verify()).problems == []


REFUSED = [name for name, story in STORIES.items() if story.refused]


@pytest.mark.parametrize("name", sample(REFUSED, "every page again, refused"))
def test_a_refused_page_leaves_one_record(person: Client, seed: Seed, name: str) -> None:
    story = STORIES[name]
    parts = story.prepare() or {} if story.prepare is not None else {}
    if name == "group-actions":
        parts = {}
    if name in ("login", "password"):
        story = Story(form={**story.form, "username": "mara", "password": "wrong", "old_password": "wrong"})
    if name == "login":
        person.logout()
    before = head()
    answer = post(person, name, story, parts)
    assert answer.status_code == (200 if name in ("login", "password") else 403)
    (found,) = records(seed, before)
    assert (found.result, found.act) == ("refused", refused_act(name, story))
    assert found.error in ("HTTP 403", "WRONG CREDENTIALS")
    assert found.principal == ("" if name == "login" else "mara")
    assert "wrong" not in f"{found}"


@pytest.mark.parametrize(
    ("name", "act", "form"),
    [("alerts", "alert.test", {"act": "test", "receiver": "oncall"}),
     ("alerts", "receiver.change", {"act": "add", "name": "oncall", "kind": "webhook", "address": "http://hidden.example"}),
     ("alerts", "receiver.delete", {"act": "remove", "receiver": "oncall"}),
     ("hold-group", "group.release", {"act": "release"}), ("pins", "offsets.unpin", {"act": "remove"}),
     ("items", "items.reject", {"act": "reject"}), ("dead-letters", "dead-letters.discard", {"act": "discard"}),
     ("offset-plan", "offsets.undo", {"act": "undo"}), ("offset-plan", "offsets.approve", {"act": "approve"}),
     ("token", "token.rotate", {"act": "rotate"})],
)  # fmt: skip
def test_the_second_form_of_a_page_is_recorded_as_what_it_does(
    person: Client, seed: Seed, name: str, act: str, form: dict[str, str]
) -> None:
    story = STORIES[name]
    parts = story.prepare() or {} if story.prepare is not None else {}
    before = head()
    assert post(person, name, Story(form=form), parts).status_code == 403
    (found,) = records(seed, before)
    assert (found.result, found.act) == ("refused", act)
    if name == "alerts":
        assert (found.resource, found.name) == ("receiver", "oncall"), "as what was done"
        assert "hidden" not in f"{found}"


@pytest.mark.parametrize("act", Act)
def test_a_form_for_several_groups_is_refused_for_each(person: Client, seed: Seed, act: Act) -> None:
    before = head()
    form = {"act": act.value, "group": ["b", "a", "b"], "name": "owner"}
    assert post(person, "group-actions", Story(form=form), {}).status_code == 403
    found = [(one.result, one.act, one.resource, one.name) for one in records(seed, before)]
    assert found == [("refused", f"group.{act.value}", "group", name) for name in "ba"]


@pytest.mark.parametrize("act", [Act.HOLD, Act.LABELS, Act.DELETE])
def test_so_is_one_that_is_not_complete(operator: Client, seed: Seed, act: Act) -> None:
    before = head()
    form = {"act": act.value, "group": ["b", "a"], "value": "ann", "name": ""}
    assert post(operator, "group-actions", Story(form=form), {}).status_code == 400
    found = [(one.act, one.name, one.error) for one in records(seed, before)]
    assert found == [(f"group.{act.value}", name, "HTTP 400") for name in "ba"]


def test_every_page_is_walked(operator: Client) -> None:
    found = changing(operator)
    assert found - set(OWN) == set(STORIES)
    assert set(OWN) <= found
    assert set(PAGES) == set(STORIES)
    assert {act for acts in PAGES.values() for act in acts} <= {"request", *ACTS}
