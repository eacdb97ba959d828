"""The journal of committed offsets, partitioned by day.

Django cannot declare a partitioned table, so the database half is SQL. What finds no day of its own lands in the default
partition instead of failing; maintenance moves it when it makes the day. There is no primary key in the database: `id` comes
from one sequence, and an index that nobody reads by would cost every commit.
"""

from django.db import migrations, models

import kcoord.database.fields

CREATE = """
create sequence offset_commit_log_id_seq as bigint;
create table offset_commit_log (
    id bigint not null default nextval('offset_commit_log_id_seq'),
    at bigint not null,
    xact_id bigint not null default pg_current_xact_id()::text::bigint,
    kind varchar(16) not null,
    group_name varchar(255) not null,
    topic varchar(249) not null,
    partition integer not null,
    committed_offset bigint,
    leader_epoch integer not null default -1,
    metadata text not null default '',
    expire_timestamp bigint,
    member_id varchar(300) not null default '',
    generation_id integer not null default -1,
    client_id varchar(255) not null default '',
    principal varchar(255) not null default '',
    transactional_id varchar(255),
    plan_id uuid
) partition by range (at);
alter sequence offset_commit_log_id_seq owned by offset_commit_log.id;
create index offset_commit_log_by_partition on offset_commit_log (group_name, topic, partition, at, id);
create index offset_commit_log_by_group on offset_commit_log (group_name, at, id);
create index offset_commit_log_changes on offset_commit_log (group_name, at, id)
    where kind not in ('commit', 'txn_commit');
create table offset_commit_log_default partition of offset_commit_log default;
"""

# What was committed before there was a journal is its beginning: without these lines a plan would say that nothing was
# committed at an instant at which an offset of today stood already.
BEGIN = """
with line as (
    insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                                   expire_timestamp, member_id, generation_id)
    select o.commit_timestamp, 'commit', g.group_id, o.topic, o.partition, o.committed_offset, o.leader_epoch,
           o.metadata, o.expire_timestamp, o.member_id, o.generation_id
    from offsets_committedoffset o
    join groups_group g on g.id = o.group_id
    returning id, group_name, topic, partition
)
update offsets_committedoffset o
set record_offset = line.id
from line
join groups_group g on g.group_id = line.group_name
where o.group_id = g.id and o.topic = line.topic and o.partition = line.partition
"""


class Migration(migrations.Migration):

    dependencies = [
        ('groups', '0005_consumer_cascades'),
        ('offsets', '0002_cascades'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(CREATE, 'drop table offset_commit_log')],
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
        migrations.AddField(
            model_name='committedoffset',
            name='record_offset',
            field=models.BigIntegerField(db_default=0, help_text='Id of its line in the journal: a larger one was written later.'),
        ),
        migrations.RunSQL(BEGIN, migrations.RunSQL.noop),
    ]
