"""Actions of operators: who may do them, what a page says before, and what stands on it after a refusal."""

from __future__ import annotations

import re
import uuid

import psycopg
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from groups.core.model.commands import ConsumerHeartbeat
from groups.engine.service import GroupService
from kcoord.process import bridge
from kcoord.process.off_loop import settled
from tests.frontend.seed import Seed, working_group
from tests.frontend.viewers import allow


@pytest.fixture
def idle(seed: Seed) -> str:
    """An empty group with two committed offsets."""
    pk = seed.group("idle/../group <b>".replace("/", "-"), "Empty", protocol=None)
    seed.commit(pk, {("orders", 0): 5, ("bills", 0): 7})
    return "idle-..-group <b>"


@pytest.fixture
def busy(client: Client) -> str:
    """A group `busy` with one member of the consumer protocol, joined through the service; returns its id."""
    member_id = str(uuid.uuid4())
    heartbeat = ConsumerHeartbeat(
        "busy",
        member_id,
        0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=frozenset({"orders"}),
        topic_partitions={},
    )
    bridge.call(lambda runtime: settled(runtime.get(GroupService).consumer_heartbeat(heartbeat)))
    return member_id


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
    page = person.get(url(idle, "")[:-1]).content.decode()
    assert f'href="{url(idle, "delete")}"' not in page
    assert "your account needs delete on group" in page
    for answer in (person.get(url(idle, "delete")), person.post(url(idle, "delete"), {"confirm": idle})):
        assert answer.status_code == 403
        assert "needs delete on group" in answer.content.decode()


def test_a_rule_on_the_group_is_enough(person: Client, idle: str) -> None:
    user = get_user_model().objects.get(username="mara")
    allow(user, f"delete:group:{idle}")
    assert f'href="{url(idle, "delete")}"' in person.get(url(idle, "")[:-1]).content.decode()
    assert person.post(url(idle, "delete"), {"confirm": idle}).status_code == 302


def test_who_has_not_signed_in_is_sent_to_do_so(client: Client, idle: str) -> None:
    assert client.post(url(idle, "delete"), {"confirm": idle}).headers["Location"].startswith("/sign-in")


class TestHold:
    def test_a_busy_group_is_emptied_and_kept_empty(self, operator: Client, busy: str) -> None:
        page = operator.get("/groups/busy/hold").content.decode()
        assert "Its <strong>1</strong> member is removed at once" in page
        answer = operator.post("/groups/busy/hold", {"duration_ms": "300000", "reason": "bug 17"}, follow=True)
        page = answer.content.decode()
        assert "busy is held: no member can join; 1 member removed." in page
        assert "Held by root: “bug 17”" in page
        assert "No members." in page
        again = operator.get("/groups/busy/hold").content.decode()
        assert "End the hold" in again

    def test_it_can_be_ended_early(self, operator: Client, busy: str) -> None:
        operator.post("/groups/busy/hold", {"duration_ms": "300000"})
        page = operator.post("/groups/busy/hold", {"act": "release"}, follow=True).content.decode()
        assert "The hold has ended: members can join busy again." in page
        assert "Held by" not in page

    def test_only_times_that_the_setting_allows_are_offered(self, operator: Client, busy: str) -> None:
        page = operator.get("/groups/busy/hold").content.decode()
        assert ("1 hour</option>" in page, "6 hours</option>" in page) == (True, False)
        refused = operator.post("/groups/busy/hold", {"duration_ms": "99999999999"})
        assert refused.status_code == 400
        assert 'class="alert"' in refused.content.decode()
        assert operator.post("/groups/busy/hold", {"duration_ms": "long"}).status_code == 400

    def test_who_may_not_is_refused(self, person: Client, busy: str) -> None:
        assert person.post("/groups/busy/hold", {"duration_ms": "60000"}).status_code == 403
        assert 'href="/groups/busy/hold"' not in person.get("/groups/busy").content.decode()

    def test_a_group_that_is_not_there(self, operator: Client, busy: str) -> None:
        assert operator.get("/groups/nobody/hold").status_code == 404
        assert operator.post("/groups/nobody/hold", {"duration_ms": "60000"}).status_code == 404


class TestKick:
    def test_one_member_goes(self, operator: Client, busy: str) -> None:
        page = operator.get("/groups/busy").content.decode()
        assert f'href="/groups/busy/kick?member={busy}"' in page
        asked = operator.get(f"/groups/busy/kick?member={busy}").content.decode()
        assert busy in asked
        told = operator.post(f"/groups/busy/kick?member={busy}", {"reason": "its host hangs"}, follow=True)
        assert f"Removed {busy}. It can join again." in told.content.decode()
        assert "its host hangs" in told.content.decode()

    def test_a_stranger_is_refused(self, operator: Client, busy: str) -> None:
        refused = operator.post("/groups/busy/kick?member=nobody", {"reason": "why"})
        assert refused.status_code == 404
        assert 'value="why"' in refused.content.decode()
        assert operator.post("/groups/busy/kick").status_code == 404

    def test_who_may_not_is_refused(self, person: Client, busy: str) -> None:
        assert person.post(f"/groups/busy/kick?member={busy}").status_code == 403
        assert "kick?member" not in person.get("/groups/busy").content.decode()


class TestPins:
    def test_a_topic_or_the_group_is_pinned_and_unpinned(self, operator: Client, idle: str) -> None:
        operator.post(url(idle, "pins"), {"act": "pin", "topic": "orders", "reason": "audit"})
        page = operator.post(url(idle, "pins"), {"act": "pin", "topic": ""}, follow=True).content.decode()
        assert re.findall(r'data-label="What">([^<]+)<', page) == ["The whole group", "orders"]
        assert "audit" in page
        group = operator.get(url(idle, "")[:-1]).content.decode()
        assert ">pinned</span>" in operator.get(url(idle, "")[:-1] + "?tab=offsets").content.decode()
        assert "Topic orders pinned, by root" in group
        page = operator.post(url(idle, "pins"), {"act": "remove", "topic": "orders"}, follow=True).content.decode()
        assert re.findall(r'data-label="What">([^<]+)<', page) == ["The whole group"]

    def test_a_name_that_no_topic_can_have_is_refused(self, operator: Client, idle: str) -> None:
        refused = operator.post(url(idle, "pins"), {"act": "pin", "topic": "a/b", "reason": "why"})
        assert refused.status_code == 400
        assert 'class="alert"' in refused.content.decode()
        assert 'value="why"' in refused.content.decode()

    def test_who_may_not_is_refused(self, person: Client, idle: str) -> None:
        page = person.get(url(idle, "pins")).content.decode()
        assert "your account needs alter-offsets on group" in page
        assert person.post(url(idle, "pins"), {"act": "pin"}).status_code == 403
