-- name: groups_with_offsets
-- Groups in the journal, and groups with committed offsets. Steps through the index from group
-- to group: there are few groups and very many lines.
with recursive found as (
    (select group_name from offset_commit_log order by group_name, topic, partition, at, id limit 1)
    union all
    select (select log.group_name from offset_commit_log log
            where log.group_name > found.group_name
            order by log.group_name, log.topic, log.partition, log.at, log.id
            limit 1)
    from found
    where found.group_name is not null
)
select group_name from found where group_name is not null
union
select g.group_id from groups_group g where exists (select from offsets_committedoffset where group_id = g.id)

-- name: journal_partitions
-- Partitions of some topics that the group has in the journal, one index step for each.
with recursive found as (
    select first.topic, first.partition
    from unnest(%(topics)s::text[]) as n (topic)
    cross join lateral (
        select log.topic, log.partition from offset_commit_log log
        where log.group_name = %(group_id)s and log.topic = n.topic
        order by log.group_name, log.topic, log.partition, log.at, log.id
        limit 1
    ) first
    union all
    select found.topic, next.partition
    from found
    cross join lateral (
        select log.partition from offset_commit_log log
        where log.group_name = %(group_id)s and log.topic = found.topic and log.partition > found.partition
        order by log.group_name, log.topic, log.partition, log.at, log.id
        limit 1
    ) next
)
select topic, partition from found

-- name: not_empty
-- What prevents filling this database from the archive: lines of the journal other than those that an
-- earlier attempt wrote, and offsets without such a line.
select exists (select from offset_commit_log where kind <> 'restore' or plan_id is not null)
       or exists (
           select from offsets_committedoffset o join groups_group g on g.id = o.group_id
           where not exists (select from offset_commit_log where group_name = g.group_id)
       )

-- name: raise_record_offset
-- Lines written from now on are newer than those of the archive: their ids are larger.
select setval('offset_commit_log_id_seq', greatest(nextval('offset_commit_log_id_seq'), %(least)s::bigint))

-- name: has_history
-- Whether this database has any trace of the group. The journal as in `journal_knows_group`.
select (select true from offset_commit_log where group_name = %(group_id)s
        order by topic, partition, at, id limit 1) is not null
       or exists (select from offsets_committedoffset where group_id = %(group)s)
       or exists (select from offsets_pendingoffset where group_id = %(group)s)

-- name: import_history
-- Lines as another coordinator wrote them, with the instants that they had there.
insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, leader_epoch, metadata,
                               expire_timestamp, principal)
select at, %(kind)s, %(group_id)s, topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp,
       %(principal)s
from unnest(%(at)s::bigint[], %(topic)s::text[], %(partition)s::int[], %(committed_offset)s::bigint[],
            %(leader_epoch)s::int[], %(metadata)s::text[], %(expire_timestamp)s::bigint[]) with ordinality
     as c (at, topic, partition, committed_offset, leader_epoch, metadata, expire_timestamp, position)
order by position
