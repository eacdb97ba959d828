-- A commit may give the id that its topic has, so that one of a topic that was created again is refused.
-- One function of 0001, whole, and one that kcoord.commit_offsets calls from 0005 on; its error is known from 0006 on.

-- One element of the argument `offsets`. Raises INVALID_REQUEST naming the field.
create or replace function kcoord.offset_at(entry jsonb, field text, out topic text, out partition integer,
                                 out committed_offset bigint, out leader_epoch integer, out metadata text)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    int4 constant bigint := 2147483647;
    int8 constant bigint := 9223372036854775807;
    stranger text;
begin
    if jsonb_typeof(entry) <> 'object' then
        perform kcoord.refuse('INVALID_REQUEST', field || ' is no object');
    end if;
    select key into stranger from jsonb_object_keys(entry) as key
    where key not in ('topic', 'topic_id', 'partition', 'committed_offset', 'committed_leader_epoch', 'committed_metadata')
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('INVALID_REQUEST', format('%s.%s: there is no such field', field, left(stranger, 40)));
    end if;
    if jsonb_typeof(entry -> 'topic') is distinct from 'string' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.topic: name the topic');
    end if;
    if coalesce(jsonb_typeof(entry -> 'topic_id'), 'null') <> 'null'
       and entry ->> 'topic_id' !~* '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$' then
        perform kcoord.refuse('INVALID_REQUEST', field || '.topic_id: not a valid UUID');
    end if;
    if coalesce(jsonb_typeof(entry -> 'committed_metadata'), 'null') not in ('string', 'null') then
        perform kcoord.refuse('INVALID_REQUEST', field || '.committed_metadata is no text');
    end if;
    topic := entry ->> 'topic';
    partition := kcoord.integer_at(entry -> 'partition', field || '.partition', -int4 - 1, int4);
    committed_offset := kcoord.integer_at(entry -> 'committed_offset', field || '.committed_offset', -int8 - 1, int8);
    leader_epoch := kcoord.integer_at(
        coalesce(entry -> 'committed_leader_epoch', '-1'), field || '.committed_leader_epoch', -int4 - 1, int4);
    metadata := coalesce(entry ->> 'committed_metadata', '');
end
$$;

-- Raises UNKNOWN_TOPIC_ID for the first entry whose topic has another id than it says, or was deleted.
create function kcoord.check_topic_ids(offsets jsonb) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
    stranger text;
begin
    select format('offsets[%s].topic_id: topic %L has no such id', e.place - 1, e.entry ->> 'topic') into stranger
    from jsonb_array_elements(offsets) with ordinality as e (entry, place)
    where e.entry ->> 'topic_id' is not null
      and not exists (select from {schema}.groups_topic t
                      where t.name = e.entry ->> 'topic' and t.topic_id = (e.entry ->> 'topic_id')::uuid)
    order by e.place
    limit 1;
    if stranger is not null then
        perform kcoord.refuse('UNKNOWN_TOPIC_ID', stranger);
    end if;
end
$$;

revoke all on function kcoord.check_topic_ids(jsonb) from public;
