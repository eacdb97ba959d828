"""The audit: a hash chain of records that the database seals when a transaction commits."""

from __future__ import annotations

from pathlib import Path

from django.db import migrations, models

import kcoord.database.fields

CHAIN = (Path(__file__).parent / "sql" / "0012_audit.sql").read_text(encoding="utf-8")
NO_CHAIN = """
drop trigger kcoord_audit_guard_rows on kcoord_auditrecord;
drop trigger kcoord_audit_guard_table on kcoord_auditrecord;
drop function kcoord_audit_guard();
drop function kcoord_audit_trim(bigint, bigint);
drop function kcoord_audit_append(bigint, text, text, text, text, text, text, text, text, text, text, text, text, text,
                                  text, integer);
drop table kcoord_auditpending;
drop function kcoord_audit_seal();
drop function kcoord_audit_digest(kcoord_auditrecord);
drop function kcoord_audit_field(text, text);
"""


class Migration(migrations.Migration):
    dependencies = [("kcoord", "0011_quotas")]
    operations = [
        migrations.CreateModel(
            name="AuditRecord",
            fields=[
                ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
                ("prev", models.BinaryField()),
                ("hash", models.BinaryField()),
                ("at", kcoord.database.fields.MillisField()),
                ("kind", models.TextField()),
                ("principal", models.TextField()),
                ("principal_id", models.TextField()),
                ("address", models.TextField()),
                ("request_id", models.TextField()),
                ("door", models.TextField()),
                ("act", models.TextField()),
                ("resource", models.TextField()),
                ("name", models.TextField()),
                ("before", models.TextField(null=True)),
                ("after", models.TextField(null=True)),
                ("reason", models.TextField()),
                ("result", models.TextField()),
                ("error", models.TextField()),
                ("count", models.IntegerField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["at"], name="kcoord_audit_by_time"),
                    models.Index(fields=["resource", "name", "seq"], name="kcoord_audit_by_name"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditChain",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False),
                ),
                ("seq", models.BigIntegerField()),
                ("hash", models.BinaryField()),
                ("removed_through", models.BigIntegerField()),
                ("removed_hash", models.BinaryField()),
                ("removed", models.BigIntegerField()),
                ("removed_at", kcoord.database.fields.MillisField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="kcoord_auditchain_one_row")
                ],
            },
        ),
        migrations.RunSQL(CHAIN, NO_CHAIN),
    ]
