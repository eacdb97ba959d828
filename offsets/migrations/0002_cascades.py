"""Committed offsets go with their group, in the database itself."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("offsets", "0001_initial"), ("groups", "0002_cascades")]
    operations = [
        migrations.RunSQL(
            "alter table offsets_committedoffset add constraint offsets_committedoffset_group_fk"
            " foreign key (group_id) references groups_group (id) on delete cascade",
            "alter table offsets_committedoffset drop constraint offsets_committedoffset_group_fk",
        )
    ]
