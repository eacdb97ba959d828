"""`kcoord.commit_offsets` refuses share groups and ids of other topics."""

from django.db import migrations

from offsets.migrations.sql import executed


class Migration(migrations.Migration):

    dependencies = [("groups", "0003_share_groups"), ("offsets", "0004_transaction_epochs")]

    operations = [executed("0005_share_groups.sql")]
