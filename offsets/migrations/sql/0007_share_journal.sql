-- What happens to items of share groups is in the journal: a line for each partition of a request, which names offsets as
-- ranges in its metadata. `committed_offset` is null, as after a removal, which is what it is for all who read what was
-- committed: a share group has no committed offsets. Source: share.md 8.

-- A set of offsets as a list of first and last ones, as requests have it: [[17,19],[21,21]].
create function kcoord.share_ranges(held int8multirange) returns text
language sql immutable strict set search_path = pg_catalog, pg_temp
as $$
    select '[' || coalesce(string_agg(format('[%s,%s]', lower(r), upper(r) - 1), ',' order by r), '') || ']'
    from unnest(held) r
$$;

-- A line for each of these partitions, named once; `details`: what became of which offsets. Who settles by SQL is named
-- by the role, as in kcoord.commit_offsets; the service itself is not.
create function kcoord.share_journal(
    kind text, partitions bigint[], details text[], member_id text, now bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    insert into {schema}.offset_commit_log (at, kind, group_name, topic, partition, metadata, member_id, principal)
    select now, kind, g.group_id, t.name, p.partition, n.detail, coalesce(member_id, ''),
           coalesce(nullif(session_user, current_user), '')
    from unnest(partitions, details) n (id, detail)
    join {schema}.offsets_sharepartition p on p.id = n.id
    join {schema}.groups_group g on g.id = p.group_id
    join {schema}.groups_topic t on t.topic_id = p.topic_id
$$;

-- The lines of a settlement: what is finished of each partition.
create function kcoord.share_journal_done(outcomes kcoord.share_outcome[], member_id text, now bigint) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    select kcoord.share_journal('items_done', array_agg(d.id), array_agg(format('{{%s}}', concat_ws(',',
               '"accept":' || kcoord.share_ranges(d.accepted), '"gap":' || kcoord.share_ranges(d.gaps)))),
               member_id, now)
    from (select o.partition_pk as id, range_agg(r) filter (where not gap) as accepted,
                 range_agg(r) filter (where gap) as gaps
          from unnest(outcomes) o
          cross join lateral (select r, false from unnest(o.accepted) r
                              union all select r, true from unnest(o.gaps) r) each (r, gap)
          group by o.partition_pk) d
    having count(*) > 0
$$;

-- Partitions begin, or begin again, at their next offset: what is in the journal before this line no longer counts. One
-- whose start is open has no line until it is known.
create function kcoord.share_journal_begin(partitions bigint[]) returns void
language sql set search_path = pg_catalog, pg_temp
as $$
    select kcoord.share_journal('items_begin', array_agg(p.id), array_agg(format('{{"begin":%s}}', p.next_offset)), '',
                                (extract(epoch from clock_timestamp()) * 1000)::bigint)
    from {schema}.offsets_sharepartition p
    where p.id = any(partitions) and p.next_offset is not null
    having count(*) > 0
$$;

-- Dead letters are gone for good. Returns how many.
create function kcoord.share_discard(group_pk bigint, ids bigint[], now bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    gone record;
    count bigint := 0;
begin
    for gone in
        with deleted as (
            delete from {schema}.offsets_sharedead d using {schema}.offsets_sharepartition p
            where p.id = d.share_partition_id and p.group_id = group_pk and d.id = any(ids)
            returning d.share_partition_id, d."offset"
        )
        select d.share_partition_id as id, range_agg(int8range(d."offset", d."offset" + 1)) as held from deleted d
        group by 1
    loop
        count := count + kcoord.size_of(gone.held);
        perform kcoord.share_journal('items_done', array[gone.id],
                                     array[format('{{"discard":%s}}', kcoord.share_ranges(gone.held))], '', now);
    end loop;
    return count;
end
$$;

revoke all on all functions in schema kcoord from public;
