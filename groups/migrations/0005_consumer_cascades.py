"""Consumer members go with their group, in the database itself."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("groups", "0004_consumer_groups")]
    operations = [
        migrations.RunSQL(
            "alter table groups_consumermember add constraint groups_consumermember_group_fk"
            " foreign key (group_id) references groups_group (id) on delete cascade",
            "alter table groups_consumermember drop constraint groups_consumermember_group_fk",
        )
    ]
