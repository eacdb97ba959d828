-- Whether what is overdue in a group has expired: its coordinator partition has a live owner, its deadlines count since
-- the last gap, and no node may have renewed sessions in memory that it has not stored yet. Otherwise members get the
-- full time again, or the renewed session is stored soon.
-- Source: groups/sql/ownership.sql; groups/core/rearming.py; docs/models, rule 16.
create or replace function kcoord.may_expire(pk bigint, now bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select (p.partition is null
            or coalesce(p.state = 'ACTIVE' and n.ended_at is null and n.expires_at > may_expire.now
                        and g.armed_gap >= p.gap, false))
           and not exists (select from {schema}.groups_coordinatornode x
                           where x.ended_at is null and x.flushed_until < may_expire.now)
    from {schema}.groups_group g
    left join {schema}.groups_coordinatorpartition p on p.partition = g.partition
    left join {schema}.groups_coordinatornode n on n.id = p.owner_id
    where g.id = pk
$$;
