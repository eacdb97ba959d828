"""No index has the lines of a group in their order: it was read by pages, and cost each commit a fifth of its WAL.

A server of 0.2.0 finds the lines of a group by the index by partition until it is replaced: slower, and the same.
"""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("offsets", "0008_activity_lag")]

    operations = [migrations.RunSQL("drop index if exists offset_commit_log_by_group")]
