insert into kcoord_auditchain (id, seq, hash, removed_through, removed_hash, removed)
values (1, 0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'), 0);

-- One field of the encoding: its name, the number of bytes of its value, and the value; a dash where there is none.
create function kcoord_audit_field(name text, value text) returns text language sql immutable as $$
    select name || ' ' || coalesce(octet_length(convert_to(value, 'UTF8')) || ':' || value, '-') || E'\n'
$$;

-- The hash of a record. docs/operations/access.md has the encoding; kcoord/audit/encoding.py is the same in Python.
create function kcoord_audit_digest(r kcoord_auditrecord) returns bytea language sql immutable as $$
    select sha256(convert_to(
        E'kcoord audit 1\n'
        || kcoord_audit_field('seq', r.seq::text)
        || kcoord_audit_field('prev', encode(r.prev, 'hex'))
        || kcoord_audit_field('at', r.at::text)
        || kcoord_audit_field('kind', r.kind)
        || kcoord_audit_field('principal', r.principal)
        || kcoord_audit_field('principal_id', r.principal_id)
        || kcoord_audit_field('address', r.address)
        || kcoord_audit_field('request_id', r.request_id)
        || kcoord_audit_field('door', r.door)
        || kcoord_audit_field('act', r.act)
        || kcoord_audit_field('resource', r.resource)
        || kcoord_audit_field('name', r.name)
        || kcoord_audit_field('before', r.before)
        || kcoord_audit_field('after', r.after)
        || kcoord_audit_field('reason', r.reason)
        || kcoord_audit_field('result', r.result)
        || kcoord_audit_field('error', r.error)
        || kcoord_audit_field('count', r.count::text),
        'UTF8'))
$$;

-- What transactions in progress have recorded. A record leaves it when its transaction commits.
create table kcoord_auditpending (
    id bigint generated always as identity primary key,
    at bigint not null,
    kind text not null,
    principal text not null,
    principal_id text not null,
    address text not null,
    request_id text not null,
    door text not null,
    act text not null,
    resource text not null,
    name text not null,
    before text,
    after text,
    reason text not null,
    result text not null check (result in ('done', 'refused')),
    error text not null,
    count integer not null check (count > 0)
);

-- Appends a record to the chain. It runs at the commit, so the row of the chain is the last one that a transaction
-- locks, and is held for no longer than the commit takes. In a transaction with a snapshot from before another's
-- commit the lock is a serialization failure, and the transaction is tried again.
create function kcoord_audit_seal() returns trigger language plpgsql as $$
declare
    head kcoord_auditchain;
    sealed kcoord_auditrecord;
begin
    select * into strict head from kcoord_auditchain where id = 1 for update;
    sealed.seq := head.seq + 1;
    sealed.prev := head.hash;
    sealed.at := new.at;
    sealed.kind := new.kind;
    sealed.principal := new.principal;
    sealed.principal_id := new.principal_id;
    sealed.address := new.address;
    sealed.request_id := new.request_id;
    sealed.door := new.door;
    sealed.act := new.act;
    sealed.resource := new.resource;
    sealed.name := new.name;
    sealed.before := new.before;
    sealed.after := new.after;
    sealed.reason := new.reason;
    sealed.result := new.result;
    sealed.error := new.error;
    sealed.count := new.count;
    sealed.hash := kcoord_audit_digest(sealed);
    insert into kcoord_auditrecord values (sealed.*);
    update kcoord_auditchain set seq = sealed.seq, hash = sealed.hash where id = 1;
    delete from kcoord_auditpending where id = new.id;
    return null;
end $$;

create constraint trigger kcoord_audit_seal after insert on kcoord_auditpending
    deferrable initially deferred for each row execute function kcoord_audit_seal();

-- Records an act in the caller's transaction. clock: milliseconds, null for the time of the database.
create function kcoord_audit_append(
    clock bigint, kind text, principal text, principal_id text, address text, request_id text, door text, act text,
    resource text, name text, before text, after text, reason text, result text, error text, count integer
) returns void language sql as $$
    insert into kcoord_auditpending (at, kind, principal, principal_id, address, request_id, door, act, resource, name,
                                     before, after, reason, result, error, count)
    values (coalesce(clock, (extract(epoch from clock_timestamp()) * 1000)::bigint), kind, principal, principal_id,
            address, request_id, door, act, resource, name, before, after, reason, result, error, count)
$$;

create function kcoord_audit_guard() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('kcoord.audit_trim', true) = 'on' then
        return old;
    end if;
    raise exception 'the audit is append-only: % of kcoord_auditrecord is refused', tg_op
        using errcode = 'insufficient_privilege',
              hint = 'The setting audit.retention.ms says how long records are kept.';
end $$;

create trigger kcoord_audit_guard_rows before update or delete on kcoord_auditrecord
    for each row execute function kcoord_audit_guard();
create trigger kcoord_audit_guard_table before truncate on kcoord_auditrecord
    for each statement execute function kcoord_audit_guard();

-- Removes the oldest records, at most `most`, up to the first that is not older than `before` (ms). The chain goes on
-- from the number and the hash of the last one removed. Returns how many were removed, and those two.
create function kcoord_audit_trim(before bigint, most bigint, out gone bigint, out through bigint, out head bytea)
language plpgsql as $$
declare
    oldest bigint;
begin
    perform 1 from kcoord_auditchain where id = 1 for update;
    select min(r.seq) into oldest from kcoord_auditrecord r;
    select coalesce(min(r.seq) - 1, (select max(r.seq) from kcoord_auditrecord r)) into through
    from kcoord_auditrecord r
    where r.at >= kcoord_audit_trim.before;
    through := least(through, oldest + most - 1);
    select r.hash into head from kcoord_auditrecord r where r.seq = through;
    if head is null then
        gone := 0;
        return;
    end if;
    perform set_config('kcoord.audit_trim', 'on', true);
    delete from kcoord_auditrecord r where r.seq <= through;
    get diagnostics gone = row_count;
    perform set_config('kcoord.audit_trim', '', true);
    update kcoord_auditchain
    set removed_through = through, removed_hash = head, removed = removed + gone,
        removed_at = (extract(epoch from clock_timestamp()) * 1000)::bigint
    where id = 1;
end $$;
