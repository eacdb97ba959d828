"""Members, pending ids and assignments go with their group, in the database itself."""

from django.db import migrations

TABLES = ("groups_member", "groups_pendingmember", "groups_assignment")


def constraint(table: str) -> migrations.RunSQL:
    """A foreign key with `on delete cascade`, which Django 5.2 cannot declare."""
    return migrations.RunSQL(
        f"alter table {table} add constraint {table}_group_fk"
        " foreign key (group_id) references groups_group (id) on delete cascade",
        f"alter table {table} drop constraint {table}_group_fk",
    )


class Migration(migrations.Migration):
    dependencies = [("groups", "0001_initial")]
    operations = [constraint(table) for table in TABLES]
