"""Groups, members, assignments, topics, events and coordinator nodes."""

from pathlib import Path

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.contrib.postgres.indexes
import django.db.models.deletion
import kcoord.database.fields
from django.db import migrations, models


TABLES = (Path(__file__).parent / "sql" / "0001_tables.sql").read_text(encoding="utf-8")


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Group',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group_id', models.CharField(max_length=255, unique=True)),
                ('type', models.CharField(choices=[('classic', 'Classic'), ('consumer', 'Consumer')], default='classic', max_length=16)),
                ('state', models.CharField(max_length=32)),
                ('previous_state', models.CharField(max_length=32)),
                ('state_since', kcoord.database.fields.MillisField()),
                ('generation_id', models.IntegerField(default=0, help_text='Of a consumer group: the group epoch.')),
                ('protocol_type', models.CharField(max_length=255, null=True)),
                ('protocol_name', models.CharField(max_length=255, null=True)),
                ('leader_id', models.CharField(max_length=300, null=True)),
                ('new_member_added', models.BooleanField(default=False)),
                ('join_deadline', kcoord.database.fields.MillisField(null=True)),
                ('join_delay_ms', models.BigIntegerField(help_text='Window of an initial rebalance, else null.', null=True)),
                ('join_remaining_ms', models.BigIntegerField(null=True)),
                ('sync_deadline', kcoord.database.fields.MillisField(null=True)),
                ('assignment_epoch', models.IntegerField(db_default=0, help_text='Of a consumer group: the epoch of its target.')),
                ('assignment_timestamp', kcoord.database.fields.MillisField(db_default=0)),
                ('metadata_hash', models.CharField(blank=True, db_default='', max_length=128)),
                ('metadata_version', models.BigIntegerField(db_default=-1)),
                ('resolution', models.JSONField(help_text='What regular expressions match, by the rights of members.', null=True)),
                ('jobs', models.JSONField(help_text='Background work of a consumer group that is out.', null=True)),
                ('partition', models.IntegerField(help_text='The coordinator partition; null: not known to what made the group.', null=True)),
                ('armed_gap', models.BigIntegerField(db_default=0, help_text='The gap of the partition under which the deadlines count (CoordinatorPartition).')),
                ('held_until', kcoord.database.fields.MillisField(help_text='Nobody may join before; null: the group is not held.', null=True)),
                ('held_by', models.CharField(max_length=255, null=True)),
                ('hold_reason', models.TextField(null=True)),
                ('wake_at', kcoord.database.fields.MillisField(help_text='When to look next: not after the earliest deadline of the group.', null=True)),
                ('version', models.BigIntegerField(default=0, help_text='Counts the transactions that changed the group.')),
                ('version_tag', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), help_text='Random, drawn with each version: a count can come again after a restore.')),
                ('created_at', kcoord.database.fields.MillisField()),
                ('updated_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='groups_group_due'),
                    models.Index(fields=['state', 'group_id'], name='groups_group_by_state'),
                    models.Index(fields=['-updated_at', 'group_id'], name='groups_group_by_change'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('generation_id__gte', 0)), name='groups_group_generation_positive'),
                    models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['Empty', 'PreparingRebalance', 'CompletingRebalance', 'Stable', 'Dead']), ('type', 'classic')), models.Q(('state__in', ['Empty', 'Assigning', 'Reconciling', 'Stable']), ('type', 'consumer')), _connector='OR'), name='groups_group_state_known'),
                    models.CheckConstraint(condition=models.Q(('held_until__isnull', True), models.Q(('held_by__isnull', False), ('state', 'Empty')), _connector='OR'), name='groups_group_held_is_empty'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Topic',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=249, unique=True)),
                ('topic_id', models.UUIDField(unique=True)),
                ('partitions', models.PositiveIntegerField()),
                ('labels', models.JSONField(blank=True, default=dict)),
                ('created_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('partitions__gte', 1)), name='groups_topic_partitions_min'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Member',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('member_id', models.CharField(max_length=300)),
                ('instance_id', models.CharField(max_length=255, null=True)),
                ('client_id', models.CharField(max_length=255)),
                ('client_host', models.CharField(max_length=255)),
                ('session_timeout_ms', models.BigIntegerField()),
                ('rebalance_timeout_ms', models.BigIntegerField()),
                ('protocol_type', models.CharField(max_length=255)),
                ('protocol_names', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('protocol_metadata', django.contrib.postgres.fields.ArrayField(base_field=models.BinaryField(), size=None)),
                ('assignment', models.BinaryField(help_text="The leader's bytes for this member, as they came.")),
                ('is_new', models.BooleanField()),
                ('join_parked_until', kcoord.database.fields.MillisField(null=True)),
                ('sync_parked_until', kcoord.database.fields.MillisField(null=True)),
                ('pending_sync', models.BooleanField()),
                ('session_deadline', kcoord.database.fields.MillisField(null=True)),
                ('last_heartbeat_at', kcoord.database.fields.MillisField(null=True)),
                ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='members', to='groups.group')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('group', 'member_id'), name='groups_member_id_once'),
                    models.UniqueConstraint(condition=models.Q(('instance_id__isnull', False)), fields=('group', 'instance_id'), name='groups_member_instance_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ConsumerMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('member_id', models.CharField(max_length=300)),
                ('instance_id', models.CharField(max_length=255, null=True)),
                ('rack_id', models.CharField(max_length=255, null=True)),
                ('client_id', models.CharField(max_length=255)),
                ('client_host', models.CharField(max_length=255)),
                ('rebalance_timeout_ms', models.BigIntegerField()),
                ('subscribed_topic_names', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('subscribed_topic_regex', models.TextField(blank=True, default='')),
                ('topic_rights', models.CharField(blank=True, db_default='', help_text='Digest of what it may describe of topics; empty: all.', max_length=64)),
                ('server_assignor', models.CharField(max_length=255, null=True)),
                ('classic_session_timeout_ms', models.BigIntegerField(help_text='Only of members of the classic protocol.', null=True)),
                ('classic_protocol_names', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None)),
                ('classic_protocol_metadata', django.contrib.postgres.fields.ArrayField(base_field=models.BinaryField(), null=True, size=None)),
                ('member_epoch', models.IntegerField()),
                ('previous_member_epoch', models.IntegerField()),
                ('state', models.SmallIntegerField(help_text='0 stable, 1 unrevoked partitions, 2 unreleased partitions.')),
                ('target', models.JSONField(help_text='What it is meant to have: partitions by topic id.')),
                ('session_deadline', kcoord.database.fields.MillisField(null=True)),
                ('session_armed_at', kcoord.database.fields.MillisField(null=True)),
                ('rebalance_deadline', kcoord.database.fields.MillisField(null=True)),
                ('rebalance_armed_at', kcoord.database.fields.MillisField(null=True)),
                ('join_deadline', kcoord.database.fields.MillisField(null=True)),
                ('join_armed_at', kcoord.database.fields.MillisField(null=True)),
                ('sync_deadline', kcoord.database.fields.MillisField(null=True)),
                ('sync_armed_at', kcoord.database.fields.MillisField(null=True)),
                ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='consumer_members', to='groups.group')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('group', 'member_id'), name='groups_consumermember_id_once'),
                    models.UniqueConstraint(condition=models.Q(('instance_id__isnull', False)), fields=('group', 'instance_id'), name='groups_consumermember_instance_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PendingMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('member_id', models.CharField(max_length=300)),
                ('deadline', kcoord.database.fields.MillisField()),
                ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='pending_members', to='groups.group')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('group', 'member_id'), name='groups_pendingmember_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('pk', models.CompositePrimaryKey('group_id', 'topic_id', 'partition', blank=True, editable=False, primary_key=True, serialize=False)),
                ('topic_id', models.CharField(max_length=249)),
                ('topic', models.CharField(max_length=249)),
                ('partition', models.IntegerField()),
                ('member_id', models.CharField(max_length=300)),
                ('generation_id', models.IntegerField(help_text='Of consumer groups: the epoch in which the member got it.')),
                ('pending', models.BooleanField(db_default=False, help_text='To be given up.')),
                ('group', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='assignments', to='groups.group')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['group', 'member_id', 'topic', 'partition'], name='groups_assignment_by_owner'),
                    models.Index(fields=['group', 'topic', 'partition'], name='groups_assignment_by_name'),
                    models.Index(fields=['topic', 'partition'], name='groups_assignment_by_topic'),
                ],
            },
        ),
        migrations.CreateModel(
            name='GenerationTopics',
            fields=[
                ('group', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='generation_topics', serialize=False, to='groups.group')),
                ('topics', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group_name', models.CharField(max_length=255)),
                ('at', kcoord.database.fields.MillisField()),
                ('kind', models.CharField(max_length=40)),
                ('generation_id', models.IntegerField()),
                ('member_id', models.CharField(max_length=300, null=True)),
                ('detail', models.JSONField()),
            ],
            options={
                'indexes': [models.Index(fields=['group_name', 'id'], name='groups_event_of_group'), models.Index(condition=models.Q(('detail__has_key', 'principal'), ('kind', 'group_deleted'), _connector='OR'), fields=['at', 'id'], name='groups_event_of_people')],
            },
        ),
        migrations.CreateModel(
            name='Watermark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('partition', models.PositiveIntegerField()),
                ('log_start_offset', models.BigIntegerField()),
                ('log_end_offset', models.BigIntegerField()),
                ('sampled_at', kcoord.database.fields.MillisField()),
                ('topic', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='watermarks', to='groups.topic')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('topic', 'partition'), name='groups_watermark_once'),
                    models.CheckConstraint(condition=models.Q(('log_end_offset__gte', models.F('log_start_offset')), ('log_start_offset__gte', 0)), name='groups_watermark_ordered'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ClientSoftware',
            fields=[
                ('pk', models.CompositePrimaryKey('client_id', 'client_host', blank=True, editable=False, primary_key=True, serialize=False)),
                ('client_id', models.CharField(max_length=255)),
                ('client_host', models.CharField(max_length=255)),
                ('name', models.CharField(max_length=128)),
                ('version', models.CharField(max_length=128)),
                ('seen_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='GroupConfigOverride',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group_name', models.CharField(max_length=255)),
                ('name', models.CharField(max_length=100)),
                ('value', models.TextField(help_text='As it would be written in the environment.')),
                ('updated_at', kcoord.database.fields.MillisField()),
                ('updated_by', models.CharField(max_length=255)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('group_name', 'name'), name='groups_configoverride_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='GroupLabels',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group_name', models.CharField(max_length=255, unique=True)),
                ('labels', models.JSONField()),
                ('updated_at', kcoord.database.fields.MillisField()),
                ('updated_by', models.CharField(max_length=255)),
            ],
            options={
                'indexes': [
                    django.contrib.postgres.indexes.GinIndex(fields=['labels'], name='groups_grouplabels_labels'),
                ],
                'verbose_name_plural': 'group labels',
            },
        ),
        migrations.CreateModel(
            name='PartitionChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', kcoord.database.fields.MillisField()),
                ('partition', models.IntegerField()),
                ('epoch', models.BigIntegerField()),
                ('gap', models.BigIntegerField()),
                ('from_node', models.CharField(blank=True, help_text='Empty: nobody owned it.', max_length=255)),
                ('to_node', models.CharField(blank=True, help_text='Empty: nobody owns it.', max_length=255)),
                ('reason', models.CharField(choices=[('taken', 'Taken'), ('lapsed', 'Lapsed'), ('stopped', 'Stopped'), ('balanced', 'Balanced')], max_length=16)),
                ('gap_ms', models.BigIntegerField(help_text='How long nobody owned it; null: not at all.', null=True)),
            ],
            options={
                'indexes': [
                    models.Index(models.OrderBy(models.F('at'), descending=True), name='groups_partitionchange_by_age'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('subject', models.CharField(max_length=32, primary_key=True, serialize=False)),
                ('version', models.BigIntegerField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='CoordinatorNode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('node_id', models.CharField(help_text="The server's name; it keeps it over restarts.", max_length=255)),
                ('url', models.CharField(blank=True, help_text='Where clients reach it; empty: unknown.', max_length=500)),
                ('broker_id', models.IntegerField(db_default=0, help_text='Its number as a broker of Kafka clients; it keeps it over restarts.')),
                ('kafka_host', models.CharField(blank=True, db_default='', help_text='Where Kafka clients reach it; empty: where they came by.', max_length=255)),
                ('kafka_port', models.IntegerField(db_default=0, help_text='0: it does not listen for Kafka clients.')),
                ('version', models.CharField(max_length=50)),
                ('started_at', kcoord.database.fields.MillisField()),
                ('renewed_at', kcoord.database.fields.MillisField()),
                ('expires_at', kcoord.database.fields.MillisField(help_text='When its lease runs out. A lease that has run out is not renewed.')),
                ('flushed_until', kcoord.database.fields.MillisField(help_text='Sessions that it renewed in memory until then are stored. Null: it renews none in memory.', null=True)),
                ('ended_at', kcoord.database.fields.MillisField(null=True)),
                ('end_reason', models.CharField(choices=[('stopped', 'Stopped'), ('lapsed', 'Lapsed')], max_length=16, null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('node_id',), name='groups_coordinatornode_once'), models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True), models.Q(('url', ''), _negated=True)), fields=('url',), name='groups_coordinatornode_url_once')],
            },
        ),
        migrations.CreateModel(
            name='CoordinatorPartition',
            fields=[
                ('partition', models.IntegerField(primary_key=True, serialize=False)),
                ('epoch', models.BigIntegerField(default=0, help_text='Grows with every change of the owner.')),
                ('gap', models.BigIntegerField(default=0, help_text='Grows when sessions could not be counted: groups with a smaller armed_gap start over.')),
                ('state', models.CharField(choices=[('LOADING', 'Loading'), ('ACTIVE', 'Active'), ('CLOSED', 'Closed')], max_length=16)),
                ('state_since', kcoord.database.fields.MillisField()),
                ('active_since', kcoord.database.fields.MillisField(null=True)),
                ('load_ms', models.BigIntegerField(help_text='How long the last loading took.', null=True)),
                ('owner', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='partitions', to='groups.coordinatornode')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.RunSQL(TABLES),
    ]
