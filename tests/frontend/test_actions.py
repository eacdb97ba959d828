"""Actions of operators: who may do them, what a page says before, and what stands on it after a refusal."""

from __future__ import annotations

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from tests.frontend.seed import Seed, working_group


@pytest.fixture
def idle(seed: Seed) -> str:
    """An empty group with two committed offsets."""
    pk = seed.group("idle/../group <b>".replace("/", "-"), "Empty", protocol=None)
    seed.commit(pk, {("orders", 0): 5, ("bills", 0): 7})
    return "idle-..-group <b>"


def url(group_id: str, action: str) -> str:
    from urllib.parse import quote

    return f"/groups/{quote(group_id, safe='')}/{action}"


class TestDelete:
    def test_it_says_what_goes(self, operator: Client, idle: str) -> None:
        page = operator.get(url(idle, "delete")).content.decode()
        assert "<strong>2</strong> committed offsets on 2 topics" in page
        assert "idle-..-group &lt;b&gt;" in page

    def test_the_id_has_to_be_typed(self, operator: Client, idle: str) -> None:
        answer = operator.post(url(idle, "delete"), {"confirm": "another"})
        assert answer.status_code == 400
        assert "nothing was deleted" in answer.content.decode()
        assert operator.get(url(idle, "delete")).status_code == 200

    def test_it_goes_and_the_journal_knows_who_wanted_it(self, operator: Client, idle: str, database: str) -> None:
        answer = operator.post(url(idle, "delete"), {"confirm": idle}, follow=True)
        assert "Deleted idle-..-group &lt;b&gt; with 2 committed offsets." in answer.content.decode()
        with psycopg.connect(database) as connection:
            lines = connection.execute("select kind, principal from offset_commit_log").fetchall()
        assert lines == [("group_delete", "root")] * 2
        assert operator.get(url(idle, "delete")).status_code == 404

    def test_a_group_with_members_is_refused_before_and_after_asking(self, operator: Client, seed: Seed) -> None:
        working_group(seed)
        page = operator.get(url("billing", "delete")).content.decode()
        assert "Only a group without members can be deleted" in page
        assert "<form method" not in page.partition('class="card form-card"')[2]
        refused = operator.post(url("billing", "delete"), {"confirm": "billing"})
        assert refused.status_code == 409
        assert "with 3 members" in refused.content.decode()

    def test_a_form_without_its_token_is_refused(self, seed: Seed, idle: str) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(get_user_model().objects.create_superuser("root"))
        assert strict.post(url(idle, "delete"), {"confirm": idle}).status_code == 403


def test_who_may_not_act_is_not_offered_to_and_is_refused(person: Client, idle: str) -> None:
    assert "Delete group" not in person.get(url(idle, "")[:-1]).content.decode()
    for answer in (person.get(url(idle, "delete")), person.post(url(idle, "delete"), {"confirm": idle})):
        assert answer.status_code == 403
        assert "groups.delete_group" in answer.content.decode()


def test_a_permission_of_django_is_enough(person: Client, idle: str) -> None:
    user = get_user_model().objects.get(username="mara")
    user.user_permissions.add(Permission.objects.get(codename="delete_group", content_type__app_label="groups"))
    assert "Delete group" in person.get(url(idle, "")[:-1]).content.decode()
    assert person.post(url(idle, "delete"), {"confirm": idle}).status_code == 302


def test_who_has_not_signed_in_is_sent_to_do_so(client: Client, idle: str) -> None:
    assert client.post(url(idle, "delete"), {"confirm": idle}).headers["Location"].startswith("/sign-in")
