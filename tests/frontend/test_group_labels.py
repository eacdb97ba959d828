"""Labels of groups on the pages: where they are shown, who may change them, and which values become links."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from frontend.ui.labels import MOST_SHOWN, link_of, shown, whom_to_call
from kcoord.control.rest.labels import MAX_LABELS
from tests.frontend.seed import Seed
from tests.frontend.verdict_seed import troubled
from tests.frontend.viewers import allow

URL = "/groups/idle/labels"
RUNBOOK = "https://wiki.example.com/billing?a=1&b=2"


@pytest.fixture
def idle(seed: Seed) -> Seed:
    """An empty group, `idle`."""
    seed.group("idle", "Empty", protocol=None)
    return seed


def label(seed: Seed, group_id: str, **labels: str) -> None:
    """Give a group labels."""
    seed.connection.execute(
        "insert into groups_grouplabels (group_name, labels, updated_at, updated_by) values (%s, %s, 0, 'ann')",
        [group_id, Jsonb(labels)],
    )


def labels_of(seed: Seed, group_id: str = "idle") -> dict[str, str]:
    """The labels that are stored."""
    row = seed.connection.execute("select labels from groups_grouplabels where group_name = %s", [group_id]).fetchone()
    return {} if row is None else dict(row[0])


def told(answer: Any) -> str:
    """The page without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


@pytest.mark.parametrize(
    ("value", "is_link"),
    [
        (RUNBOOK, True),
        ("http://10.0.0.7:8080/x#y", True),
        ("HTTPS://Wiki.example.com", True),
        ("javascript:alert(1)", False),
        ("javascript://wiki.example.com/%0aalert(1)", False),
        ("data:text/html,x", False),
        ("//wiki.example.com", False),
        ("https:wiki.example.com", False),
        ("https://", False),
        ("https://user@evil.example.com", False),
        ("https://wiki.example.com:99999", False),
        ("https://[::1", False),
        ("https://wiki.example.com/a b", False),
        ("java\tscript://x", False),
        ("https://wiki.example.com\\@evil.example.com", False),
        ("https://wiki.example.com/\u202egro", False),
        ("call 555", False),
    ],
)
def test_only_plain_web_addresses_are_links(value: str, is_link: bool) -> None:
    assert link_of(value) == (value if is_link else "")


@given(st.text() | st.text().map("https://".__add__) | st.text().map("javascript:".__add__))
def test_a_link_leads_where_it_says(value: str) -> None:
    link = link_of(value)
    assert link in ("", value)
    assert not link or (urlsplit(link).scheme in ("http", "https") and "@" not in urlsplit(link).netloc)


def test_conventional_labels_come_first() -> None:
    found = shown({"zone": "b", "runbook": "r", "app": "a", "owner": "o", "team": ""})
    assert [one.name for one in found] == ["owner", "team", "runbook", "app", "zone"]
    assert [one.text for one in whom_to_call({"team": "money", "runbook": "r", "app": "a"})] == [
        "team=money",
        "runbook=r",
    ]
    assert whom_to_call({"app": "a", "owner": ""}) == []


def test_the_head_of_a_group_has_its_labels(person: Client, idle: Seed) -> None:
    label(idle, "idle", owner="<b>ann</b>", runbook=RUNBOOK, contact="javascript:alert(1)")
    page = person.get("/groups/idle").content.decode()
    attributes = f'href="{html.escape(RUNBOOK)}" rel="external noopener noreferrer" title="{html.escape(RUNBOOK)}"'
    assert f"{attributes}>Runbook</a>" in page
    assert "&lt;b&gt;ann&lt;/b&gt;" in page
    assert 'href="javascript' not in page
    assert 'href="/groups?label=owner%3D%3Cb%3Eann%3C%2Fb%3E"' in page
    many = {f"l{number:02}": "x" for number in range(MOST_SHOWN + 3)}
    idle.group("many", "Empty", protocol=None)
    label(idle, "many", **many)
    assert "3 more" in told(person.get("/groups/many"))
    assert "Labels owner &lt;" not in told(person.get("/groups/many/config"))


