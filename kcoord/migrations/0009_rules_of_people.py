"""Rules of accounts and of their groups, rules that deny, and the filter of everything that is listed.

`kcoord_sees` is one expression without a subquery, so that Postgres puts it into the statements that call it.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SEES = """
create function kcoord_sees(name text, names text[], prefixes text[], denied text[], denied_prefixes text[])
    returns boolean language sql immutable parallel safe as $$
    select ('' = any(prefixes) or name = any(names) or name ^@ any(prefixes))
           and not (name = any(denied) or name ^@ any(denied_prefixes))
$$;
"""
NO_FILTER = "drop function kcoord_sees(text, text[], text[], text[], text[]);"

SAY = """
drop trigger kcoord_tokens_changed on auth_user;
create trigger kcoord_tokens_changed
    after delete or update of is_active, is_superuser, username
    on auth_user for each statement execute function kcoord_tokens_changed();
create trigger kcoord_tokens_changed
    after insert or delete or update on auth_user_groups
    for each statement execute function kcoord_tokens_changed();
create trigger kcoord_tokens_changed
    after delete or update on auth_group for each statement execute function kcoord_tokens_changed();
"""
SAY_LESS = """
drop trigger kcoord_tokens_changed on auth_group;
drop trigger kcoord_tokens_changed on auth_user_groups;
drop trigger kcoord_tokens_changed on auth_user;
create trigger kcoord_tokens_changed
    after update of is_active on auth_user for each statement execute function kcoord_tokens_changed();
"""


class Migration(migrations.Migration):

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("kcoord", "0008_tokens_notify"),
    ]

    operations = [
        migrations.RunSQL(SEES, NO_FILTER),
        migrations.RunSQL(SAY, SAY_LESS),
        migrations.RemoveConstraint(model_name="accessrule", name="kcoord_accessrule_once"),
        migrations.AddField(
            model_name="accessrule",
            name="effect",
            field=models.CharField(
                choices=[("allow", "Allow"), ("deny", "Deny")], db_default="allow", default="allow", max_length=8
            ),
        ),
        migrations.AddField(
            model_name="accessrule",
            name="group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="access_rules",
                to="auth.group",
            ),
        ),
        migrations.AddField(
            model_name="accessrule",
            name="user",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="access_rules",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="accessrule",
            name="token",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="rules",
                to="kcoord.apitoken",
            ),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.CheckConstraint(
                condition=models.Q(token__isnull=False, user__isnull=True, group__isnull=True)
                | models.Q(token__isnull=True, user__isnull=False, group__isnull=True)
                | models.Q(token__isnull=True, user__isnull=True, group__isnull=False),
                name="kcoord_accessrule_one_holder",
            ),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.UniqueConstraint(
                fields=("token", "effect", "operation", "resource", "pattern", "name"),
                name="kcoord_accessrule_token_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.UniqueConstraint(
                fields=("user", "effect", "operation", "resource", "pattern", "name"),
                name="kcoord_accessrule_user_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="accessrule",
            constraint=models.UniqueConstraint(
                fields=("group", "effect", "operation", "resource", "pattern", "name"),
                name="kcoord_accessrule_group_once",
            ),
        ),
    ]
