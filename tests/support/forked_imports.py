"""Imported once by the process that `tests/support/forked.py` forks from: all that servers, worker and beat import."""

from __future__ import annotations

import gc
import importlib
import os

import django
from django.urls import get_resolver

MODULES = (
    "celery.apps.beat", "celery.apps.worker", "celery.bin.celery", "celery.concurrency.thread",
    "django_celery_beat.schedulers", "groups.api.routes", "groups.engine.agent", "groups.engine.standing",
    "groups.tasks", "groups.api.kafka.apis", "kcoord.client", "kcoord.stack.server", "kcoord.tasks",
    "kcoord.door.kafka.gateway", "offsets.api.routes", "offsets.metrics", "offsets.tasks", "offsets.api.kafka.apis",
    "uvloop",
)  # fmt: skip

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
django.setup()
for name in MODULES:
    importlib.import_module(name)
views = get_resolver().url_patterns
gc.freeze()
