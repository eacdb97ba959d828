"""The Celery application of beat: it sends tasks by name, so it imports none of them, nor what they import."""

from __future__ import annotations

import os

from celery import Celery

from kcoord.database import queue_transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")

queue_transport.register()
app = Celery("kcoord-beat")
app.config_from_object("django.conf:settings", namespace="CELERY")
