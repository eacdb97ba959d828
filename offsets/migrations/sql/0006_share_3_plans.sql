-- Resets of share groups as plans: what a reset removes is kept with the plan, so that undoing brings it back.

-- Tells whether anything happened to the items of a partition; null: it has not begun.
create function kcoord.share_state(partition_pk bigint) returns bigint
language sql stable set search_path = pg_catalog, pg_temp
as $$
    select hashtextextended(concat_ws('/', p.next_offset,
        (select string_agg(concat_ws(',', l.id, l.held, l.until), ';' order by l.id)
         from {schema}.offsets_sharelock l where l.share_partition_id = p.id), '-',
        (select string_agg(concat_ws(',', r.id, r.held), ';' order by r.id)
         from {schema}.offsets_shareretry r where r.share_partition_id = p.id), '-',
        (select concat_ws(',', count(*), sum(d.id)) from {schema}.offsets_sharedead d
         where d.share_partition_id = p.id)), 0)
    from {schema}.offsets_sharepartition p
    where p.id = partition_pk and p.next_offset is not null
$$;

-- The offsets of a plan are set, by share_alter; the group is locked and has no members. What that removes is noted, with
-- the state that it leaves. Locks of callers of SQL, who need not be members, end before.
create function kcoord.share_apply_plan(plan_pk uuid, group_pk bigint, rules kcoord.share_rules, now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    line record;
    part record;
    kept jsonb;
begin
    for line in
        select o.topic, o.partition, o.new_offset, t.topic_id from {schema}.offsets_plannedoffset o
        join {schema}.groups_topic t on t.name = o.topic
        where o.plan_id = plan_pk
        order by o.topic, o.partition
    loop
        kept := null;
        select p.id, p.next_offset into part from {schema}.offsets_sharepartition p
        where p.group_id = group_pk and p.topic_id = line.topic_id and p.partition = line.partition
        for update;
        if part.id is not null then
            perform kcoord.share_end(array(
                select l.id from {schema}.offsets_sharelock l where l.share_partition_id = part.id for update),
                'released', rules, now);
            select jsonb_build_object(
                'next_offset', part.next_offset,
                'retries', (select coalesce(jsonb_agg(jsonb_build_array(
                                r.held, r.delivery_count, r.not_before, r.last_error, r.last_member)), '[]')
                            from {schema}.offsets_shareretry r where r.share_partition_id = part.id),
                'dead', (select coalesce(jsonb_agg(jsonb_build_array(
                             d."offset", d.delivery_count, d.cause, d.error, d.member_id, d.at)), '[]')
                         from {schema}.offsets_sharedead d
                         where d.share_partition_id = part.id and d."offset" >= line.new_offset)) into kept;
        end if;
        perform kcoord.share_alter(group_pk, line.topic_id, line.partition, line.new_offset);
        update {schema}.offsets_plannedoffset o set old_items = kept
        where o.plan_id = plan_pk and o.topic = line.topic and o.partition = line.partition;
    end loop;
end
$$;

-- What a plan has removed is there again, and the partitions are where they were; the caller has checked that nothing
-- happened since. A partition that the plan began has not begun any more. The journal says again what is finished, since
-- what it said before the reset no longer counts.
create function kcoord.share_undo_plan(plan_pk uuid, group_pk bigint, now bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
    line record;
    first bigint;
    finished int8multirange;
begin
    for line in
        select o.old_items, (o.old_items ->> 'next_offset')::bigint as following, p.id
        from {schema}.offsets_plannedoffset o
        join {schema}.groups_topic t on t.name = o.topic
        join {schema}.offsets_sharepartition p
             on p.group_id = group_pk and p.topic_id = t.topic_id and p.partition = o.partition
        where o.plan_id = plan_pk
        order by o.topic, o.partition
        for no key update of p
    loop
        if line.old_items is null then
            delete from {schema}.offsets_sharepartition p where p.id = line.id;
            continue;
        end if;
        insert into {schema}.offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_error,
                                                 last_member)
        select line.id, (r ->> 0)::int8multirange, (r ->> 1)::integer, (r ->> 2)::bigint, r ->> 3, r ->> 4
        from jsonb_array_elements(line.old_items -> 'retries') r;
        insert into {schema}.offsets_sharedead (share_partition_id, "offset", delivery_count, cause, error, member_id, at)
        select line.id, (d ->> 0)::bigint, (d ->> 1)::integer, d ->> 2, d ->> 3, d ->> 4, (d ->> 5)::bigint
        from jsonb_array_elements(line.old_items -> 'dead') d
        on conflict do nothing;
        select coalesce(least(line.following, min(lower(r.held))), line.following) into first
        from {schema}.offsets_shareretry r where r.share_partition_id = line.id;
        update {schema}.offsets_sharepartition p set next_offset = first where p.id = line.id;
        perform kcoord.share_journal_begin(array[line.id]);
        update {schema}.offsets_sharepartition p set next_offset = line.following where p.id = line.id;
        select int8multirange(int8range(first, line.following)) - coalesce(range_agg(x.held), '{{}}') into finished
        from (select r.held from {schema}.offsets_shareretry r where r.share_partition_id = line.id
              union all
              select int8multirange(int8range(d."offset", d."offset" + 1))
              from {schema}.offsets_sharedead d where d.share_partition_id = line.id) x;
        if first < line.following and not isempty(finished) then
            perform kcoord.share_note('items_done', array[line.id],
                                      array[format('{{"accept":%s}}', kcoord.share_ranges(finished))], '', now);
        end if;
        perform kcoord.share_wake(line.id);
    end loop;
end
$$;

revoke all on all functions in schema kcoord from public;
