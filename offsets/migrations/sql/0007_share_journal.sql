-- What happens to items of share groups is in the journal: a line for each partition of a request, which names offsets as
-- ranges in its metadata. `committed_offset` is null, as after a removal, which is what it is for all who read what was
-- committed: a share group has no committed offsets. Source: share.md 8. The lines are written in 0010_share_lanes.sql.

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
