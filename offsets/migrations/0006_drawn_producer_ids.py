"""Producer ids are drawn at random; the sequence that gave them is not needed any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("offsets", "0005_commit_function")]

    operations = [
        migrations.RunSQL(
            "drop sequence offsets_producer_id_seq",
            "create sequence offsets_producer_id_seq as bigint",
        ),
    ]
