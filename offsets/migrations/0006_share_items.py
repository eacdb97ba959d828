"""Items of share groups, the functions that are their rules, their journal, and their resets as plans."""

import django.db.models.deletion
from django.db import migrations, models

import kcoord.database.fields
import offsets.models.share
from offsets.migrations.sql import executed


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
                ('group_name', models.CharField(help_text='Set by the database, as the next two.', max_length=255)),
                ('topic_name', models.CharField(max_length=249)),
                ('topic_pk', models.BigIntegerField()),
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
        migrations.AlterField(
            model_name='reconcilefinding',
            name='kind',
            field=models.CharField(choices=[('missing_in_view', 'Missing In View'), ('missing_in_journal', 'Missing In Journal'), ('surplus_in_view', 'Surplus In View'), ('other_offset', 'Other Offset'), ('other_metadata', 'Other Metadata'), ('rewind', 'Rewind'), ('beyond_log_end', 'Beyond Log End'), ('below_log_start', 'Below Log Start'), ('topic_gone', 'Topic Gone'), ('partition_gone', 'Partition Gone'), ('two_members', 'Two Members'), ('fenced_generation', 'Fenced Generation'), ('time_backwards', 'Time Backwards'), ('item_lost', 'Item Lost'), ('item_twice', 'Item Twice')], max_length=32),
        ),
        migrations.AddField(
            model_name='plannedoffset',
            name='old_items',
            field=models.JSONField(help_text='Of a share group that was reset: where the partition was, and the items that went.', null=True),
        ),
        executed("0006_share_1_items.sql", "0006_share_2_lanes.sql", "0006_share_3_plans.sql"),
    ]