def test_labels_are_set_changed_and_removed(operator: Client, idle: Seed) -> None:
    form = {"label:owner": " ann ", "shown:owner": "", "label:team": "", "shown:team": ""}
    page = told(operator.post(URL, {**form, "name": ["zone", ""], "value": ["b", ""]}, follow=True))
    assert "Changed owner and zone." in page
    assert "Changed by root" in page
    assert labels_of(idle) == {"owner": "ann", "zone": "b"}
    stale = {"label:owner": "", "shown:owner": "", "label:zone": "", "shown:zone": "b"}
    operator.post(URL, stale)
    assert labels_of(idle) == {"owner": "ann"}, "what somebody else set meanwhile stays"
    assert "No label was changed." in told(
        operator.post(URL, {"label:owner": "ann", "shown:owner": "ann"}, follow=True)
    )
    assert "Labels changed: zone removed, by root" in told(operator.get("/groups/idle"))


def test_a_label_can_have_an_empty_value(operator: Client, idle: Seed) -> None:
    operator.post(URL, {"name": ["critical", ""], "value": [" ", ""]})
    assert labels_of(idle) == {"critical": ""}, "as over REST"
    page = operator.get(URL).content.decode()
    assert 'name="label:critical" value="" placeholder="(empty)"' in page
    assert page.count('name="remove:') == 1, "an emptied field removes the labels that have a value"
    form = {"label:critical": "", "shown:critical": ""}
    operator.post(URL, form)
    assert labels_of(idle) == {"critical": ""}
    operator.post(URL, {**form, "label:critical": "yes", "remove:critical": "yes"})
    assert labels_of(idle) == {"critical": "yes"}, "what was written counts"
    label_again = {"label:critical": "yes", "shown:critical": "yes", "name": "critical", "value": ""}
    operator.post(URL, label_again)
    assert labels_of(idle) == {"critical": ""}
    refused = operator.post(URL, {**form, "remove:critical": "yes", "label:owner": "x" * 256})
    assert re.search(r'name="remove:critical" value="yes" checked', refused.content.decode())
    operator.post(URL, {**form, "remove:critical": "yes"})
    assert labels_of(idle) == {}


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"name": [""], "value": ["b"]}, "Write the name of the label with the value 'b'."),
        ({"name": ["n" * 64], "value": ["b"]}, "a label name has 1 to 63 characters"),
        ({"label:owner": "x" * 256}, "a label value has at most 255 characters"),
        ({f"label:l{number}": "x" for number in range(MAX_LABELS + 1)}, "there are 66 labels; at most 64"),
    ],
)
def test_a_refused_form_keeps_what_was_written(operator: Client, idle: Seed, form: dict[str, Any], says: str) -> None:
    answer = operator.post(URL, {"label:team": "money", **form})
    assert answer.status_code == 400
    assert says in told(answer)
    assert 'value="money"' in answer.content.decode()
    assert labels_of(idle) == {}


def test_who_may_not_change_them_may_look_and_is_told_why(person: Client, idle: Seed) -> None:
    label(idle, "idle", owner="ann")
    page = person.get(URL).content.decode()
    assert "your account needs admin on group idle" in page
    assert 'value="ann" maxlength="255" autocomplete="off" spellcheck="false" disabled' in page
    assert person.post(URL, {"label:owner": "me", "shown:owner": "ann"}).status_code == 403
    allow(get_user_model().objects.get(username="mara"), "admin:group:idle")
    assert person.post(URL, {"label:owner": "me", "shown:owner": "ann"}).status_code == 302
    assert labels_of(idle) == {"owner": "me"}


def test_the_list_has_columns_and_a_filter(person: Client, idle: Seed) -> None:
    label(idle, "idle", owner="ann", runbook=RUNBOOK)
    idle.group("other", "Empty", protocol=None)
    assert 'data-label="Owner"' not in person.get("/groups").content.decode()
    page = person.get("/groups?columns=owner.labels").content.decode()
    assert re.findall(r'data-label="Owner" class="topics"><span[^>]*>([^<]*)<', page) == ["ann", "–"]
    assert f'href="{html.escape(RUNBOOK)}"' in page
    page = person.get("/groups?label=owner%3Dann").content.decode()
    assert re.findall(r'class="row-link" href="/groups/(\w+)"', page) == ["idle"]
    rows = list(csv.DictReader(io.StringIO(b"".join(person.get("/groups.csv")).decode())))
    assert [(row["owner"], row["labels"]) for row in rows] == [
        ("ann", json.dumps({"owner": "ann", "runbook": RUNBOOK})),
        ("", ""),
    ]


