"""The admin of offsets: the journal by group and day, plans and producers with what belongs to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

import kcoord.urls  # noqa: F401 - registers the pages of the admin
from offsets.core.days import DAY_MS
from offsets.models import OffsetCommitLog, OffsetPlan, Producer
from tests.frontend.seed import Seed
from tests.support.spark_runs import put_day, put_finding, put_run

JOURNAL = "admin:offsets_offsetcommitlog_changelist"
PLAN_ID = "3f0e6a52-6f3b-4c8e-9a53-0d9c1f4b7a11"


@pytest.fixture(autouse=True)
def journal(seed: Seed) -> None:
    """A commit of each of the last ten days, and a reset today, of a group whose name has a blank."""
    midnight = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)
    for days_ago in range(10):
        at = int((midnight - timedelta(days=days_ago)).timestamp() * 1000)
        seed.connection.execute(
            "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset)"
            " values (%s, 'commit', 'my group', 'orders', 0, %s)",
            (at, 7_000 + days_ago),
        )
    seed.connection.execute(
        "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset)"
        " values (%s, 'reset', 'my group', 'orders', 0, 7999)",
        (int(midnight.timestamp() * 1000),),
    )


def listed(operator: Client, query: str) -> list[int]:
    """The offsets of a list, in order."""
    response = operator.get(f"{reverse(JOURNAL)}?{query}")
    assert response.status_code == 200
    return [row.committed_offset for row in response.context["cl"].result_list]


def test_the_journal_of_a_group_by_day_and_kind(operator: Client) -> None:
    assert listed(operator, "q=my+group") == [7_999, *range(7_000, 7_010)]
    assert listed(operator, "q=my+group&day=today") == [7_999, 7_000]
    assert listed(operator, "q=my+group&day=yesterday") == [7_001]
    assert listed(operator, "q=my+group&day=week&kind=commit") == list(range(7_000, 7_007))
    assert listed(operator, "q=my+group&day=nonsense&kind=expire") == []
    assert listed(operator, "q=group") == []


def test_nothing_is_read_before_a_group_is_named(operator: Client) -> None:
    for query in ("", "day=today", "kind=reset"):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert listed(operator, query) == []
        assert not [query for query in queries if "offset_commit_log" in query["sql"]]


def test_the_days_chosen_are_the_only_ones_read(operator: Client) -> None:
    with CaptureQueriesContext(connection) as queries:
        listed(operator, "q=my+group&day=yesterday")
    (statement,) = (query["sql"] for query in queries if 'FROM "offset_commit_log"' in query["sql"])
    assert '"at" >= ' in statement
    assert '"at" < ' in statement
    assert "UPPER" not in statement, "by the index"


def test_a_line_has_no_page_of_its_own(operator: Client) -> None:
    line = OffsetCommitLog.objects.order_by("id").first()
    assert line is not None
    with CaptureQueriesContext(connection) as queries:
        answer = operator.get(reverse("admin:offsets_offsetcommitlog_change", args=[line.pk]))
    assert answer.status_code == 302
    assert not [query for query in queries if 'FROM "offset_commit_log"' in query["sql"]]


def test_a_plan_shows_its_offsets(operator: Client, seed: Seed) -> None:
    seed.connection.execute(
        "insert into offsets_offsetplan (id, group_name, strategy, parameters, totals, state, reason, created_at,"
        " created_by) values (%s, 'g', 'to-offset', '{}', '{}', 'planned', '', %s, 'anna')",
        (PLAN_ID, DAY_MS),
    )
    seed.connection.execute(
        "insert into offsets_plannedoffset (plan_id, topic, partition, old_offset, new_offset, requested_offset,"
        " old_leader_epoch, old_metadata, note) values (%s, 'orders', 3, null, 4711, 99999, -1, '', 'clamped')",
        (PLAN_ID,),
    )
    page = operator.get(reverse("admin:offsets_offsetplan_change", args=[PLAN_ID])).content.decode()
    for text in ("4711", "99999", "clamped", "1970-01-02 00:00:00.000 UTC"):
        assert text in page
    assert OffsetPlan.objects.count() == 1


def test_a_producer_shows_what_is_pending(operator: Client, seed: Seed) -> None:
    group = seed.group("g")
    seed.connection.execute("insert into offsets_producer values (4, 'txn-1', 0, 1700000000000)")
    seed.connection.execute(
        "insert into offsets_pendingoffset (producer_id, group_id, topic, partition, committed_offset, leader_epoch,"
        " metadata, commit_timestamp, opened_at, record_offset, member_id, generation_id, client_id, principal)"
        " values (4, %s, 'orders', 3, 4711, -1, '', 1, 1, 1, '', -1, '', '')",
        (group,),
    )
    page = operator.get(reverse("admin:offsets_producer_change", args=[4])).content.decode()
    assert "4711" in page
    assert ">orders</td>" in page
    assert Producer.objects.count() == 1


def test_a_run_shows_its_days_and_what_it_found(operator: Client, seed: Seed) -> None:
    run = put_run(seed.connection, "reconcile", findings=1)
    put_day(seed.connection, run, 20_000)
    put_finding(seed.connection, run, 1, "rewind", expected=4711, found=None, evidence={"journal_ids": [81, 82]})
    page = operator.get(reverse("admin:offsets_sparkrun_change", args=[run])).content.decode()
    for text in ("2024-10-04", "rewind", "4711", "[81, 82]", ">–</td>"):
        assert text in page, text


def test_every_page_of_offsets_is_only_shown() -> None:
    for model, page in admin.site._registry.items():
        if model._meta.app_label == "offsets":
            assert not any((page.has_add_permission(None), page.has_change_permission(None), page.actions))
