"""Tokens, their rules and the accounts that own them say when they change, so that every process asks again at once."""

from django.conf import settings
from django.db import migrations

SAY = """
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
    after update of is_active on auth_user for each statement execute function kcoord_tokens_changed();
"""
KEEP_QUIET = """
drop trigger kcoord_tokens_changed on auth_user;
drop trigger kcoord_tokens_changed on kcoord_accessrule;
drop trigger kcoord_tokens_changed on kcoord_apitoken;
drop function kcoord_tokens_changed();
"""


class Migration(migrations.Migration):
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL), ("kcoord", "0007_token_rotation")]
    operations = [migrations.RunSQL(SAY, KEEP_QUIET)]