def test_the_overview_says_whom_to_call(person: Client, seed: Seed) -> None:
    troubled(seed)
    judged = (
        "select distinct g.group_id from offsets_groupverdict v join groups_group g on g.id = v.group_id order by 1"
    )
    group_id = seed.connection.execute(judged).fetchall()[0][0]
    label(seed, group_id, team="money", runbook=RUNBOOK, zone="b")
    page = person.get("/").content.decode()
    need = page.partition(f'href="/groups/{group_id}')[2].partition("</li></ul>")[0]
    assert '<span class="label-value" title="money">money</span>' in need
    assert f'href="{html.escape(RUNBOOK)}"' in need
    assert page.count('class="labels"') == 1
    assert ">zone<" not in page


def test_snapshots_have_labels(person: Client, idle: Seed) -> None:
    label(idle, "idle", zone="b", owner="a|b")
    taken = json.loads(person.get("/groups/idle/snapshot.json").content)
    assert list(taken["labels"].items()) == [("owner", "a|b"), ("zone", "b")]
    assert "\n- owner: a\\|b\n- zone: b\n" in person.get("/groups/idle/snapshot.md").content.decode()


def test_the_search_finds_values(person: Client, idle: Seed) -> None:
    idle.group("other", "Empty", protocol=None)
    label(idle, "idle", owner="payments", zone="pay")
    label(idle, "other", owner="payments", team="x")
    label(idle, "absent", owner="payments and more")
    page = person.get("/search", {"q": "PAYM"}).content.decode()
    assert "/groups?label=owner%3Dpayments" in page
    assert "label of 2 groups" in page
    assert "and more" not in page, "a group that does not exist is not found"
    assert "label of idle" in person.get("/search", {"q": "zone=pa"}).content.decode()
    assert "Labels of groups" not in person.get("/search", {"q": "zone"}).content.decode(), "names alone are too common"


class TestSeveralGroups:
    def test_they_get_labels_together(self, operator: Client, idle: Seed) -> None:
        idle.group("other", "Empty", protocol=None)
        label(idle, "other", team="x", zone="b")
        form = {"act": "labels", "group": ["idle", "other", "absent"]}
        review = told(operator.get("/group-actions", form))
        assert "Label: 2 groups" in review
        assert "There is no such group" in review
        lines = {"name": ["owner", "team", "critical"], "value": ["ann", "", " "], "removed": "1"}
        answer = operator.post("/group-actions", {**form, **lines})
        assert "Changed owner, team and critical." in told(answer)
        assert labels_of(idle) == {"owner": "ann", "critical": ""}
        assert labels_of(idle, "other") == {"owner": "ann", "critical": "", "zone": "b"}

    def test_a_name_alone_removes_nothing(self, operator: Client, idle: Seed) -> None:
        label(idle, "idle", team="x")
        operator.post("/group-actions", {"act": "labels", "group": "idle", "name": "team", "value": ""})
        assert labels_of(idle) == {"team": ""}

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ({"name": "", "value": ""}, "Write the name of a label: nothing was changed."),
            ({"name": "", "value": "x"}, "Write the name of the label with the value"),
            ({"name": "", "value": "", "removed": "0"}, "Write the name of the label to remove."),
            ({"name": "team", "value": "x", "removed": "0"}, "Label 'team': clear its value to remove it, or untick"),
            ({"name": "n" * 64, "value": "x"}, "a label name has 1 to 63 characters"),
        ],
    )
    def test_nothing_is_changed_without_a_label(
        self, operator: Client, idle: Seed, line: dict[str, str], says: str
    ) -> None:
        answer = operator.post("/group-actions", {"act": "labels", "group": "idle", **line})
        assert (answer.status_code, says in told(answer)) == (400, True)
        assert ('name="removed" value="0" checked' in answer.content.decode()) == ("removed" in line)
        assert labels_of(idle) == {}

    def test_it_takes_admin(self, person: Client, idle: Seed) -> None:
        allow(get_user_model().objects.get(username="mara"), "admin:group:idle")
        idle.group("other", "Empty", protocol=None)
        form = {"act": "labels", "group": ["idle", "other"], "name": "owner", "value": "ann"}
        assert "your account needs admin on group other" in told(person.post("/group-actions", form))
        assert (labels_of(idle), labels_of(idle, "other")) == ({"owner": "ann"}, {})
