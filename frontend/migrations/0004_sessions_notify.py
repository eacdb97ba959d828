"""Sessions that are deleted and accounts that change say so: streams of people who may no longer read them end."""

from django.conf import settings
from django.db import migrations

SAY = """
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
"""
KEEP_QUIET = """
drop trigger frontend_account_deleted on auth_user;
drop trigger frontend_account_changed on auth_user;
drop function frontend_account_changed();
drop trigger frontend_session_ended on django_session;
drop function frontend_session_ended();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("frontend", "0003_provider_identities"),
        ("sessions", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [migrations.RunSQL(SAY, KEEP_QUIET)]
