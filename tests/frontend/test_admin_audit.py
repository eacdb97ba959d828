"""What is changed in the admin, in the audit: one record each, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from psycopg.rows import namedtuple_row

from kcoord.access.audit.chain import Audit
from kcoord.access.store import HolderName, add_rules
from kcoord.access.tokens import create_token, parse_rule
from kcoord.models import AccessRule, ApiToken, Quota
from kcoord.process import bridge
from tests.frontend.conftest import PASSWORD
from tests.frontend.seed import Seed

User = get_user_model()
RULE = {"effect": "allow", "operation": "read", "resource": "group", "pattern": "prefix", "name": "billing-"}
LIMIT = {"kind": "default", "name": "", "budget": "cpu", "limit": "5"}


def _user() -> Any:
    return User.objects.create_user("mara", password=PASSWORD)


def _role() -> Any:
    return Group.objects.create(name="readers")


def _token() -> Any:
    create_token("ci", [parse_rule("describe:group:*")])
    return ApiToken.objects.get(name="ci")


def _quota() -> Any:
    return Quota.objects.create(kind="default", budget="cpu", limit=7)


def _ruled() -> Any:
    add_rules(HolderName("User", _user().username), [parse_rule("kick:group:billing")])
    return User.objects.get(username="mara")


@dataclass
class Story:
    """A form of the admin that is sent once. `prepare` makes the row, `form` has what is changed of its values."""

    model: type[Any]
    page: str
    acts: list[str]
    prepare: Callable[[], Any] | None = None
    form: dict[str, Any] = field(default_factory=dict)
    rule: str = ""
    """Prefix of the inline to which a rule is added."""


STORIES = {
    "account, added": Story(
        User, "add", ["account.create"], form={"username": "ines", "password1": PASSWORD, "password2": PASSWORD}
    ),
    "account, changed": Story(User, "change", ["account.change"], _user, {"is_staff": "on"}),
    "account, deleted": Story(User, "delete", ["account.delete"], _user),
    "account, given a rule": Story(User, "change", ["rule.add"], _user, rule="access_rules"),
    "account, rule removed": Story(User, "change", ["rule.remove"], _ruled, {"access_rules-0-DELETE": "on"}),
    "group, added": Story(Group, "add", ["role.create"], form={"name": "readers"}),
    "group, renamed": Story(Group, "change", ["role.change"], _role, {"name": "writers"}),
    "group, deleted": Story(Group, "delete", ["role.delete"], _role),
    "group, given a rule": Story(Group, "change", ["rule.add"], _role, rule="access_rules"),
    "token, added": Story(ApiToken, "add", ["token.create"], form={"name": "ci"}, rule="rules"),
    "token, renamed": Story(ApiToken, "change", ["token.change"], _token, {"name": "cd"}),
    "token, given a rule": Story(ApiToken, "change", ["token.change"], _token, rule="rules"),
    "token, deleted": Story(ApiToken, "delete", ["token.delete"], _token),
    "quota, added": Story(Quota, "add", ["quota.change"], form=LIMIT),
    "quota, changed": Story(Quota, "change", ["quota.change"], _quota, {"limit": "9"}),
    "quota, deleted": Story(Quota, "delete", ["quota.change"], _quota),
}


@pytest.fixture(autouse=True)
def _no_groups(client: Client) -> Iterator[None]:
    Group.objects.all().delete()
    yield
    Group.objects.all().delete()


def filled(answer: Any) -> dict[str, Any]:
    """What a browser would send of a form that nobody has changed."""
    shown = answer.context_data["adminform"].form
    forms = [shown]
    for inline in answer.context_data["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.initial_forms]
    found = {}
    for form in forms:
        for bound in form:
            value, name = bound.value(), bound.html_name
            if hasattr(bound.field.widget, "decompress"):
                parts = bound.field.widget.decompress(value)
                found |= {f"{name}_{at}": "" if part is None else part for at, part in enumerate(parts)}
            elif value is not None and value is not False:
                found[name] = "on" if value is True else value
    return found


def send(client: Client, story: Story) -> Any:
    """Open the form, change it and send it."""
    row = story.prepare() if story.prepare is not None else None
    name = f"admin:{story.model._meta.app_label}_{story.model._meta.model_name}_{story.page}"
    address = reverse(name, args=[] if row is None else [row.pk])
    if story.page == "delete":
        return lambda: client.post(address, {"post": "yes"})
    form = filled(client.get(address)) | story.form
    if story.rule:
        at = int(form[f"{story.rule}-INITIAL_FORMS"])
        form |= {f"{story.rule}-TOTAL_FORMS": at + 1} | {f"{story.rule}-{at}-{name}": RULE[name] for name in RULE}
    return lambda: client.post(address, form)


def errors(answer: Any) -> Any:
    """What the form that came back says."""
    return answer.context_data and answer.context_data.get("errors")


def head() -> int:
    return bridge.call(lambda runtime: runtime.get(Audit).chain()).seq


def records(seed: Seed, after: int) -> list[Any]:
    with seed.connection.cursor(row_factory=namedtuple_row) as cursor:
        return cursor.execute("select * from kcoord_auditrecord where seq > %s order by seq", [after]).fetchall()


def stored() -> list[Any]:
    """All rows that stories change."""
    fields = {User: "username", Group: "name", ApiToken: "name", Quota: "limit", AccessRule: "name"}
    flags = sorted(User.objects.values_list("username", "is_staff"))
    return [flags, *(sorted(model._default_manager.values_list("pk", name)) for model, name in fields.items())]


@pytest.mark.parametrize("name", STORIES)
def test_a_change_leaves_its_record(operator: Client, seed: Seed, name: str) -> None:
    story = STORIES[name]
    post = send(operator, story)
    before, rows = head(), stored()
    answer = post()
    assert answer.status_code == (200 if name == "token, added" else 302), errors(answer)
    assert stored() != rows
    found = records(seed, before)
    assert [record.act for record in found] == story.acts
    for record in found:
        assert (record.result, record.kind, record.principal, record.door) == ("done", "person", "root", "admin")
        assert record.before is not None or record.after is not None
        assert PASSWORD not in f"{record.before}{record.after}"
    assert bridge.call(lambda runtime: runtime.get(Audit).verify()).problems == []


@pytest.mark.parametrize("name", STORIES)
def test_a_change_that_cannot_be_recorded_is_not_made(operator: Client, seed: Seed, name: str) -> None:
    """The commit fails: for want of the row that every commit of an act locks."""
    operator.raise_request_exception = False
    post = send(operator, STORIES[name])
    before, rows = head(), stored()
    seed.connection.execute("alter table kcoord_auditchain rename to not_there")
    try:
        answer = post()
    finally:
        seed.connection.execute("alter table not_there rename to kcoord_auditchain")
    assert answer.status_code >= 500
    assert stored() == rows
    assert records(seed, before) == []
