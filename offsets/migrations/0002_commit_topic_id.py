"""Entries of `kcoord.commit_offsets` take the ids of topics."""

from django.db import migrations

from offsets.migrations.sql import executed


class Migration(migrations.Migration):

    dependencies = [("offsets", "0001_initial")]

    operations = [executed("0002_commit_topic_id.sql")]
