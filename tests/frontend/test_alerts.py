"""The pages of alerts: what is open, the rules and their form, who is told, and who may do what."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from html import unescape
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

from frontend.pages.alerts.rules import length, milliseconds
from frontend.pages.group.view import suggested_lag
from offsets.alerts.receivers import Receiver, SendError
from tests.frontend.alert_seed import HOUR, put_alert, put_message, put_receiver, put_rule
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.test_every_action import commands
from tests.frontend.test_exports import table
from tests.frontend.verdict_seed import verdict
from tests.frontend.viewers import allow

NEW = "/alerts/rules/new"
FORM = {
    "name": "billing stands still", "pattern": "prefix", "group_name": "billing", "verdicts": ["stuck", "stalled"],
    "min_lag": "10,000", "min_time_lag_ms": "", "for_ms": "5", "remind_ms": "4 h", "send_resolved": "yes",
    "receivers": ["oncall"], "enabled": "yes",
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("receivers")


def plain(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html[html.index("<main") :])).split())


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def account(*rules: str, name: str = "ines") -> Client:
    user = get_user_model().objects.create_user(name, password="not a secret")
    allow(user, *rules)
    client = Client()
    client.force_login(user)
    return client


def button(html: str, act: str) -> str:
    found = re.search(rf'<button[^>]*name="act" value="{act}"[^>]*>', html)
    return found[0] if found else ""


def rules(seed: Seed) -> list[tuple[object, ...]]:
    return seed.connection.execute(
        "select name, pattern, group_name, verdicts, min_lag, min_time_lag_ms, for_ms, remind_ms, send_resolved,"
        " receivers, enabled from offsets_alertrule order by id"
    ).fetchall()


def test_empty_pages_say_what_to_do(operator: Client, seed: Seed, settings: SettingsWrapper) -> None:
    settings.KCOORD = settings.KCOORD.override({"alerts.receivers.file": ""})
    said = plain(page(operator, "/alerts"))
    assert "No alert is open" in said
    assert "No rules yet" in said
    assert "set KCOORD_ALERTS_RECEIVERS_FILE to its path" in said
    assert "No message has been sent yet." in said
    form = page(operator, NEW)
    assert "There are no receivers yet, and a rule needs one." in plain(form)
    assert re.search(r"<button[^>]* disabled[^>]*>Create rule</button>", form)


def test_open_alerts_in_words(operator: Client, seed: Seed) -> None:
    now, rule = now_ms(), put_rule(seed.connection, min_time_lag_ms=600_000)
    put_alert(seed.connection, rule, "billing-a", at=now - HOUR)
    put_alert(seed.connection, rule, "billing-b", at=now - HOUR, cause="lag", value=12_345, told=False)
    put_alert(seed.connection, rule, "billing-c", at=now - HOUR, cause="time-lag", value=720_000, over_since=now)
    put_alert(seed.connection, rule, "billing-d", at=now - HOUR, muted_until=now + HOUR)
    put_alert(seed.connection, rule, "billing-e", at=now - HOUR, resolved_at=now - 1_000)
    said = plain(page(operator, "/alerts"))
    assert "billing-a Stuck billing stands still 1 h ago 1 h ago oncall" in said
    assert "billing-b Lag 12,345 records, limit 10,000 billing stands still 1 h ago not yet" in said
    assert "billing-c Behind at least 12 min, limit 10 min" in said
    assert "resolved if it stays so" in said
    assert re.search(r"billing-d .* ends in (1 h|59 min) by mara End the mute", said)
    assert "billing-e" in said[said.index("Recently resolved") :]
    html = page(operator, "/alerts")
    assert 'href="/groups/billing-a"' in html
    assert f'href="/alerts/rules/{rule}"' in html


def test_the_list_is_of_one_group_and_in_pages(operator: Client, seed: Seed) -> None:
    now, rule = now_ms(), put_rule(seed.connection)
    for number in range(60):
        put_alert(seed.connection, rule, f"billing-{number:02}", at=now - number)
    first = page(operator, "/alerts")
    assert first.count('class="row-link" href="/groups/') == 50
    following = re.search(r'rel="next" href="([^"]*)"', first)
    assert following is not None
    assert page(operator, unescape(following[1])).count('class="row-link" href="/groups/') == 10
    only = page(operator, "/alerts?group=billing-07")
    assert re.findall(r'class="row-link" href="/groups/([^"]*)"', only) == ["billing-07"]
    assert "No alert on this group is open" in page(operator, "/alerts?group=none")
    assert operator.get("/alerts?after=x").status_code == 400
    assert len(table(operator, "/alerts.csv")) == 60
    (row,) = table(operator, "/alerts.csv?group=billing-07")
    assert (row["rule"], row["cause"], row["receivers"]) == ("billing stands still", "stuck", "oncall")


def test_people_see_alerts_of_their_groups_and_no_rules(client: Client, seed: Seed) -> None:
    now, rule = now_ms(), put_rule(seed.connection, pattern="prefix", group_name="")
    put_alert(seed.connection, rule, "billing", at=now)
    put_alert(seed.connection, rule, "secret", at=now)
    put_message(seed.connection, "oncall", at=now)
    reader = account("describe:group:billing")
    html = page(reader, "/alerts")
    said = plain(html)
    assert "secret" not in html
    assert "billing" in said
    assert "your account needs describe on the cluster." in said
    assert "Receivers" not in said
    assert "Last messages" not in said
    assert [row["group_id"] for row in table(reader, "/alerts.csv")] == ["billing"]
    assert table(reader, "/alerts/rules.csv") == []
    assert reader.get(f"/alerts/rules/{rule}").status_code == 403
    assert reader.get(f"/alerts/rules/{rule + 1}").status_code == 403
    assert "disabled" in button(html, "mute")
    assert "your account needs admin on a group, or on the cluster" in said
    assert reader.get(NEW).status_code == 403


def test_a_rule_that_names_a_hidden_group_does_not_exist(client: Client, seed: Seed) -> None:
    """Who may describe the cluster sees all rules, but for those that name a group which is denied to them."""
    put_rule(seed.connection, "of all", group_name="")
    shown = put_rule(seed.connection, "one", pattern="literal", group_name="billing")
    hidden = put_rule(seed.connection, "other", pattern="literal", group_name="secret-plans")
    reader = account("describe:cluster:kafka-cluster", "describe:group:*", "deny:describe:group:secret-plans")
    html = page(reader, "/alerts")
    assert ("one" in plain(html), "of all" in plain(html)) == (True, True)
    assert "secret-plans" not in html
    assert f"/alerts/rules/{hidden}" not in html
    assert {row["name"] for row in table(reader, "/alerts/rules.csv")} == {"of all", "one"}
    assert [reader.get(f"/alerts/rules/{number}").status_code for number in (shown, hidden, hidden + 1)] == [
        200,
        404,
        404,
    ]


def test_the_file_of_rules_has_all_that_a_rule_says(operator: Client, seed: Seed) -> None:
    operator.post(NEW, {**FORM, "label": "owner=payments"})
    (row,) = table(operator, "/alerts/rules.csv")
    assert (row["group_name"], row["label"], row["min_lag"]) == ("billing", "owner=payments", "10000")


def test_rules_in_words(person: Client, seed: Seed) -> None:
    put_rule(seed.connection)
    put_rule(seed.connection, "all", group_name="", verdicts=[], min_lag=None, min_time_lag_ms=600_000, enabled=False)
    put_rule(seed.connection, "one", pattern="literal", group_name="idle", receivers=["chat", "oncall"])
    said = plain(page(person, "/alerts"))
    assert (
        "Groups beginning with billing: stuck or stalled, or lag of at least 10,000, for 5 min"
        " oncall; reminds every 4 h" in said
    )
    assert "all off All groups: at least 10 min behind, for 5 min" in said
    assert "Group idle: stuck or stalled" in said
    assert "chat and oncall; reminds every 4 h" in said
    assert [row["name"] for row in table(person, "/alerts/rules.csv")] == ["all", "billing stands still", "one"]


def test_a_rule_is_made_changed_and_deleted(operator: Client, seed: Seed) -> None:
    answer = operator.post(NEW, FORM, follow=True)
    assert "Made the rule billing stands still." in plain(answer.content.decode())
    assert rules(seed) == [
        ("billing stands still", "prefix", "billing", ["stalled", "stuck"], 10_000, None, 300_000, 4 * HOUR, True,
         ["oncall"], True)
    ]  # fmt: skip
    row = seed.connection.execute("select id from offsets_alertrule").fetchone()
    assert row is not None
    address = f"/alerts/rules/{row[0]}"
    html = page(operator, address)
    for field in ('value="10000"', 'value="5 min"', 'value="4 h"', 'value="stuck" checked', 'value="oncall" checked'):
        assert field in html
    change = {**FORM, "act": "save", "min_lag": "", "min_time_lag_ms": "90 s", "remind_ms": "", "receivers": ["chat"]}
    del change["enabled"]
    operator.post(address, change)
    assert [found[4:8] + found[9:] for found in rules(seed)] == [(None, 90_000, 300_000, 0, ["chat"], False)]
    refused = operator.post(address, {"act": "delete"})
    assert refused.status_code == 400
    assert len(rules(seed)) == 1
    operator.post(address, {"act": "delete", "sure": "yes"})
    assert rules(seed) == []
    assert operator.get(address).status_code == 404
    assert operator.get("/alerts/rules/99999999999999999999").status_code == 404


@pytest.mark.parametrize(
    ("field", "written", "said"),
    [
        ("name", "", "1 to 100 printable characters"),
        ("name", "taken", "There is a rule 'taken' already"),
        ("min_lag", "many", "Write a whole number of records."),
        ("min_lag", "0", "Must be at least 1"),
        ("min_time_lag_ms", "5 weeks", "Write a length such as 5 min"),
        ("for_ms", "-1", "Write a length such as 5 min"),
        ("for_ms", "60 days", "At most 30 days."),
        ("remind_ms", "5 s", "At least 1 min; empty: only once."),
        ("receivers", [], "Name at least one"),
        ("receivers", ["nobody"], "'nobody' is not known"),
        ("verdicts", [], "A rule needs a condition"),
        ("pattern", "regex", "Must be one of"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    operator: Client, seed: Seed, field: str, written: object, said: str
) -> None:
    put_rule(seed.connection, "taken")
    lag = {"min_lag": ""} if field == "verdicts" else {}
    answer = operator.post(NEW, {**FORM, **lag, field: written})
    html = answer.content.decode()
    assert answer.status_code == 400
    found = re.search(rf'id="{field}-problem">([^<]*)<', html)
    assert found is not None
    assert said in unescape(found[1])
    assert 'value="stalled" checked' in html or field == "verdicts", "the form is as it was filled in"
    assert len(rules(seed)) == 1


def previewed(who: Client, address: str, form: dict[str, object]) -> str:
    return re.sub(r" ([.,])", r"\1", plain(who.post(address, {**form, "act": "preview"}).content.decode()))


def test_a_preview_says_what_the_rule_would_find_and_stores_nothing(operator: Client, seed: Seed) -> None:
    stuck, fresh, late, well = (seed.group(f"billing-{name}") for name in ("stuck", "fresh", "late", "well"))
    seed.group("shipping")
    verdict(seed, stuck, "stuck", ms_ago=HOUR)
    verdict(seed, fresh, "stalled", ms_ago=60_000)
    seed.group_lag(late, 20_000)
    seed.group_lag(well, 9_999)
    asked = {**FORM, "name": "another"}
    told = previewed(operator, NEW, asked)
    assert "It is about 4 groups now. 1 would have an alert at the next check: billing-stuck." in told
    assert "For 2 more groups a condition holds, which has not lasted 5 min yet." in told
    at_once = previewed(operator, NEW, {**asked, "for_ms": ""})
    assert "3 would have an alert at the next check: billing-fresh, billing-late, billing-stuck." in at_once
    one = previewed(operator, NEW, {**asked, "pattern": "literal", "group_name": "billing-well"})
    assert "It is about 1 group now. None of them would have an alert at the next check: the" in one
    seed.connection.execute(
        "insert into groups_grouplabels (group_name, labels, updated_at, updated_by)"
        """ values ('billing-stuck', '{"owner": "lea"}', 0, 'mara'), ('shipping', '{"owner": "lea"}', 0, 'mara')"""
    )
    labelled = previewed(operator, NEW, {**asked, "label": "owner=lea"})
    assert "It is about 1 group now. 1 would have an alert at the next check: billing-stuck." in labelled
    assert "Write a whole number of records." in operator.post(NEW, {**asked, "min_lag": "many"}).content.decode()
    assert rules(seed) == []
    made = put_rule(seed.connection)
    again = previewed(operator, f"/alerts/rules/{made}", {**FORM})
    assert "It is about 4 groups now. 1 would have" in again
    assert rules(seed)[0][0] == "billing stands still"


def test_a_preview_counts_the_groups_that_its_author_sees(client: Client, seed: Seed) -> None:
    for name in ("billing", "billing-hidden"):
        verdict(seed, seed.group(name), "stuck", ms_ago=HOUR)
    ines = account("admin:cluster:*", "describe:group:billing", "deny:describe:cluster:*")
    told = previewed(ines, NEW, {**FORM})
    assert "1 would have an alert at the next check: billing." in told
    assert "billing-hidden" not in told


def test_a_rule_can_be_for_the_groups_with_a_label(operator: Client, seed: Seed) -> None:
    form = {**FORM, "group_name": "", "label": " owner=payments "}
    assert "A label name has 1 to 63 characters" in operator.post(NEW, {**form, "label": "=x"}).content.decode()
    operator.post(NEW, form)
    ((number, label),) = seed.connection.execute("select id, label from offsets_alertrule").fetchall()
    assert label == "owner=payments"
    html = page(operator, f"/alerts/rules/{number}")
    assert "All groups with the label owner=payments" in plain(html)
    assert 'name="label" value="owner=payments"' in html
    operator.post(f"/alerts/rules/{number}", {**form, "label": "", "act": "save"})
    assert seed.connection.execute("select label from offsets_alertrule").fetchall() == [("",)]


def test_a_rule_for_one_group_takes_admin_on_it(client: Client, seed: Seed) -> None:
    owner = account("admin:group:billing", "describe:group:*")
    said = plain(page(owner, NEW))
    assert owner.post(NEW, {**FORM, "pattern": "literal"}).status_code == 302
    refused = owner.post(NEW, {**FORM, "name": "other", "pattern": "literal", "group_name": "other"})
    assert refused.status_code == 403
    assert owner.post(NEW, {**FORM, "name": "all"}).status_code == 403
    assert [found[0] for found in rules(seed)] == ["billing stands still"]
    others = put_rule(seed.connection, "of others", pattern="literal", group_name="other")
    said = plain(page(owner, "/alerts"))
    assert "Group billing:" in said
    assert "of others" not in said
    assert owner.get(f"/alerts/rules/{others}").status_code == 403


def test_who_may_only_look_sees_the_form_disabled(person: Client, seed: Seed) -> None:
    rule = put_rule(seed.connection)
    html = page(person, f"/alerts/rules/{rule}")
    assert "disabled" in button(html, "save")
    assert "disabled" in button(html, "delete")
    assert "your account needs admin on the cluster" in plain(html)
    assert person.post(f"/alerts/rules/{rule}", {"act": "delete", "sure": "yes"}).status_code == 403
    assert len(rules(seed)) == 1


def test_an_alert_is_muted_for_a_while(operator: Client, seed: Seed) -> None:
    alert = put_alert(seed.connection, put_rule(seed.connection), "billing", at=now_ms())

    def muted() -> object:
        row = seed.connection.execute("select muted_until, muted_by from offsets_alert").fetchone()
        assert row is not None
        return row

    answer = operator.post("/alerts", {"act": "mute", "alert": alert, "duration_ms": 8 * HOUR}, follow=True)
    assert "Alerts on billing are muted for 8 hours." in plain(answer.content.decode())
    until, by = muted()  # type: ignore[misc]
    assert (round((until - now_ms()) / HOUR), by) == (8, "root")
    assert button(answer.content.decode(), "unmute")
    answer = operator.post("/alerts", {"act": "unmute", "alert": alert}, follow=True)
    assert "The mute of billing ended." in plain(answer.content.decode())
    assert muted() == (None, "")
    for wrong in ({"duration_ms": "5"}, {"duration_ms": ""}, {"alert": "x"}, {"act": "x"}):
        form = {"act": "mute", "alert": alert, "duration_ms": HOUR, **wrong}
        assert operator.post("/alerts", form).status_code == 400
    assert operator.post("/alerts", {"act": "mute", "alert": alert + 1, "duration_ms": HOUR}).status_code == 404
    assert muted() == (None, "")


def test_muting_takes_admin_on_the_group(client: Client, seed: Seed) -> None:
    rule = put_rule(seed.connection)
    own, other = (put_alert(seed.connection, rule, name, at=now_ms()) for name in ("billing-a", "billing-b"))
    owner = account("admin:group:billing-a", "describe:group:*")
    assert owner.post("/alerts", {"act": "mute", "alert": own, "duration_ms": HOUR}).status_code == 302
    assert owner.post("/alerts", {"act": "mute", "alert": other, "duration_ms": HOUR}).status_code == 403
    reader = account("describe:group:*", name="noa")
    assert reader.post("/alerts", {"act": "mute", "alert": own, "duration_ms": HOUR}).status_code == 403
    assert reader.post("/alerts", {"act": "x"}).status_code == 403


async def _take(*_: object, **__: object) -> None:
    """Any message."""


async def _refuse(*_: object, **__: object) -> None:
    raise SendError("the answer was 500")


@pytest.mark.parametrize(
    ("send", "said"),
    [
        (_take, "oncall took the test."),
        (_refuse, "The test to oncall was not taken: the answer was 500."),
    ],
)
def test_a_test_says_what_came_of_it(
    operator: Client, monkeypatch: pytest.MonkeyPatch, send: Callable[..., Awaitable[None]], said: str
) -> None:
    monkeypatch.setattr(Receiver, "send", send)
    answer = operator.post("/alerts", {"act": "test", "receiver": "oncall"}, follow=True)
    assert answer.status_code == 200
    assert said in plain(answer.content.decode())
    assert operator.post("/alerts", {"act": "test", "receiver": "nobody"}).status_code == 404


def test_receivers_and_messages_without_addresses(person: Client, seed: Seed) -> None:
    now = now_ms()
    put_message(seed.connection, "oncall", at=now)
    put_message(seed.connection, "chat", at=now, sent=False, next_at=now + 60_000, error="the answer was 500")
    put_message(seed.connection, "chat", at=now, sent=False, error="no answer within 10 s", attempts=6)
    html = page(person, "/alerts")
    said = plain(html)
    assert "oncall webhook" in said
    assert "chat json" in said
    assert "127.0.0.1:9" not in html
    assert "1 sent, 1 waiting for 0 s , 1 failed" in re.sub(r"for \d+ s", "for 0 s", said)
    assert "chat opened 2 groups Waiting the answer was 500" in said
    assert "Failed no answer within 10 s 6 attempts" in said
    assert "disabled" in button(html, "test")
    assert "your account needs admin on the cluster" in said
    assert person.post("/alerts", {"act": "test", "receiver": "oncall"}).status_code == 403


def test_a_file_of_receivers_that_cannot_be_used_is_said(
    operator: Client, settings: SettingsWrapper, tmp_path: Path
) -> None:
    settings.KCOORD = settings.KCOORD.override({"alerts.receivers.file": str(tmp_path / "missing.toml")})
    assert "cannot be read" in plain(page(operator, "/alerts"))
    assert "cannot be read" in plain(page(operator, NEW))


def test_the_page_of_a_group_fills_in_a_rule(operator: Client, person: Client, seed: Seed) -> None:
    working_group(seed)
    html = page(person, "/groups/billing")
    assert "your account needs admin on group billing" in html
    operator.force_login(get_user_model().objects.get(username="root"))
    link = re.search(r'href="(/alerts/rules/new[?][^"]*)">Alert on this', page(operator, "/groups/billing"))
    assert link is not None
    html = page(operator, unescape(link[1]))
    assert '<option value="literal" selected>' in html
    assert 'name="group_name" value="billing"' in html
    assert re.search(r'name="min_lag" value="[1-9]\d*000?"', html)
    assert '"group_name": "billing"' in commands(html)["Create the rule"]["curl"]


@pytest.mark.parametrize(
    ("lag", "suggested"), [(None, 1_000), (0, 1_000), (99, 1_000), (101, 1_100), (1_234, 13_000), (500_000, 5_000_000)]
)
def test_ten_times_the_lag_is_suggested(lag: int | None, suggested: int) -> None:
    assert suggested_lag(lag) == suggested


@pytest.mark.parametrize(
    ("written", "ms"),
    [("5", 300_000), ("5 min", 300_000), ("90s", 90_000), ("4 H", 4 * HOUR), ("2 days", 48 * HOUR), ("0", 0),
     ("5 x", None), ("", None), ("-1", None), ("1.5 h", None), ("999999999999", None)],
)  # fmt: skip
def test_lengths_are_read(written: str, ms: int | None) -> None:
    assert milliseconds(written) == ms


@pytest.mark.parametrize("ms", [0, 1, 999, 1_000, 90_000, 300_000, 4 * HOUR])
def test_lengths_are_written_so_that_they_are_read_again(ms: int) -> None:
    assert milliseconds(length(ms)) == ms


ADDED = {
    "act": "add",
    "name": "hook",
    "kind": "webhook",
    "address": "http://ops.example/kept-back",
    "secret": "kept-back too",
}


def test_a_receiver_is_added_replaced_and_deleted(operator: Client, seed: Seed) -> None:
    html = operator.post("/alerts", ADDED, follow=True).content.decode()
    assert "Added hook. Send it a test." in plain(html)
    assert "hook webhook added here Send a test to hook" in plain(html)
    assert "oncall webhook the file Send a test to oncall" in plain(html)
    assert not re.search("kept-back", html)
    assert 'value="hook"' in page(operator, NEW), "rules can name it"
    operator.post("/alerts", {**ADDED, "kind": "url", "address": "json://ops.example", "secret": ""})
    assert "hook json added here" in plain(page(operator, "/alerts"))
    refused = operator.post("/alerts", {"act": "remove", "receiver": "hook"})
    assert (refused.status_code, "tick the box" in plain(refused.content.decode())) == (400, True)
    put_rule(seed.connection, "of hook", receivers=["hook"])
    refused = operator.post("/alerts", {"act": "remove", "receiver": "hook", "sure": "yes"})
    assert (refused.status_code, "have to change first: of hook" in plain(refused.content.decode())) == (409, True)
    seed.connection.execute("delete from offsets_alertrule")
    answer = operator.post("/alerts", {"act": "remove", "receiver": "hook", "sure": "yes"}, follow=True)
    assert "Deleted hook." in plain(answer.content.decode())
    assert "hook webhook" not in plain(page(operator, "/alerts"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "a b"}, "a name has 1 to 64 letters"),
        ({"name": "oncall"}, "receiver 'oncall' is in the file of receivers"),
        ({"address": "kept-back"}, "webhook is not an http or https address"),
        ({"address": ""}, "give either a webhook or a url"),
        ({"kind": "url"}, "a secret belongs to a webhook"),
        ({"kind": "url", "secret": "", "address": "syslog://kept-back"}, "only the file may have it"),
        ({"kind": "color"}, "give either a webhook or a url"),
    ],
)
def test_what_is_wrong_with_a_receiver(operator: Client, seed: Seed, change: dict[str, str], said: str) -> None:
    answer = operator.post("/alerts", {**ADDED, **change})
    html = answer.content.decode()
    assert (answer.status_code, said in plain(html)) == (409 if "file of" in said else 400, True)
    assert f'value="{({**ADDED, **change})["name"]}"' in html, "but for the address, the form is as it was filled in"
    assert "kept-back" not in html
    assert seed.connection.execute("select 1 from offsets_alertreceiver").fetchall() == []


def test_a_receiver_whose_address_is_lost_says_what_to_do(operator: Client, seed: Seed) -> None:
    put_receiver(seed.connection, "hook")
    put_receiver(seed.connection, "chat")
    said = plain(page(operator, "/alerts"))
    assert re.search("hook webhook added here its address .* enter its address again", said)
    assert "chat json the file another of this name was added and is not used" in said
    tested = operator.post("/alerts", {"act": "test", "receiver": "hook"})
    assert "The test to hook was not taken: its address was encrypted" in plain(tested.content.decode())
    assert "hook its address was encrypted" in plain(page(operator, NEW))


def test_who_may_not_add_receivers_has_no_form(person: Client, seed: Seed) -> None:
    put_receiver(seed.connection, "hook")
    html = page(person, "/alerts")
    assert "hook webhook added here" in plain(html)
    assert 'value="add"' not in html
    assert 'value="remove"' not in html
    for form in (ADDED, {"act": "remove", "receiver": "hook", "sure": "yes"}):
        assert person.post("/alerts", form).status_code == 403
