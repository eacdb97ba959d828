"""Committed offsets, their journal, plans, samples, runs of Spark, alerts, and the functions of schema `kcoord`."""

from pathlib import Path

import django.contrib.postgres.fields
import django.db.models.deletion
import kcoord.database.fields
from django.db import migrations, models
from django.utils import timezone
from psycopg import sql


SQL = Path(__file__).parent / "sql"
COMMIT_FUNCTION = sorted(SQL.glob("0001_commit_*.sql"))
SCHEDULE = (
    ("offsets: archive the journal", "offsets.archive", 3),
    ("offsets: reconcile", "offsets.reconcile", 4),
)
"""Name, task, and the hour (UTC) at which it is started."""


def create_commit_function(apps, schema_editor):
    """Schema `kcoord` for the schema that the tables are in: offsets committed in transactions of others (docs/sinks.md)."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = 'groups_group'::regclass"
        )
        (schema,) = cursor.fetchone()
        for file in COMMIT_FUNCTION:
            cursor.execute(sql.SQL(file.read_text(encoding="utf-8")).format(schema=sql.Identifier(schema)))
        stay_in(cursor, schema)


def stay_in(cursor, schema):
    """Let this role go on to make its tables where they are.

    By default a role looks first into the schema of its own name, and a role that is called kcoord has one now.
    """
    cursor.execute("select current_schema(), current_database(), current_user")
    current, database, role = cursor.fetchone()
    if current != schema:
        pin = "alter role {role} in database {database} set search_path = {schema}; set search_path = {schema}"
        names = {"role": role, "database": database, "schema": schema}
        cursor.execute(sql.SQL(pin).format(**{key: sql.Identifier(name) for key, name in names.items()}))


def add_schedule(apps, schema_editor):
    """The schedule of archive and reconcile: daily, in rows that the admin changes.

    Not in CELERY_BEAT_SCHEDULE: beat writes those entries again at each start, over what an admin chose.
    """
    crontabs = apps.get_model("django_celery_beat", "CrontabSchedule").objects
    tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
    for name, task, hour in SCHEDULE:
        crontab, _ = crontabs.get_or_create(minute="0", hour=str(hour), timezone="UTC")
        entry = {"task": task, "crontab": crontab, "expire_seconds": 3_600}
        tasks.get_or_create(name=name, defaults=entry)
    # A beat that runs already reads its entries again when this changes.
    changed = apps.get_model("django_celery_beat", "PeriodicTasks").objects
    changed.update_or_create(ident=1, defaults={"last_update": timezone.now()})


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('django_celery_beat', '0019_alter_periodictasks_options'),
        ('groups', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Activity',
            fields=[
                ('at', kcoord.database.fields.MillisField(primary_key=True, serialize=False)),
                ('record_offset', models.BigIntegerField(help_text='The last one given out: counts the lines of the journal.')),
                ('event_id', models.BigIntegerField(help_text='The last one of the events of groups.')),
                ('rebalances', models.BigIntegerField(help_text='Rebalances that began since the instant before.')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AlertRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100, unique=True)),
                ('enabled', models.BooleanField(default=True)),
                ('pattern', models.CharField(choices=[('literal', 'Literal'), ('prefix', 'Prefix')], max_length=8)),
                ('group_name', models.CharField(blank=True, help_text='A group, or what their ids begin with.', max_length=255)),
                ('label', models.CharField(blank=True, db_default='', default='', help_text='name=value, or name.', max_length=319)),
                ('verdicts', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), help_text='Any of them; none: only the lags count.', size=None)),
                ('min_lag', models.BigIntegerField(help_text='Smallest lag of a group, in records.', null=True)),
                ('min_time_lag_ms', models.BigIntegerField(help_text='Smallest time lag of a group.', null=True)),
                ('for_ms', models.BigIntegerField(help_text='How long it lasts before an alert opens.')),
                ('remind_ms', models.BigIntegerField(help_text='How often receivers are reminded; 0: never.')),
                ('send_resolved', models.BooleanField(help_text='Receivers are told when an alert is resolved.')),
                ('receivers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), size=None)),
                ('updated_at', kcoord.database.fields.MillisField()),
                ('updated_by', models.CharField(max_length=255)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='DeletedTopic',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic', models.CharField(max_length=249)),
                ('deleted_at', kcoord.database.fields.MillisField()),
                ('principal', models.CharField(blank=True, default='', help_text='Token or account that asked.', max_length=255)),
                ('record_offset', models.BigIntegerField()),
                ('swept', models.BooleanField(default=False, help_text='All groups were visited once.')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='GroupLag',
            fields=[
                ('group', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='sampled_lag', serialize=False, to='groups.group')),
                ('at', kcoord.database.fields.MillisField()),
                ('lag', models.BigIntegerField(help_text='Null: of no partition is it known.', null=True)),
                ('time_lag_ms', models.BigIntegerField(null=True)),
                ('state', models.CharField(db_default='', max_length=32)),
                ('generation_id', models.IntegerField(db_default=0)),
                ('members', models.IntegerField(db_default=0)),
                ('partitions', models.IntegerField(help_text='That it owns or committed an offset on.', null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL((SQL / "0001_journal.sql").read_text(encoding="utf-8"))],
            state_operations=[
                migrations.CreateModel(
                    name='OffsetCommitLog',
                    fields=[
                        ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                        ('at', kcoord.database.fields.MillisField()),
                        ('xact_id', models.BigIntegerField()),
                        ('kind', models.CharField(max_length=16)),
                        ('group_name', models.CharField(max_length=255)),
                        ('topic', models.CharField(max_length=249)),
                        ('partition', models.IntegerField()),
                        ('committed_offset', models.BigIntegerField(help_text='Null where the offset was removed.', null=True)),
                        ('leader_epoch', models.IntegerField(default=-1)),
                        ('metadata', models.TextField(blank=True, default='')),
                        ('expire_timestamp', kcoord.database.fields.MillisField(null=True)),
                        ('member_id', models.CharField(blank=True, default='', max_length=300)),
                        ('generation_id', models.IntegerField(default=-1)),
                        ('client_id', models.CharField(blank=True, default='', max_length=255)),
                        ('principal', models.CharField(blank=True, default='', help_text='Token or account that asked.', max_length=255)),
                        ('transactional_id', models.CharField(max_length=255, null=True)),
                        ('plan_id', models.UUIDField(null=True)),
                    ],
                    options={
                        'db_table': 'offset_commit_log',
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name='Producer',
            fields=[
                ('producer_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('transactional_id', models.CharField(max_length=255, unique=True)),
                ('producer_epoch', models.IntegerField()),
                ('updated_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='TopicTotal',
            fields=[
                ('topic', models.CharField(max_length=249, primary_key=True, serialize=False)),
                ('at', kcoord.database.fields.MillisField()),
                ('groups', models.IntegerField()),
                ('lag', models.BigIntegerField(help_text='The sum over these groups; null: of none is it known.', null=True)),
                ('worst_group_id', models.BigIntegerField(help_text='The key of the group that is furthest behind.', null=True)),
                ('worst_lag', models.BigIntegerField(null=True)),
                ('time_lag_ms', models.BigIntegerField(help_text='Of the group that is furthest behind in time.', null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='VerdictRun',
            fields=[
                ('name', models.CharField(max_length=16, primary_key=True, serialize=False)),
                ('at', kcoord.database.fields.MillisField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AlertMessage',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('rule_id', models.BigIntegerField(help_text='Null: a test. It outlives the rule.', null=True)),
                ('rule_name', models.CharField(max_length=100)),
                ('receiver', models.CharField(max_length=64)),
                ('notice', models.CharField(max_length=8)),
                ('content', models.JSONField(help_text='The first alerts, and how many there are.')),
                ('created_at', kcoord.database.fields.MillisField()),
                ('attempts', models.IntegerField(db_default=0, default=0)),
                ('next_at', kcoord.database.fields.MillisField(help_text='Null: it is sent, or has failed for good.', null=True)),
                ('sent_at', kcoord.database.fields.MillisField(null=True)),
                ('error', models.TextField(blank=True, db_default='', default='', help_text='Why the last attempt failed.')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('next_at__isnull', False)), fields=['next_at'], name='offsets_message_due'), models.Index(fields=['-created_at'], name='offsets_message_by_time')],
            },
        ),
        migrations.CreateModel(
            name='LagSample',
            fields=[
                ('pk', models.CompositePrimaryKey('group_name', 'topic', 'at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('group_name', models.CharField(max_length=255)),
                ('topic', models.CharField(max_length=249)),
                ('at', kcoord.database.fields.MillisField()),
                ('lag', models.BigIntegerField()),
                ('time_lag_ms', models.BigIntegerField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['at'], name='offsets_lagsample_time')],
            },
        ),
        migrations.CreateModel(
            name='OffsetPlan',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('group_name', models.CharField(max_length=255)),
                ('strategy', models.CharField(max_length=32)),
                ('parameters', models.JSONField(help_text='What the strategy was given, to show it again.')),
                ('totals', models.JSONField(help_text='The plan in numbers: partitions, changed, clamped, removed, lag_change.')),
                ('state', models.CharField(choices=[('planned', 'Planned'), ('applied', 'Applied'), ('undone', 'Undone')], max_length=16)),
                ('reason', models.TextField(blank=True, default='')),
                ('created_at', kcoord.database.fields.MillisField()),
                ('created_by', models.CharField(max_length=255)),
                ('maker', models.CharField(blank=True, db_default='', default='', help_text='Who answers for it: an account, or a token without owner.', max_length=64)),
                ('approved_at', kcoord.database.fields.MillisField(null=True)),
                ('approved_by', models.CharField(max_length=255, null=True)),
                ('applied_at', kcoord.database.fields.MillisField(null=True)),
                ('applied_by', models.CharField(max_length=255, null=True)),
                ('undone_at', kcoord.database.fields.MillisField(null=True)),
                ('undone_by', models.CharField(max_length=255, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['group_name', '-created_at'], name='offsets_plan_by_group'), models.Index(fields=['created_at', 'id'], name='offsets_plan_by_time')],
            },
        ),
        migrations.CreateModel(
            name='PlannedOffset',
            fields=[
                ('pk', models.CompositePrimaryKey('plan_id', 'topic', 'partition', blank=True, editable=False, primary_key=True, serialize=False)),
                ('topic', models.CharField(max_length=249)),
                ('partition', models.IntegerField()),
                ('old_offset', models.BigIntegerField(null=True)),
                ('old_leader_epoch', models.IntegerField(default=-1)),
                ('old_metadata', models.TextField(blank=True, default='')),
                ('old_commit_timestamp', kcoord.database.fields.MillisField(null=True)),
                ('old_expire_timestamp', kcoord.database.fields.MillisField(null=True)),
                ('old_record_offset', models.BigIntegerField(null=True)),
                ('requested_offset', models.BigIntegerField(help_text='Before it was clamped to the log.', null=True)),
                ('new_offset', models.BigIntegerField(null=True)),
                ('log_start_offset', models.BigIntegerField(null=True)),
                ('log_end_offset', models.BigIntegerField(null=True)),
                ('note', models.TextField(blank=True, default='')),
                ('applied_record_offset', models.BigIntegerField(null=True)),
                ('plan', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='lines', to='offsets.offsetplan')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='RetentionPin',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group_name', models.CharField(max_length=255)),
                ('topic', models.CharField(blank=True, default='', help_text='Empty: all topics of the group.', max_length=249)),
                ('pinned_at', kcoord.database.fields.MillisField()),
                ('pinned_by', models.CharField(max_length=255)),
                ('reason', models.TextField(blank=True, default='')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('group_name', 'topic'), name='offsets_pin_once')],
            },
        ),
        migrations.CreateModel(
            name='SparkRun',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('archive', 'Archive'), ('reconcile', 'Reconcile'), ('restore', 'Restore'), ('report', 'Report'), ('import', 'Import')], max_length=16)),
                ('state', models.CharField(choices=[('requested', 'Requested'), ('running', 'Running'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('lost', 'Lost')], max_length=16)),
                ('parameters', models.JSONField(default=dict, help_text='What the run was asked for.')),
                ('requested_at', kcoord.database.fields.MillisField()),
                ('requested_by', models.CharField(max_length=255)),
                ('started_at', kcoord.database.fields.MillisField(null=True)),
                ('ended_at', kcoord.database.fields.MillisField(null=True)),
                ('heartbeat_at', kcoord.database.fields.MillisField(help_text='The last sign of life of the process.', null=True)),
                ('cancel_requested_at', kcoord.database.fields.MillisField(null=True)),
                ('host', models.CharField(blank=True, default='', max_length=255)),
                ('pid', models.IntegerField(null=True)),
                ('log_path', models.TextField(blank=True, default='')),
                ('stage', models.CharField(blank=True, default='', help_text='What it does, or did last.', max_length=64)),
                ('slices_done', models.IntegerField(default=0)),
                ('slices_total', models.IntegerField(default=0)),
                ('bound', models.BigIntegerField(help_text='Transaction ids below it are covered.', null=True)),
                ('system_identifier', models.CharField(blank=True, default='', max_length=32)),
                ('timeline', models.IntegerField(null=True)),
                ('archive_path', models.TextField(blank=True, default='')),
                ('archive_id', models.CharField(blank=True, default='', help_text='Id of the Delta table.', max_length=64)),
                ('manifest', models.BigIntegerField(help_text='Number of the last manifest that it published.', null=True)),
                ('manifest_sha256', models.CharField(blank=True, default='', max_length=64)),
                ('rows', models.BigIntegerField(null=True)),
                ('files', models.IntegerField(null=True)),
                ('bytes', models.BigIntegerField(null=True)),
                ('findings', models.IntegerField(null=True)),
                ('result', models.JSONField(help_text='What the command prints with --format json.', null=True)),
                ('error', models.TextField(blank=True, default='')),
            ],
            options={
                'indexes': [models.Index(fields=['kind', '-requested_at'], name='offsets_sparkrun_by_kind')],
            },
        ),
        migrations.CreateModel(
            name='Alert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group_name', models.CharField(max_length=255)),
                ('cause', models.CharField(max_length=16)),
                ('value', models.BigIntegerField(null=True)),
                ('since', kcoord.database.fields.MillisField()),
                ('opened_at', kcoord.database.fields.MillisField(null=True)),
                ('over_since', kcoord.database.fields.MillisField(null=True)),
                ('told_at', kcoord.database.fields.MillisField(null=True)),
                ('muted_until', kcoord.database.fields.MillisField(null=True)),
                ('muted_by', models.CharField(blank=True, db_default='', default='', max_length=255)),
                ('resolved_at', kcoord.database.fields.MillisField(null=True)),
                ('rule', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='offsets.alertrule')),
            ],
            options={
                'indexes': [models.Index(fields=['resolved_at'], name='offsets_alert_by_end'), models.Index(fields=['rule'], name='offsets_alert_by_rule')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('resolved_at', None)), fields=('rule', 'group_name'), name='offsets_one_alert')],
            },
        ),
        migrations.CreateModel(
            name='CommittedOffset',
            fields=[
                ('pk', models.CompositePrimaryKey('group_id', 'topic', 'partition', blank=True, editable=False, primary_key=True, serialize=False)),
                ('topic', models.CharField(max_length=249)),
                ('partition', models.IntegerField()),
                ('committed_offset', models.BigIntegerField()),
                ('leader_epoch', models.IntegerField(default=-1)),
                ('metadata', models.TextField(blank=True, default='')),
                ('commit_timestamp', kcoord.database.fields.MillisField()),
                ('expire_timestamp', kcoord.database.fields.MillisField(help_text='Only where the commit named a retention time.', null=True)),
                ('member_id', models.CharField(blank=True, default='', help_text='Who committed it.', max_length=300)),
                ('generation_id', models.IntegerField(default=-1)),
                ('record_offset', models.BigIntegerField(db_default=0, help_text='Id of its line in the journal: a larger one was written later.')),
                ('group', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='offsets', to='groups.group')),
            ],
            options={
                'indexes': [models.Index(fields=['topic', 'partition'], name='offsets_committed_by_topic')],
            },
        ),
        migrations.CreateModel(
            name='GroupVerdict',
            fields=[
                ('pk', models.CompositePrimaryKey('group_id', 'kind', 'topic', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=16)),
                ('topic', models.CharField(blank=True, help_text='Empty: it is not about a topic.', max_length=249)),
                ('since', kcoord.database.fields.MillisField()),
                ('due_at', kcoord.database.fields.MillisField(help_text='When something happens by itself; null: nothing, or not known.', null=True)),
                ('number', models.BigIntegerField(help_text='Of members, rebalances or partitions, depending on the kind.')),
                ('lag', models.BigIntegerField(null=True)),
                ('names', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), help_text='The first of these members or partitions.', size=None)),
                ('group', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='verdicts', to='groups.group')),
            ],
            options={
                'indexes': [models.Index(fields=['kind', 'since'], name='offsets_verdict_by_kind')],
            },
        ),
        migrations.CreateModel(
            name='PendingOffset',
            fields=[
                ('pk', models.CompositePrimaryKey('producer_id', 'group_id', 'topic', 'partition', blank=True, editable=False, primary_key=True, serialize=False)),
                ('topic', models.CharField(max_length=249)),
                ('partition', models.IntegerField()),
                ('committed_offset', models.BigIntegerField()),
                ('leader_epoch', models.IntegerField(default=-1)),
                ('metadata', models.TextField(blank=True, default='')),
                ('commit_timestamp', kcoord.database.fields.MillisField()),
                ('opened_at', kcoord.database.fields.MillisField(help_text='When its transaction first wrote to the partition.')),
                ('record_offset', models.BigIntegerField()),
                ('member_id', models.CharField(blank=True, default='', max_length=300)),
                ('generation_id', models.IntegerField(default=-1)),
                ('client_id', models.CharField(blank=True, default='', max_length=255)),
                ('principal', models.CharField(blank=True, default='', max_length=255)),
                ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='pending_offsets', to='groups.group')),
                ('producer', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='pending', to='offsets.producer')),
            ],
            options={
                'indexes': [models.Index(fields=['group', 'topic', 'partition'], name='offsets_pending_by_group')],
            },
        ),
        migrations.CreateModel(
            name='ReconcileFinding',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                ('number', models.IntegerField(help_text='Counted from 1, in the order of group, topic, partition.')),
                ('kind', models.CharField(choices=[('missing_in_view', 'Missing In View'), ('missing_in_journal', 'Missing In Journal'), ('surplus_in_view', 'Surplus In View'), ('other_offset', 'Other Offset'), ('other_metadata', 'Other Metadata'), ('rewind', 'Rewind'), ('beyond_log_end', 'Beyond Log End'), ('below_log_start', 'Below Log Start'), ('topic_gone', 'Topic Gone'), ('partition_gone', 'Partition Gone'), ('two_members', 'Two Members'), ('fenced_generation', 'Fenced Generation'), ('time_backwards', 'Time Backwards')], max_length=32)),
                ('group_name', models.CharField(max_length=255)),
                ('topic', models.CharField(max_length=249)),
                ('partition', models.IntegerField()),
                ('expected', models.BigIntegerField(help_text='What the journal, or the log, says.', null=True)),
                ('found', models.BigIntegerField(help_text='What is committed, or was.', null=True)),
                ('evidence', models.JSONField(help_text='journal_ids, members, generations, instants (ms), and more by kind.')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='found', to='offsets.sparkrun')),
            ],
            options={
                'indexes': [models.Index(fields=['group_name', 'run'], name='offsets_finding_by_group')],
            },
        ),
        migrations.CreateModel(
            name='ArchivedDay',
            fields=[
                ('pk', models.CompositePrimaryKey('run_id', 'manifest', 'day', blank=True, editable=False, primary_key=True, serialize=False)),
                ('manifest', models.BigIntegerField()),
                ('day', models.IntegerField(help_text='UTC, counted from 1970-01-01.')),
                ('archive_id', models.CharField(max_length=64)),
                ('system_identifier', models.CharField(max_length=32)),
                ('timeline', models.IntegerField()),
                ('rows', models.BigIntegerField()),
                ('checksum', models.DecimalField(decimal_places=0, max_digits=38)),
                ('counts', models.BooleanField(default=True)),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='days', to='offsets.sparkrun')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('counts', True)), fields=['day'], name='offsets_archivedday_counts')],
            },
        ),
        migrations.CreateModel(
            name='TopicLag',
            fields=[
                ('pk', models.CompositePrimaryKey('group_id', 'topic', blank=True, editable=False, primary_key=True, serialize=False)),
                ('topic', models.CharField(max_length=249)),
                ('at', kcoord.database.fields.MillisField()),
                ('lag', models.BigIntegerField(help_text='Null: of no partition is it known.', null=True)),
                ('max_lag', models.BigIntegerField(help_text='Of the partition that is furthest behind.', null=True)),
                ('time_lag_ms', models.BigIntegerField(null=True)),
                ('committed_offsets', models.BigIntegerField(help_text='Their sum.')),
                ('log_end_offsets', models.BigIntegerField(help_text='Their sum.', null=True)),
                ('partitions', models.IntegerField()),
                ('unknown_partitions', models.IntegerField(help_text='Those without a watermark.')),
                ('group', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='sampled_topics', to='groups.group')),
            ],
            options={
                'indexes': [models.Index(fields=['topic', 'group'], name='offsets_topiclag_by_topic')],
            },
        ),
        migrations.CreateModel(
            name='WatermarkSample',
            fields=[
                ('pk', models.CompositePrimaryKey('topic_id', 'partition', 'at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('partition', models.IntegerField()),
                ('at', kcoord.database.fields.MillisField()),
                ('until', kcoord.database.fields.MillisField(help_text='The last report that said the same.')),
                ('log_start_offset', models.BigIntegerField(help_text='As of `until`.')),
                ('log_end_offset', models.BigIntegerField()),
                ('topic', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='samples', to='groups.topic')),
            ],
            options={
                'indexes': [models.Index(fields=['topic', 'partition', 'log_end_offset', 'at'], name='offsets_sample_by_end')],
            },
        ),
        migrations.RunSQL((SQL / "0001_tables.sql").read_text(encoding="utf-8")),
        migrations.RunPython(create_commit_function),
        migrations.RunPython(add_schedule),
    ]
