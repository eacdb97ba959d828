"""Items of share groups, and the functions that are their rules."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models
from psycopg import sql

import kcoord.database.fields
import offsets.models.share

FUNCTIONS = Path(__file__).parent / "sql" / "0006_share_items.sql"


def create_functions(apps, schema_editor):
    """For the schema that the tables are in, as in 0001."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "select n.nspname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where c.oid = 'groups_group'::regclass"
        )
        (schema,) = cursor.fetchone()
        text = FUNCTIONS.read_text(encoding="utf-8")
        cursor.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0003_share_groups'),
        ('offsets', '0005_share_groups'),
    ]

    operations = [
        migrations.CreateModel(
            name='SharePartition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic_id', models.UUIDField()),
                ('partition', models.IntegerField()),
                ('next_offset', models.BigIntegerField(help_text='Null: it begins at the first end that is known.', null=True)),
                ('end_offset', models.BigIntegerField(help_text='As workers reported it. Items at or above it, and above the watermark, are not given out.')),
                ('group', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='share_partitions', to='groups.group')),
            ],
        ),
        migrations.CreateModel(
            name='ShareLock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('member_id', models.CharField(max_length=300)),
                ('held', offsets.models.share.OffsetsField()),
                ('delivery_count', models.IntegerField()),
                ('until', kcoord.database.fields.MillisField(db_index=True)),
                ('lock_ms', models.BigIntegerField(help_text='How long a renewal lasts.')),
                ('acquired_at', kcoord.database.fields.MillisField()),
                ('last_error', models.TextField(help_text='Of the attempt before.', null=True)),
                ('share_partition', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='locks', to='offsets.sharepartition')),
            ],
        ),
        migrations.CreateModel(
            name='ShareEnded',
            fields=[
                ('lock_id', models.BigIntegerField(primary_key=True, serialize=False)),
                ('member_id', models.CharField(max_length=300)),
                ('cause', models.CharField(help_text='settled, expired, or released: its member is gone.', max_length=16)),
                ('accepted', offsets.models.share.OffsetsField()),
                ('released', offsets.models.share.OffsetsField()),
                ('rejected', offsets.models.share.OffsetsField()),
                ('at', kcoord.database.fields.MillisField()),
                ('share_partition', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='ended', to='offsets.sharepartition')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ShareDead',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('offset', models.BigIntegerField()),
                ('delivery_count', models.IntegerField()),
                ('cause', models.CharField(help_text='rejected, or limit: delivered as often as allowed.', max_length=16)),
                ('error', models.TextField(null=True)),
                ('member_id', models.CharField(max_length=300)),
                ('at', kcoord.database.fields.MillisField()),
                ('share_partition', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='dead', to='offsets.sharepartition')),
            ],
        ),
        migrations.CreateModel(
            name='ShareRetry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('held', offsets.models.share.OffsetsField()),
                ('delivery_count', models.IntegerField()),
                ('not_before', kcoord.database.fields.MillisField()),
                ('last_error', models.TextField(null=True)),
                ('last_member', models.CharField(max_length=300)),
                ('share_partition', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='retries', to='offsets.sharepartition')),
            ],
        ),
        migrations.AddIndex(
            model_name='sharepartition',
            index=models.Index(fields=['topic_id'], name='offsets_sharepartition_topic'),
        ),
        migrations.AddConstraint(
            model_name='sharepartition',
            constraint=models.UniqueConstraint(fields=('group', 'topic_id', 'partition'), name='offsets_sharepartition_once'),
        ),
        migrations.AddIndex(
            model_name='sharelock',
            index=models.Index(fields=['share_partition', 'until'], name='offsets_sharelock_partition'),
        ),
        migrations.AddConstraint(
            model_name='sharedead',
            constraint=models.UniqueConstraint(fields=('share_partition', 'offset'), name='offsets_sharedead_once'),
        ),
        migrations.AddIndex(
            model_name='shareretry',
            index=models.Index(fields=['share_partition', 'not_before'], name='offsets_shareretry_due'),
        ),
        migrations.RunPython(create_functions),
    ]
