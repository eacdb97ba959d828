"""Nothing of what a person may not describe is on any page, and nothing tells that it exists.

The walks are made from the table of URLs and from the models of the admin: a new page is in them by itself.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.http import HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils import timezone

import kcoord.urls  # noqa: F401 - registers the pages of the admin
from frontend.pages.search.view import COMPLETED
from frontend.urls import urlpatterns
from kcoord.access.tokens import create_token, parse_rule
from tests.frontend.alert_seed import put_alert, put_rule
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms, topic_id, working_group
from tests.frontend.verdict_seed import judged, verdict
from tests.frontend.viewers import allow
from tests.support.selection import sample
from tests.support.spark_runs import put_finding, put_run

HIDDEN = "hidden-7f3a"
"""In every name that most people may not see."""
ABSENT = "hidden-9b2c"
"""In names that do not exist; as long as the other, and with the same beginning."""
APART = {"live", "logout", "login", "identity", "identity-answer", "password", "password-changed"}
"""The stream, which has tests of its own, and pages about the session alone."""
PREFIXED = ("describe:group:seen-*", "describe:topic:seen-*")
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "no rules": (),
    "other prefix": ("describe:group:other-*", "describe:topic:other-*"),
    "viewer": PREFIXED,
    "viewer who sees the cluster's nodes": (*PREFIXED, "describe:cluster:*"),
    "denied": ("admin:group:*", "admin:topic:*", "deny:admin:group:hidden-*", "deny:admin:topic:hidden-*"),
    "operator": (
        *(f"{operation}:group:seen-*" for operation in ("read", "kick", "alter-offsets", "delete", "admin")),
        *("read:topic:seen-*", "admin:cluster:*"),
    ),
}
QUERIES: Mapping[str, tuple[str, ...]] = {
    "groups": (
        "q={}",
        "topic={}-topic",
        "member={}",
        "client={}",
        "host={}",
        "regex=^{}",
        "sort=-lag",
        "min_lag=1",
        "assignor={}",
    ),
    "groups-csv": ("q={}", "topic={}-topic", "member={}"),
    "group": ("topic={}", "tab=members&q={}", "tab=members&sort=lag", "tab=offsets&topic={}", "tab=offsets&sort=lag"),
    "topics": ("q={}", "sort=-partitions", "sort=-lag"),
    "topics-csv": ("q={}",),
    "timeline": ("q={}", "label={}", "kind=plan"),
    "timeline-csv": ("q={}", "kind=alert"),
    "timeline-json": ("q={}", "kind=alert"),
    "timeline-md": ("q={}", "kind=alert"),
    "plans": ("q={}", "who={}"),
    "alerts": ("group={}-group",),
    "alerts-csv": ("group={}-group",),
    "create-alert-rule": ("group={}-group&lag=5",),
    "audit": ("name={}", "who={}"),
    "access": ("q={}", "name={}-group", "resource=topic&name={}-topic"),
    "access-csv": ("q={}", "name={}-group"),
    "compare": ("name={}-group", "what=topics&name={}-topic"),
    "search": ("q={}", "q=hold {}-group", "q=reset {}"),
    "commits": ("topic={}-topic",),
    "findings": ("group={}-group",),
    "simulate": ("add=1", "add=1&topics={}-topic:3"),
    "group-actions": ("act=hold&group={}-group", "act=delete&group={}-group"),
    "kick-member": ("member={}-member",),
    "reset-offsets": ("plan={plan_id}",),
}
"""What is asked of some pages besides the page itself."""


LISTS = {"groups", "groups-csv"}
"""What names all groups to those who may describe the cluster, as the list of `/v1` does."""
OF_CLUSTER = LISTS | {"alert-rule", "run", "cancel-run", "report-groups", "report-partitions"}
"""What is there for those who may describe the cluster."""


def sees_cluster(person: str) -> bool:
    return ":cluster:" in "".join(PEOPLE[person])


@dataclass(frozen=True)
class Rows:
    """Ids of what was written."""

    hidden_plan: uuid.UUID
    seen_plan: uuid.UUID
    run_id: str
    rule_id: int
    token_id: int


@pytest.fixture
def rows(seed: Seed) -> Rows:
    """A group that is seen and reads a hidden topic as well, one of the consumer protocol, and a hidden one."""
    members = working_group(seed, "seen-billing")
    seen, connection = _key(seed, "seen-billing"), seed.connection
    for table in ("groups_assignment", "offsets_committedoffset"):
        connection.execute(f"update {table} set topic = 'seen-' || topic".encode())
    for name in ("seen-orders", "seen-entries", f"{HIDDEN}-topic"):
        seed.topic(name, 12, [11_000] * 12)
    _reads_hidden_topic(seed, seen, "seen-billing", members[0])
    hidden = seed.group(f"{HIDDEN}-group")
    seed.members(hidden, [f"{HIDDEN}-member"], client_id=f"{HIDDEN}-client")
    connection.execute("update groups_member set client_host = %s where group_id = %s", [f"{HIDDEN}-host", hidden])
    _reads_hidden_topic(seed, hidden, f"{HIDDEN}-group", f"{HIDDEN}-member")
    seed.assign(hidden, {("seen-orders", 11): f"{HIDDEN}-member"})
    seed.commit(hidden, {("seen-orders", 11): 7}, metadata=HIDDEN)
    connection.execute(
        "insert into offsets_topictotal (topic, at, groups, lag, worst_group_id, worst_lag, time_lag_ms)"
        " values ('seen-orders', 1, 2, 987654321, %s, 987654321, 1)",
        [hidden],
    )
    both = seed.consumer_group("seen-consumers", "Reconciling", epoch=12, assignment_epoch=12)
    seed.consumer_member(both, "seen-consumer", epoch=12)
    connection.execute("update groups_consumermember set subscribed_topic_names = %s", [[f"{HIDDEN}-topic"]])
    seed.event(f"{HIDDEN}-group", "group_held", 1, principal=f"{HIDDEN}-person", reason=HIDDEN, until=now_ms())
    hidden_plan = put_plan(connection, f"{HIDDEN}-group", made_at=now_ms(), reason=HIDDEN, made_by=f"{HIDDEN}-person")
    seen_plan = put_plan(connection, "seen-billing", made_at=now_ms())
    connection.execute(
        "update offsets_offsetplan set parameters = jsonb_build_object('topics', jsonb_build_array(%s::text),"
        " 'from_group', %s::text)",
        [f"{HIDDEN}-topic", f"{HIDDEN}-group"],
    )
    for plan_id in (hidden_plan, seen_plan):
        connection.execute(
            "insert into offsets_plannedoffset (plan_id, topic, partition, new_offset, old_leader_epoch, old_metadata,"
            " note)"
            " values (%s, %s, 0, 5, -1, '', %s)",
            [plan_id, f"{HIDDEN}-topic", HIDDEN],
        )
    connection.execute(
        "insert into offsets_deletedtopic (topic, deleted_at, principal, record_offset, swept)"
        " values (%s, %s, %s, 1, false)",
        [f"{HIDDEN}-gone", now_ms(), f"{HIDDEN}-person"],
    )
    connection.execute(
        "insert into offsets_retentionpin (group_name, topic, pinned_at, pinned_by, reason) values (%s, %s, 1, %s, %s)",
        ["seen-billing", f"{HIDDEN}-topic", f"{HIDDEN}-person", HIDDEN],
    )
    judged(seed)
    run_id = put_run(connection, "reconcile", findings=2)
    put_finding(connection, run_id, 1, group=f"{HIDDEN}-group", topic="seen-orders")
    put_finding(connection, run_id, 2, group="seen-billing", topic=f"{HIDDEN}-topic")
    connection.execute(
        "insert into groups_grouplabels (group_name, labels, updated_at, updated_by)"
        " values (%s, jsonb_build_object(%s::text, 'x'), 1, '')",
        [f"{HIDDEN}-group", f"{HIDDEN}-label"],
    )
    get_user_model().objects.create_user(f"{HIDDEN}-account")
    create_token(f"{HIDDEN}-token", [parse_rule(f"read:group:{HIDDEN}-group")])
    token = connection.execute("select id from kcoord_apitoken").fetchone()
    assert token is not None
    rule_id = put_rule(connection, group_name="", min_time_lag_ms=1)
    for group_id in ("seen-billing", f"{HIDDEN}-group"):
        put_alert(connection, rule_id, group_id, at=now_ms(), cause="lag", value=987_654_321)
        put_alert(connection, rule_id, group_id, at=now_ms(), resolved_at=now_ms())
    connection.execute("update offsets_alert set value = 5 where group_name = 'seen-billing'")
    return Rows(hidden_plan, seen_plan, run_id, rule_id, token[0])


def _key(seed: Seed, group_id: str) -> int:
    row = seed.connection.execute("select id from groups_group where group_id = %s", [group_id]).fetchone()
    assert row is not None
    return int(row[0])


def _reads_hidden_topic(seed: Seed, group: int, group_id: str, member: str) -> None:
    topic = f"{HIDDEN}-topic"
    seed.assign(group, {(topic, 0): member})
    seed.commit(group, {(topic, 0): 5}, metadata=HIDDEN)
    seed.journal(group_id, "commit", topic, 0, 5, member_id=member)
    seed.journal(group_id, "reset", topic, 0, 5, principal=f"{HIDDEN}-person")
    seed.lag_samples(group_id, {topic: [10, 20]})
    seed.group_lag(group, 987_654_321, 123_456_789)
    verdict(seed, group, "stalled", topic, names=["0"], lag=99)
    seed.connection.execute(
        "insert into offsets_topiclag (group_id, topic, at, lag, max_lag, time_lag_ms, committed_offsets,"
        " log_end_offsets, partitions, unknown_partitions) values (%s, 'seen-orders', 1, 1, 1, null, 0, 0, 1, 0)",
        [group],
    )
    seed.event(group_id, "offsets_reset", 1, topics=[topic], partitions=1, principal=f"{HIDDEN}-person", reason=HIDDEN)
    seed.event(group_id, "retention_pinned", 1, topic=topic, principal=f"{HIDDEN}-person", reason=HIDDEN)


def sign_in(client: Client, rules: tuple[str, ...], **account: Any) -> None:
    user = get_user_model().objects.create_user("mara", **account)
    allow(user, *rules)
    client.force_login(user)


def addresses(group_id: str, topic: str, member: str, ids: Mapping[str, object], query: str) -> dict[str, list[str]]:
    """The address of every page about these names, and with queries for a name."""
    names = {"kind": "md", "name": topic, "group_id": group_id, "member_id": member, **ids}
    found = {}
    for page in urlpatterns:
        if page.name in APART:
            continue
        address = reverse(f"frontend:{page.name}", kwargs={name: names[name] for name in page.pattern.converters})
        written = [asked.replace("{plan_id}", str(ids["plan_id"])) for asked in QUERIES.get(str(page.name), ())]
        asks = [asked.replace("{}", query) for asked in written]
        found[str(page.name)] = [address, *(f"{address}?{asked}" for asked in asks)]
    return found


def said(answer: HttpResponseBase) -> str:
    """Status, place to go, and body, without what differs from request to request."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
    text = body.decode()
    text = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", text)
    text = re.sub(r"\b1[678]\d{11}\b|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\dZ]*(?: UTC)?", "INSTANT", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A[\d.]+Z", "INSTANT", text)
    text = re.sub(r'(chart-tick" x1="|x2="|chart-x[ \w-]*" x=")[\d.]+%', r"\1INSTANT", text)  # moves with the time
    text = re.sub(r">(?:now|\d+ s ago|\d+ min(?: \d+ s)? ago)<", ">AGO<", text)
    return f"{answer.status_code} {answer.headers.get('Location', '')}\n{text}"


def of(rows: Rows) -> dict[str, list[str]]:
    """What there is and is hidden."""
    ids = {"plan_id": rows.hidden_plan, "run_id": rows.run_id, "rule_id": rows.rule_id, "token_id": rows.token_id}
    return addresses(f"{HIDDEN}-group", f"{HIDDEN}-topic", f"{HIDDEN}-member", ids, HIDDEN)


def none() -> dict[str, list[str]]:
    """The same addresses of what there is not."""
    ids = {"plan_id": uuid.UUID(int=5), "run_id": uuid.UUID(int=5), "rule_id": 10**9, "token_id": 10**9}
    return addresses(f"{ABSENT}-group", f"{ABSENT}-topic", f"{ABSENT}-member", ids, ABSENT)


def plain(text: str, rows: Rows) -> str:
    """Without the names that were asked for."""
    for name in (HIDDEN, ABSENT, str(rows.hidden_plan), str(uuid.UUID(int=5)), rows.run_id):
        text = text.replace(name, "NAME")
    text = re.sub(rf"/alerts/rules/(?:{rows.rule_id}|1000000000)\b", "/alerts/rules/ID", text)
    return re.sub(rf"/tokens/(?:{rows.token_id}|1000000000)\b", "/tokens/ID", text)


FORM = {
    "confirm": "{}-group", "group_id": "{}-group", "offsets": "{}-topic,0,5", "topic": "{}-topic", "t": "{}-topic",
    "duration_ms": "60000", "reason": "", "strategy": "to-latest", "sure": "yes", "scope": "all",
}  # fmt: skip


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("person", sample(PEOPLE, "the walk again with other rules", default="viewer"))
def test_what_is_hidden_answers_as_what_is_not_there(client: Client, rows: Rows, person: str, method: str) -> None:
    sign_in(client, PEOPLE[person])
    absent = none()
    differing = []
    for page, hidden in of(rows).items():
        if page in OF_CLUSTER and sees_cluster(person):
            continue
        for address, other in zip(hidden, absent[page], strict=True):
            if method == "get" and address == other:
                continue
            minute = time.time() // 60
            if method == "get":
                answers = client.get(address), client.get(other)
            else:
                acts = {"offset-plan": "apply", "views": "delete", "pins": "pin", "group-actions": "hold"}
                forms = [
                    {name: text.replace("{}", word) for name, text in FORM.items()} | {"act": acts.get(page, "")}
                    for word in (HIDDEN, ABSENT)
                ]
                answers = client.post(address, forms[0]), client.post(other, forms[1])
            one, two = (plain(said(answer), rows) for answer in answers)
            if method == "get" and time.time() // 60 != minute:  # pages say the minute they were asked in
                one, two = (plain(said(client.get(asked)), rows) for asked in (address, other))
            if one != two:
                differing.append((address, one, two))
    assert differing == [], _first_difference(differing)


@pytest.mark.parametrize("person", sample(PEOPLE, "the walk again with other rules", default="viewer"))
def test_no_page_names_what_is_hidden(client: Client, rows: Rows, person: str) -> None:
    """Pages of names that are seen: hidden topics, groups and people are on none of them."""
    sign_in(client, PEOPLE[person])
    ids = {"plan_id": rows.seen_plan, "run_id": rows.run_id, "rule_id": rows.rule_id, "token_id": rows.token_id}
    wanted = dict.fromkeys(  # most pages are about neither of the two groups
        address
        for group_id in ("seen-billing", "seen-consumers")
        for page, some in addresses(group_id, "seen-orders", "m", ids, "seen").items()
        for address in (some if page not in LISTS or not sees_cluster(person) else ())
    )
    leaks, answered = [], 0
    for address in wanted:
        answer = client.get(address)
        text = said(answer)
        answered += answer.status_code == 200
        if HIDDEN in text or "987,654,321" in text or "987654321" in text:
            leaks.append((address, answer.status_code, _around(text)))
    assert leaks == [], "\n".join(map(str, leaks))
    assert answered > (50 if "seen-" in "".join(PEOPLE[person]) else 12), answered


def _around(text: str) -> list[str]:
    return [text[max(m.start() - 100, 0) : m.end() + 60] for m in re.finditer(rf"{HIDDEN}|987.?654.?321", text)][:3]


def offered(client: Client, kind: str, q: str, group_id: str = "") -> list[str]:
    """What completes a field for a kind of names, of one group or of all."""
    answer = client.get("/search", {"q": q, "group": group_id}, headers={"Kcoord-Search": kind})
    return answer.json()  # type: ignore[no-any-return, attr-defined]


@pytest.mark.parametrize("person", sample(PEOPLE, "the walk again with other rules", default="viewer"))
def test_no_field_is_completed_with_what_is_hidden(client: Client, rows: Rows, person: str) -> None:
    sign_in(client, PEOPLE[person])
    for kind in COMPLETED:
        for q, group_id in ((HIDDEN, ""), (HIDDEN, f"{HIDDEN}-group"), ("e", ""), ("", "")):
            assert HIDDEN not in "".join(offered(client, kind, q, group_id)), (kind, q)
    for kind in ("people", "principals", "holders"):
        assert offered(client, kind, "mara") == [], "nowhere are accounts listed to them, not even their own"


def test_an_administrator_sees_all_of_it(operator: Client, rows: Rows) -> None:
    found = {page: said(operator.get(some[0])) for page, some in of(rows).items()}
    for page in (
        "home",
        "groups",
        "topics",
        "plans",
        "alerts",
        "audit",
        "group",
        "events",
        "commits",
        "topic",
        "tokens",
        "token",
    ):
        assert HIDDEN in found[page].replace(f"{HIDDEN}-group", "", 3), page
    assert not [page for page, text in found.items() if text.startswith("403")]
    assert [kind for kind in COMPLETED if not offered(operator, kind, HIDDEN)] == []


def _no_session(client: Client) -> None:
    """Nobody has signed in."""


def _made_up(client: Client) -> None:
    client.cookies["sessionid"] = "a" * 32


def _expired(client: Client) -> None:
    sign_in(client, PEOPLE["operator"], is_superuser=True)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))


