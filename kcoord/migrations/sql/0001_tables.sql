-- Room for HOT updates on rows that change with every tick or request, and vacuum before they bloat: a page that is
-- filled to the given percentage leaves the new version of a row beside the old one.
alter table kcoord_timerheartbeat set (fillfactor = 10, autovacuum_vacuum_threshold = 500);
alter table kcoord_counter set (fillfactor = 50, autovacuum_vacuum_threshold = 500);
alter table kcoord_apitoken set (fillfactor = 80);

-- Tokens, rules, and the accounts and groups of people that hold them say when they change, so that every process asks
-- again at once.
create function kcoord_tokens_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('kcoord_tokens', '');
    return null;
end $$;
create trigger kcoord_tokens_changed
    after insert or delete or update of name, digest, expires_at, owner_id, previous_digest, previous_until
    on kcoord_apitoken for each statement execute function kcoord_tokens_changed();
create trigger kcoord_tokens_changed
    after insert or delete or update on kcoord_accessrule for each statement execute function kcoord_tokens_changed();
create trigger kcoord_tokens_changed
    after delete or update of is_active, is_superuser, username
    on auth_user for each statement execute function kcoord_tokens_changed();
create trigger kcoord_tokens_changed
    after insert or delete or update on auth_user_groups
    for each statement execute function kcoord_tokens_changed();
create trigger kcoord_tokens_changed
    after delete or update on auth_group for each statement execute function kcoord_tokens_changed();

create function kcoord_quotas_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('kcoord_quotas', '');
    return null;
end $$;
create trigger kcoord_quotas_changed
    after insert or delete or update on kcoord_quota for each statement execute function kcoord_quotas_changed();

-- The filter of everything that is listed: one expression without a subquery, so that Postgres puts it into the
-- statements that call it.
create function kcoord_sees(name text, names text[], prefixes text[], denied text[], denied_prefixes text[])
    returns boolean language sql immutable parallel safe as $$
    select ('' = any(prefixes) or name = any(names) or name ^@ any(prefixes))
           and not (name = any(denied) or name ^@ any(denied_prefixes))
$$;
