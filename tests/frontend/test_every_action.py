"""Every action of the pages, found by the URL table: the request with curl that does the same, and what kgroups has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, URLPattern, resolve

from frontend.urls import urlpatterns
from kcoord.models import ApiToken
from tests.frontend.alert_seed import put_alert, put_receiver, put_rule
from tests.frontend.item_seed import queue
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.test_commands import parsed, words
from tests.support.spark_runs import put_run

NOT_OF_THE_SERVICE = {"login", "logout", "password", "views"}
"""What a person does with the dashboard alone, which the API does not have: sign-in, own password, saved views."""

SAMPLES = {
    "group_id": "billing",
    "member_id": "m",
    "plan_id": "5f1d4ef0-6a2b-4c43-9d0a-0c7f6f6c1b52",
    "run_id": "5f1d4ef0-6a2b-4c43-9d0a-0c7f6f6c1b52",
    "token_id": "1",
    "rule_id": "1",
    "name": "orders",
    "kind": "md",
}


@dataclass(frozen=True)
class Shown:
    """An action's page. `buttons`: the value of `act` that each button sends ("" for none), and its command's label."""

    action: str
    page: Callable[[Seed], str]
    buttons: dict[str, str]


def _held(seed: Seed, group_id: str = "idle") -> None:
    seed.connection.execute(
        "update groups_group set held_until = %s, held_by = 'root' where group_id = %s", [now_ms() + 60_000, group_id]
    )


def _idle(seed: Seed, page: str, *, held: bool = False) -> str:
    seed.topic("orders", 3, [100, 200, 300])
    seed.commit(seed.group("idle", "Empty", protocol=None), {("orders", 0): 10, ("orders", 1): 20})
    if held:
        _held(seed)
    return page


def _plan(seed: Seed, *, state: str = "planned", held: bool = False, **totals: int) -> str:
    _idle(seed, "", held=held)
    plan_id = put_plan(seed.connection, "idle", made_at=now_ms(), state=state, **totals)
    return f"/groups/idle/plans/{plan_id}"


def _member(seed: Seed) -> str:
    return f"/groups/billing/kick?member={working_group(seed)[0]}"


def _run(seed: Seed) -> str:
    return f"/archive/runs/{put_run(seed.connection, 'archive', 'running', ago_ms=0)}/cancel"


def _token(seed: Seed) -> str:
    return f"/tokens/{ApiToken.objects.create(name='readers', digest='d', prefix='kc_1', created_at=0).pk}"


def _alerts(seed: Seed, muted_until: int | None = None) -> str:
    put_alert(seed.connection, put_rule(seed.connection), "billing", at=now_ms(), muted_until=muted_until)
    return "/alerts"


def _receiver(seed: Seed) -> str:
    put_receiver(seed.connection, "hook")
    return "/alerts"


def _queue(seed: Seed, page: str) -> str:
    queue(seed)
    return f"/groups/mailing/{page}"


ACTIONS = [
    Shown("create-group", lambda seed: "/create-group", {"": "Create the group"}),
    Shown("delete-group", lambda seed: _idle(seed, "/groups/idle/delete"), {"": "Delete the group"}),
    Shown("delete-offsets", lambda seed: _idle(seed, "/groups/idle/delete-offsets"), {"": "Delete the offsets"}),
    Shown("config", lambda seed: _idle(seed, "/groups/idle/config"), {"": "Change settings"}),
    Shown("labels", lambda seed: _idle(seed, "/groups/idle/labels"), {"": "Change labels"}),
    Shown("hold-group", lambda seed: _idle(seed, "/groups/idle/hold"), {"": "Hold the group"}),
    Shown(
        "hold-group",
        lambda seed: _idle(seed, "/groups/idle/hold", held=True),
        {"": "Hold the group", "release": "End the hold"},
    ),
    Shown("kick-member", _member, {"": "Remove the member"}),
    Shown("items", lambda seed: _queue(seed, "items"), {"release": "Release", "reject": "Reject"}),
    Shown("dead-letters", lambda seed: _queue(seed, "dead-letters"), {"replay": "Replay", "discard": "Discard"}),
    Shown("pins", lambda seed: _idle(seed, "/groups/idle/pins"), {"pin": "Pin", "remove": "Remove the pin"}),
    Shown("group-actions", lambda seed: _idle(seed, "/group-actions?act=hold&group=idle"), {"": "idle"}),
    Shown("group-actions", lambda seed: _idle(seed, "/group-actions?act=labels&group=idle"), {"": "idle"}),
    Shown("group-actions", lambda seed: _idle(seed, "/group-actions?act=delete&group=idle"), {"": "idle"}),
    Shown("group-actions", lambda seed: _idle(seed, "/group-actions?act=release&group=idle", held=True), {"": "idle"}),
    Shown(
        "reset-offsets",
        lambda seed: _idle(seed, "/groups/idle/reset?strategy=to-earliest", held=True),
        {"": "Make the plan", "release": "End the hold"},
    ),
    Shown(
        "offset-plan",
        lambda seed: _plan(seed, held=True, unknown=1, outside=1),
        {
            "apply": "Apply the plan",
            "again": "Plan again",
            "clamp": "Clamp to the log",
            "keep": "Keep its offset",
            "release": "End the hold",
        },
    ),
    Shown(
        "offset-plan",
        lambda seed: _plan(seed, state="applied", held=True),
        {"undo": "Undo the plan", "release": "End the hold"},
    ),
    Shown("start-run", lambda seed: "/archive/start?kind=report", {"": "Start the run"}),
    Shown("cancel-run", _run, {"": "Cancel the run"}),
    Shown(
        "create-token",
        lambda seed: "/tokens/new?preset=consumer&groups=billing&topics=orders",
        {"": "Create the token"},
    ),
    Shown(
        "grant",
        lambda seed: "/access/grant?kind=User&holder=root&preset=consumer&groups=billing&topics=orders",
        {"": "Add the rules"},
    ),
    Shown("alerts", _alerts, {"mute": "Mute the alert", "test": "Send a test", "add": "Add a receiver"}),
    Shown(
        "alerts",
        lambda seed: _alerts(seed, now_ms() + 60_000),
        {"unmute": "End the mute", "test": "Send a test", "add": "Add a receiver"},
    ),
    Shown(
        "alerts",
        _receiver,
        {"test": "Send a test", "add": "Add a receiver", "remove": "Delete the receiver"},
    ),
    Shown("create-alert-rule", lambda seed: "/alerts/rules/new", {"": "Create the rule"}),
    Shown(
        "alert-rule",
        lambda seed: f"/alerts/rules/{put_rule(seed.connection)}",
        {"save": "Change the rule", "delete": "Delete the rule"},
    ),
    Shown("token", _token, {"rotate": "Rotate the token", "revoke": "Revoke the token"}),
]
"""Each state of a page that shows buttons of its own."""


class Buttons(HTMLParser):
    """The buttons that send a form of the page with POST, by the value of `act` that they send."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self._posts = False
        self.feed(page[page.index("<main") :])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form or its button."""
        given = dict(attrs)
        if tag == "form":
            self._posts = given.get("method") == "post"
        elif tag == "button" and self._posts and given.get("type", "submit") == "submit" and "disabled" not in given:
            self.found.add(given.get("value") or "" if given.get("name") == "act" else "")

    def handle_endtag(self, tag: str) -> None:
        """Leave a form."""
        if tag == "form":
            self._posts = False


def commands(page: str) -> dict[str, dict[str, str]]:
    """The lines of each command of a page: label -> tool -> line."""
    found: dict[str, dict[str, str]] = {}
    pattern = r'class="command-label">([^<]*)<|data-copy="((?:curl|kgroups) [^"]*)"'
    label = ""
    for named, line in re.findall(pattern, page):
        if named:
            label = unescape(named)
            found[label] = {}
        else:
            found[label][line.partition(" ")[0]] = unescape(line)
    return found


def posting() -> Iterator[str]:
    """The names in the URL table that accept POST."""
    client = Client()
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        assert pattern.name is not None
        view_class = getattr(pattern.callback, "view_class", None)
        if view_class is not None:
            allowed = "POST" if hasattr(view_class, "post") else ""
        else:
            path = re.sub(r"<(?:\w+:)?(\w+)>", lambda name: SAMPLES[name[1]], str(pattern.pattern))
            answer = client.options(f"/{path}")
            assert answer.status_code == 405, f"{pattern.name}: its view has to say which methods it accepts"
            allowed = answer.headers["Allow"]
        if "POST" in allowed:
            yield pattern.name


PREVIEW = "preview"
"""A button that changes nothing, and so has no command."""


def test_every_page_that_accepts_a_form_is_an_action_with_a_command(seed: Seed) -> None:
    assert set(posting()) - NOT_OF_THE_SERVICE == {shown.action for shown in ACTIONS}


@pytest.mark.parametrize("shown", ACTIONS, ids=lambda shown: f"{shown.action}-{'-'.join(shown.buttons)}")
def test_every_button_has_the_command_that_does_the_same(
    operator: Client, seed: Seed, archived: None, receivers: None, shown: Shown
) -> None:
    path = shown.page(seed)
    if shown.action == "pins":
        operator.post(path, {"act": "pin", "topic": "orders"})
    answer = operator.get(path)
    page = answer.content.decode()
    assert answer.status_code == 200, page
    assert resolve(urlsplit(path).path).url_name == shown.action
    assert Buttons(page).found - {PREVIEW} == set(shown.buttons)
    found = commands(page)
    for label in shown.buttons.values():
        _answered(found[label]["curl"])
        if "kgroups" in found[label]:
            assert parsed(found[label]["kgroups"]).url == "http://testserver"


def _answered(line: str) -> None:
    """The API has the method at the address of this command."""
    sent = words(line)
    method = sent[sent.index("-X") + 1] if "-X" in sent else "POST" if "-d" in sent else "GET"
    path = urlsplit(sent[-1]).path
    try:
        view: Any = resolve(path).func
    except Resolver404:
        pytest.fail(f"the API has no {path}")
    assert hasattr(view.cls, method.lower()), f"{method} {path}"


def test_the_commands_of_a_refused_form_are_those_of_the_form(operator: Client, seed: Seed) -> None:
    page = operator.post(_idle(seed, "/groups/idle/pins"), {"act": "pin", "topic": "a/b", "reason": "why"})
    line = commands(page.content.decode())["Pin"]["curl"]
    assert '{"topic": "a/b", "reason": "why"}' in line


def test_a_plan_that_names_what_cannot_be_seen_is_no_command(
    operator: Client, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frontend.pages.offsets import plan as plans

    path = _plan(seed)
    monkeypatch.setattr(plans, "MOST_ASKED", 2)
    found = commands(operator.get(path).content.decode())
    assert found["Plan again"] == {}
    assert "curl" in found["Apply the plan"]
