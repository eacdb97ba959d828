"""What the process that `tests/support/forked.py` forks from imports, once."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")

import django

django.setup()

import celery.apps.beat
import celery.apps.worker
import celery.bin.beat
import celery.bin.celery
import celery.bin.worker
import celery.concurrency.thread
import django_celery_beat.schedulers
import uvloop
from django.urls import get_resolver

import groups.api.routes
import groups.nodes.agent
import groups.tasks
import groups.wire.apis
import kcoord.stack.server
import kcoord.tasks
import kcoord.wire.gateway
import offsets.api.routes
import offsets.metrics.series
import offsets.tasks
import offsets.wire.apis

get_resolver().url_patterns
gc.freeze()
