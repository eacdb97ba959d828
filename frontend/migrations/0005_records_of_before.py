"""What was recorded before there was an audit becomes its beginning: the page has one source, and shows it all.

Events with the name of a person or token, plans, deleted topics, Spark runs and the admin's log are put into the chain
in the order of their times, with the door `import`. Where they came from is not known. The chain vouches for them from
now on only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.db import migrations

BEFORE = (Path(__file__).parent / "sql" / "0005_records_of_before.sql").read_text(encoding="utf-8")

ACTS = {
    "offsets_reset": "offsets.apply",
    "offsets_restored": "offsets.undo",
    "offsets_deleted": "offsets.delete",
    "member_removed": "member.remove",
    "group_held": "group.hold",
    "hold_released": "group.release",
    "config_changed": "group.config",
    "retention_pinned": "offsets.pin",
    "retention_unpinned": "offsets.unpin",
    "group_deleted": "group.delete",
    "plan_made": "offsets.plan",
    "run_requested": "run.start",
    "topic_deleted": "topic.delete",
    "admin_1": "row.create",
    "admin_2": "row.change",
    "admin_3": "row.delete",
}
RESOURCES = {"event": "group", "plan": "group", "run": "run", "topic": "topic", "admin": "row"}
APPEND = (
    "select kcoord_audit_append(%s, 'unknown', %s, '', '', '', 'import', %s, %s, %s, null, %s, %s, 'done', '', 1)"
)
ROWS = 500


def bring_in(apps: Any, schema_editor: Any) -> None:
    """Append the old records."""
    connection = schema_editor.connection
    with connection.chunked_cursor() as old, connection.cursor() as new:
        old.execute(BEFORE)
        while rows := old.fetchmany(ROWS):
            for at, source, who, act, name, member_id, written in rows:
                detail = written if isinstance(written, dict) else json.loads(written or "{}")
                reason = str(detail.pop("reason", "") or "")
                detail.pop("principal", None)
                if member_id:
                    detail["member_id"] = member_id
                after = json.dumps(detail, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
                values = [at, who, ACTS.get(act, act), RESOURCES[source], name, after if detail else None, reason]
                new.execute(APPEND, values)


class Migration(migrations.Migration):
    dependencies = [
        ("frontend", "0004_sessions_notify"),
        ("kcoord", "0012_audit"),
        ("groups", "0016_events_of_people"),
        ("offsets", "0016_lag_by_topic"),
        ("admin", "0003_logentry_add_action_flag_choices"),
    ]
    operations = [migrations.RunPython(bring_in, migrations.RunPython.noop)]
