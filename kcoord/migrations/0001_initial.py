"""Tokens, rules, quotas, the audit, counters, and the queue that Celery uses by default."""

from pathlib import Path

import django.db.models.deletion
import kcoord.database.fields
from django.conf import settings
from django.db import migrations, models
from pgmq.install import get_embedded_install_sql


SQL = Path(__file__).parent / "sql"


def install_pgmq(apps, schema_editor):
    """Celery's queue lives in the same Postgres. A schema that is there already (the extension, say) is left alone."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("select to_regnamespace('pgmq') is not null")
        if not cursor.fetchone()[0]:
            cursor.execute(get_embedded_install_sql())


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Counter',
            fields=[
                ('name', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('value', models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='Who or what uses it.', max_length=200, unique=True)),
                ('digest', models.CharField(editable=False, help_text='SHA-256 of the secret, in hex.', max_length=64, unique=True)),
                ('prefix', models.CharField(editable=False, help_text='First characters of the secret, to tell it.', max_length=16)),
                ('created_at', kcoord.database.fields.MillisField(editable=False)),
                ('expires_at', kcoord.database.fields.MillisField(blank=True, help_text='Milliseconds since the epoch; empty: never.', null=True)),
                ('last_used_at', kcoord.database.fields.MillisField(editable=False, help_text='Rounded down to a minute or so.', null=True)),
                ('previous_digest', models.CharField(editable=False, max_length=64, null=True, unique=True)),
                ('previous_until', kcoord.database.fields.MillisField(editable=False, help_text='Until then the secret before works, too.', null=True)),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'API token',
            },
        ),
        migrations.CreateModel(
            name='AuditChain',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('seq', models.BigIntegerField()),
                ('hash', models.BinaryField()),
                ('removed_through', models.BigIntegerField()),
                ('removed_hash', models.BinaryField()),
                ('removed', models.BigIntegerField()),
                ('removed_at', kcoord.database.fields.MillisField(null=True)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='kcoord_auditchain_one_row')],
            },
        ),
        migrations.CreateModel(
            name='AuditRecord',
            fields=[
                ('seq', models.BigIntegerField(primary_key=True, serialize=False)),
                ('prev', models.BinaryField()),
                ('hash', models.BinaryField()),
                ('at', kcoord.database.fields.MillisField()),
                ('kind', models.TextField()),
                ('principal', models.TextField()),
                ('principal_id', models.TextField()),
                ('address', models.TextField()),
                ('request_id', models.TextField()),
                ('door', models.TextField()),
                ('act', models.TextField()),
                ('resource', models.TextField()),
                ('name', models.TextField()),
                ('before', models.TextField(null=True)),
                ('after', models.TextField(null=True)),
                ('reason', models.TextField()),
                ('result', models.TextField()),
                ('error', models.TextField()),
                ('count', models.IntegerField()),
            ],
            options={
                'indexes': [models.Index(fields=['at'], name='kcoord_audit_by_time'), models.Index(fields=['resource', 'name', 'seq'], name='kcoord_audit_by_name')],
            },
        ),
        migrations.CreateModel(
            name='Quota',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('token', 'Token'), ('user', 'User'), ('group', 'Group'), ('default', 'Default')], help_text='A token comes before a user, a group last.', max_length=8)),
                ('name', models.CharField(blank=True, help_text='Of the token, the user or the group of people; empty for the default.', max_length=200)),
                ('budget', models.CharField(choices=[('heartbeats', 'heartbeats (per second)'), ('commits', 'commits and fetches (per second)'), ('reads', 'reads (per second)'), ('writes', 'writes (per second)'), ('bytes', 'bytes (per second)'), ('cpu', 'CPU time (ms per second)'), ('members', 'new members (per minute)'), ('groups', 'new groups (per minute)'), ('partitions', 'partitions (per minute)'), ('connections', 'connections (open at once)')], max_length=16)),
                ('limit', models.FloatField(blank=True, help_text='In the unit of the budget; empty: no limit.', null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('kind', 'name', 'budget'), name='kcoord_quota_once'), models.CheckConstraint(condition=models.Q(('limit__isnull', True), ('limit__gt', 0), _connector='OR'), name='kcoord_quota_limit'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'default'), ('name', '')), models.Q(models.Q(('kind', 'default'), _negated=True), models.Q(('name', ''), _negated=True)), _connector='OR'), name='kcoord_quota_name')],
            },
        ),
        migrations.CreateModel(
            name='Throttled',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=8)),
                ('name', models.CharField(blank=True, max_length=200)),
                ('budget', models.CharField(max_length=16)),
                ('limit', models.FloatField()),
                ('used', models.FloatField(help_text='In the unit of the limit, when it was throttled last.')),
                ('times', models.BigIntegerField(help_text='Requests, as far as they are noted: about once a minute.')),
                ('since', kcoord.database.fields.MillisField()),
                ('throttled_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('kind', 'name', 'budget'), name='kcoord_throttled_once')],
            },
        ),
        migrations.CreateModel(
            name='TimerHeartbeat',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, editable=False, primary_key=True, serialize=False)),
                ('ticked_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='kcoord_timerheartbeat_one_row')],
            },
        ),
        migrations.CreateModel(
            name='AccessRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('effect', models.CharField(choices=[('allow', 'Allow'), ('deny', 'Deny')], db_default='allow', default='allow', max_length=8)),
                ('operation', models.CharField(choices=[('read', 'Read'), ('describe', 'Describe'), ('alter-offsets', 'Alter Offsets'), ('delete', 'Delete'), ('kick', 'Kick'), ('admin', 'Admin')], max_length=16)),
                ('resource', models.CharField(choices=[('group', 'Group'), ('topic', 'Topic'), ('transactional-id', 'Transactional Id'), ('cluster', 'Cluster')], max_length=16)),
                ('pattern', models.CharField(choices=[('literal', 'Literal'), ('prefix', 'Prefix')], default='literal', max_length=8)),
                ('name', models.CharField(blank=True, help_text='Name or prefix; the empty prefix matches all.', max_length=255)),
                ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='access_rules', to='auth.group')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='access_rules', to=settings.AUTH_USER_MODEL)),
                ('token', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rules', to='kcoord.apitoken')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('group__isnull', True), ('token__isnull', False), ('user__isnull', True)), models.Q(('group__isnull', True), ('token__isnull', True), ('user__isnull', False)), models.Q(('group__isnull', False), ('token__isnull', True), ('user__isnull', True)), _connector='OR'), name='kcoord_accessrule_one_holder'), models.UniqueConstraint(fields=('token', 'effect', 'operation', 'resource', 'pattern', 'name'), name='kcoord_accessrule_token_once'), models.UniqueConstraint(fields=('user', 'effect', 'operation', 'resource', 'pattern', 'name'), name='kcoord_accessrule_user_once'), models.UniqueConstraint(fields=('group', 'effect', 'operation', 'resource', 'pattern', 'name'), name='kcoord_accessrule_group_once')],
            },
        ),
        migrations.RunSQL((SQL / "0001_tables.sql").read_text(encoding="utf-8")),
        # A hash chain of records that the database seals when a transaction commits.
        migrations.RunSQL((SQL / "0001_audit.sql").read_text(encoding="utf-8")),
        migrations.RunPython(install_pgmq),
    ]
