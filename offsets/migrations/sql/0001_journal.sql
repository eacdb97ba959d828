-- The journal of committed offsets, partitioned by day. What finds no day of its own is stored in the default partition
-- instead of failing; maintenance moves it when it makes the day. There is no primary key: `id` comes from one sequence,
-- and an index that nobody reads by would cost every commit.
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
