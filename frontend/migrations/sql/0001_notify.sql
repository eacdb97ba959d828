-- Sessions that are deleted and accounts that change say so: streams of people who may no longer read them end.
create function frontend_session_ended() returns trigger language plpgsql as $$
begin
    perform pg_notify('kcoord_sessions', 'session:' || encode(sha256(convert_to(old.session_key, 'UTF8')), 'hex'));
    return null;
end $$;
create trigger frontend_session_ended after delete on django_session
    for each row when (old.expire_date > now()) execute function frontend_session_ended();
create function frontend_account_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('kcoord_sessions', 'account:' || old.id);
    return null;
end $$;
create trigger frontend_account_changed after update of is_active, password on auth_user
    for each row when (old.is_active <> new.is_active or old.password <> new.password)
    execute function frontend_account_changed();
create trigger frontend_account_deleted after delete on auth_user
    for each row execute function frontend_account_changed();
