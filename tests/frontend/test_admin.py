"""The admin: every model can be looked at, the protocol's can only be looked at, a token shows its secret once."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

import kcoord.urls  # noqa: F401 - registers the pages of the admin
from groups.models import ProtocolOwned, Topic, Watermark
from kcoord.access.rights import digest
from kcoord.models import AccessRule, ApiToken, Counter, TimerHeartbeat
from tests.frontend.node_seed import four_nodes
from tests.frontend.seed import Seed, reconciling_group, working_group

OURS = [model for model in admin.site._registry if model._meta.app_label in ("kcoord", "groups", "offsets")]
ONLY_SHOWN = [m for m in OURS if issubclass(m, ProtocolOwned) or m in (Topic, Watermark, TimerHeartbeat, Counter)]

FILLED = {
    "Group",
    "Member",
    "ConsumerMember",
    "PendingMember",
    "Event",
    "Topic",
    "Watermark",
    "TimerHeartbeat",
    "ApiToken",
    "CoordinatorNode",
    "CoordinatorPartition",
    "PartitionChange",
}


def address(model: type[Model], page: str, *keys: object) -> str:
    from django.urls import reverse

    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=keys)


@pytest.fixture(autouse=True)
def rows(seed: Seed) -> None:
    """One of everything."""
    members = working_group(seed)
    reconciling_group(seed)
    seed.topic("orders", 12, [11_000] * 12)
    four_nodes(seed)
    seed.connection.execute(
        "insert into groups_pendingmember (group_id, member_id, deadline)"
        " select id, 'pending', 1 from groups_group where type = 'classic'"
    )
    seed.connection.execute("insert into kcoord_timerheartbeat values (1, 1700000000123)")
    # kcoord's subscription bytes, version 0: one topic, no user data
    seed.connection.execute(
        "update groups_member set protocol_metadata = array['\\x0000000000010006'::bytea || 'orders'::bytea ||"
        " '\\xffffffff'::bytea] where member_id = %s",
        [members[0]],
    )


def some_rows(model: type[Model]) -> list[Model]:
    """A row of the model; only tables that this module does not fill may be empty."""
    found = list(model._default_manager.all()[:1])
    assert found or model.__name__ not in FILLED, model
    return found


def test_every_table_with_a_plain_key_is_registered() -> None:
    from django.apps import apps

    for label in ("kcoord", "groups", "offsets"):
        for model in apps.get_app_config(label).get_models():
            composite = len(model._meta.pk_fields) > 1
            assert (model in OURS) != (composite or model is AccessRule), model


def test_every_list_is_in_the_navigation() -> None:
    navigation = settings.UNFOLD["SIDEBAR"]["navigation"]
    links = {str(entry["link"]) for section in navigation for entry in section["items"]}
    lists = {reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in OURS}
    assert lists - links == set()


def test_the_index_calls_lists_what_the_menu_calls_them(operator: Client) -> None:
    navigation = settings.UNFOLD["SIDEBAR"]["navigation"]
    titles = {str(entry["link"]): entry["title"] for section in navigation for entry in section["items"]}
    page = operator.get(reverse("admin:index"))
    assert page.context["title"] == "Admin"
    listed = {model["admin_url"]: str(model["name"]) for app in page.context["app_list"] for model in app["models"]}
    wrong = {link: name for link, name in listed.items() if name != titles.get(link, name)}
    assert wrong == {}
    assert listed[address(Counter, "changelist")] == "Counters"


def test_headings_leave_ids_as_they_are_and_empty_lists_say_so(operator: Client) -> None:
    from groups.models import Group, GroupConfigOverride

    row = Group.objects.get(group_id="billing")
    assert re.search(r"<a [^>]*>billing</a>", operator.get(address(Group, "change", row.pk)).content.decode())
    assert "There are no rows yet." in operator.get(address(GroupConfigOverride, "changelist")).content.decode()
    nothing = operator.get(address(Group, "changelist"), {"q": "nothing"}).content.decode()
    assert "No row matches." in nothing
    assert '<a href="?">Show all</a>' in nothing


def test_lists_and_rows_can_be_looked_at(operator: Client, subtests: pytest.Subtests) -> None:
    for model in OURS:
        with subtests.test(f"{model}"):
            if model is ApiToken:
                ApiToken.objects.create(name="t", digest="d", prefix="kc_12345", created_at=1_700_000_000_000)
            pages = [address(model, "changelist"), address(model, "changelist") + "?q=a"]
            pages += [address(model, "change", row.pk) for row in some_rows(model)]
            for page in pages:
                assert operator.get(page).status_code == 200, page


def test_what_the_service_owns_can_only_be_looked_at(operator: Client, subtests: pytest.Subtests) -> None:
    for model in ONLY_SHOWN:
        with subtests.test(f"{model}"):
            assert operator.get(address(model, "add")).status_code == 403
            assert 'name="action"' not in operator.get(address(model, "changelist")).content.decode()
            for row in some_rows(model):
                assert operator.post(address(model, "change", row.pk), {}).status_code == 403
                assert operator.post(address(model, "delete", row.pk), {"post": "yes"}).status_code == 403
                assert model._default_manager.filter(pk=row.pk).exists()


def test_the_page_of_a_group_shows_ownership_offsets_and_times_in_utc(operator: Client) -> None:
    from groups.models import Group

    text = operator.get(address(Group, "change", Group.objects.get(group_id="billing").pk)).content.decode()
    assert text.count(">orders</td>") == 24  # 12 owned, 12 committed
    assert "10400" in text
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", text)


def test_a_subscription_is_read_and_foreign_bytes_are_counted(operator: Client) -> None:
    from groups.models import Member

    first, second = Member.objects.order_by("id")[:2]
    assert ">orders</td>" in operator.get(address(Member, "change", first.pk)).content.decode()
    assert "0 bytes, opaque to the service" in operator.get(address(Member, "change", second.pk)).content.decode()


def new_token(client: Client, name: str = "ci", rule_name: str = "billing-", pattern: str = "prefix"):
    form = {
        "name": name,
        "expires_0": "2030-01-02",
        "expires_1": "03:04:05",
        "rules-TOTAL_FORMS": "1",
        "rules-INITIAL_FORMS": "0",
        "rules-MIN_NUM_FORMS": "1",
        "rules-MAX_NUM_FORMS": "1000",
        "rules-0-effect": "allow",
        "rules-0-operation": "read",
        "rules-0-resource": "group",
        "rules-0-pattern": pattern,
        "rules-0-name": rule_name,
    }
    return client.post(address(ApiToken, "add"), form)


def test_the_secret_of_a_new_token_is_shown_once_and_stored_nowhere(operator: Client, seed: Seed) -> None:
    answer = new_token(operator)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    secret = re.search(r'<pre id="secret"[^>]*>(kc_[\w-]+)</pre>', answer.content.decode())
    assert secret is not None
    token = ApiToken.objects.get(name="ci")
    assert token.digest == digest(secret[1])
    assert token.expires_at == 1_893_553_445_000
    assert [str(rule) for rule in token.rules.all()] == ["read group:billing-*"]
    page = operator.get(address(ApiToken, "change", token.pk)).content.decode()
    assert token.prefix in page
    assert secret[1] not in page
    assert secret[1] not in operator.get(address(ApiToken, "changelist")).content.decode()
    dump = seed.connection.execute(
        "select coalesce(string_agg(t::text, ''), '') from django_admin_log t union all"
        " select coalesce(string_agg(t::text, ''), '') from django_session t"
    ).fetchall()
    assert not any(secret[1] in text for (text,) in dump)


def test_a_new_token_opens_the_api(operator: Client) -> None:
    from kcoord.access.rights import Operation

    secret = re.search(r">(kc_[\w-]+)</pre>", new_token(operator).content.decode())
    assert secret is not None
    assert Operation.READ.value in {
        rule.operation for rule in ApiToken.objects.get(digest=digest(secret[1])).rules.all()
    }


def test_changing_a_token_leaves_its_secret_alone(operator: Client) -> None:
    new_token(operator)
    token = ApiToken.objects.get()
    rule = token.rules.get()
    form = {
        "name": "renamed",
        "expires_0": "",
        "expires_1": "",
        "rules-TOTAL_FORMS": "1",
        "rules-INITIAL_FORMS": "1",
        "rules-MIN_NUM_FORMS": "1",
        "rules-MAX_NUM_FORMS": "1000",
        "rules-0-id": rule.pk,
        "rules-0-token": token.pk,
        "rules-0-effect": "allow",
        "rules-0-operation": "admin",
        "rules-0-resource": "group",
        "rules-0-pattern": "prefix",
        "rules-0-name": "",
    }
    assert operator.post(address(ApiToken, "change", token.pk), form).status_code == 302
    changed = ApiToken.objects.get()
    assert (changed.name, changed.expires_at) == ("renamed", None)
    assert (changed.digest, changed.prefix, changed.created_at) == (token.digest, token.prefix, token.created_at)
    assert str(changed.rules.get()) == "admin group:*"


def test_a_rule_for_a_name_needs_the_name(operator: Client) -> None:
    assert new_token(operator, rule_name="", pattern="literal").status_code == 200
    assert not ApiToken.objects.exists()


def test_a_name_is_used_once(operator: Client) -> None:
    new_token(operator)
    assert "already exists" in new_token(operator).content.decode()
    assert ApiToken.objects.count() == 1


def test_the_pages_of_a_consumer_group_show_its_members_and_what_is_to_be_given_up(operator: Client) -> None:
    from groups.models import ConsumerMember, Group

    group = Group.objects.get(group_id="ledger")
    text = operator.get(address(Group, "change", group.pk)).content.decode()
    assert text.count("pending revocation") == 2
    assert all(member_id in text for member_id in group.consumer_members.values_list("member_id", flat=True))
    listed = operator.get(address(Group, "changelist") + "?q=ledger").content.decode()
    assert re.search(r"field-member_count[^>]*>\s*3\s*<", listed)
    member = ConsumerMember.objects.get(state=1)
    text = operator.get(address(ConsumerMember, "change", member.pk)).content.decode()
    assert "must give up its partitions by" in text.lower()