def _deactivated(client: Client) -> None:
    sign_in(client, PEOPLE["operator"], is_superuser=True)
    get_user_model().objects.update(is_active=False)


@pytest.mark.parametrize("come", [_no_session, _made_up, _expired, _deactivated])
def test_strangers_are_told_nothing(client: Client, rows: Rows, come: Callable[[Client], None]) -> None:
    come(client)
    absent = none()
    for page, some in of(rows).items():
        for address, other in zip(some, absent[page], strict=True):
            answer = client.get(address)
            assert answer.status_code == (200 if page == "docs" else 302), address  # which is made from the code alone
            assert plain(said(answer), rows) == plain(said(client.get(other)), rows)


@pytest.mark.parametrize("person", sample(PEOPLE, "the walk again with other rules", default="viewer"))
def test_the_admin_shows_rows_to_administrators_alone(client: Client, rows: Rows, person: str) -> None:
    """Also to staff who have Django's permission to view them."""
    from django.contrib.auth.models import Permission

    sign_in(client, PEOPLE[person], is_staff=True)
    ours = [model for model in admin.site._registry if model._meta.app_label in ("kcoord", "groups", "offsets")]
    permissions = Permission.objects.filter(content_type__app_label__in=("kcoord", "groups", "offsets"))
    get_user_model().objects.get(username="mara").user_permissions.set(permissions)
    assert HIDDEN not in said(client.get(reverse("admin:index")))
    for model in ours:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        row = model._default_manager.order_by("pk").first()
        pages = [reverse(f"{name}_changelist")]
        pages += [] if row is None else [reverse(f"{name}_{page}", args=[row.pk]) for page in ("change", "history")]
        for address in pages:
            assert client.get(address).status_code in (302, 403), address


