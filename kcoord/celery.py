"""The Celery application: a queue in the same Postgres (PGMQ), or the broker that `broker.url` names.

Beat drives the timers. Each entry expires before it is due again, so a stopped worker leaves no backlog.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")

app = Celery("kcoord")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
