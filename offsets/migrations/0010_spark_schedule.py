"""The schedule of archive and reconcile: daily, in rows that the admin changes.

Not in CELERY_BEAT_SCHEDULE: beat writes those entries again at each start, over what an admin chose.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.utils import timezone

ENTRIES = (
    ("offsets: archive the journal", "offsets.archive", 3),
    ("offsets: reconcile", "offsets.reconcile", 4),
)
"""Name, task, and the hour (UTC) at which it is started."""


def add(apps: Any, schema_editor: Any) -> None:
    """Add the entries that are not there."""
    crontabs = apps.get_model("django_celery_beat", "CrontabSchedule").objects
    tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
    for name, task, hour in ENTRIES:
        crontab, _ = crontabs.get_or_create(minute="0", hour=str(hour), timezone="UTC")
        entry = {"task": task, "crontab": crontab, "expire_seconds": 3_600}
        tasks.get_or_create(name=name, defaults=entry)
    # A beat that runs already reads its entries again when this changes.
    changed = apps.get_model("django_celery_beat", "PeriodicTasks").objects
    changed.update_or_create(ident=1, defaults={"last_update": timezone.now()})


def remove(apps: Any, schema_editor: Any) -> None:
    """Take them away."""
    tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
    tasks.filter(name__in=[name for name, _, _ in ENTRIES]).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("offsets", "0009_reconcile_findings"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]
    operations = [migrations.RunPython(add, remove)]