def test_no_act_reaches_what_is_hidden(client: Client, rows: Rows, seed: Seed) -> None:
    sign_in(client, PEOPLE["operator"])
    before = seed.connection.execute("select count(*), max(version) from groups_group").fetchone()
    for some in of(rows).values():
        for act in ("", "hold", "release", "delete", "apply", "pin", "revoke", "rotate"):
            form = {name: text.replace("{}", HIDDEN) for name, text in FORM.items()}
            client.post(some[0], {**form, "act": act, "group": f"{HIDDEN}-group"})
    assert seed.connection.execute("select count(*), max(version) from groups_group").fetchone() == before
    assert seed.connection.execute("select count(*) from kcoord_apitoken").fetchone() == (1,)
    pins = seed.connection.execute("select count(*) from offsets_retentionpin").fetchone()
    assert pins == (1,)


def test_topics_that_are_hidden_have_no_id_either(client: Client, rows: Rows) -> None:
    sign_in(client, PEOPLE["viewer"])
    hidden = topic_id(f"{HIDDEN}-topic")
    ids = {"plan_id": rows.seen_plan, "run_id": rows.run_id, "rule_id": rows.rule_id, "token_id": 1}
    for some in addresses("seen-billing", "seen-orders", "m", ids, hidden[:8]).values():
        assert hidden not in said(client.get(some[0]))


def _first_difference(differing: list[tuple[str, str, str]]) -> str:
    told = []
    for address, one, two in differing:
        lines = zip(one.splitlines(), two.splitlines(), strict=False)
        told.append(f"{address}: {next((pair for pair in lines if pair[0] != pair[1]), (one[-200:], two[-200:]))}")
    return "\n".join(told)


@pytest.mark.parametrize(
    ("path", "what"), [("/", "groups"), ("/groups", "groups"), ("/topics", "topics"), ("/plans", "plans")]
)
def test_an_empty_page_does_not_say_that_there_is_nothing_to_who_sees_nothing(
    client: Client, seed: Seed, path: str, what: str
) -> None:
    seed.group("billing")
    seed.topic("orders", 1)
    put_plan(seed.connection, "billing", made_at=now_ms())
    judged(seed)
    client.force_login(get_user_model().objects.create_user("nobody"))
    page = client.get(path).content.decode()
    assert f"No {what} that you may see" in page
    assert 'href="/access">What you may do</a>' in page
    assert f"No {what} yet" not in page
    assert "Nothing needs attention" not in page
