"""What the operations pages and the container files name must exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from kcoord.access.tokens import OPERATIONS
from kcoord.config import NOT_SETTINGS
from kcoord.setting_table import SETTINGS
from tests.support.processes import ROOT

OPERATIONS_PAGES = tuple(f"docs/operations/{name}.md" for name in ("start", "servers", "access", "health", "backup"))
PAGES = (
    *OPERATIONS_PAGES,
    "docs/deployment.md",
    "deploy/nginx.conf",
    "Dockerfile",
    "compose.yaml",
    "Makefile",
    ".ci/run",
)


@pytest.mark.parametrize("page", PAGES)
def test_every_variable_it_names_is_a_setting(page: str) -> None:
    named = set(re.findall(r"KCOORD_[A-Z_]+[A-Z]", (ROOT / page).read_text()))
    assert named - {setting.env for setting in SETTINGS} - NOT_SETTINGS == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_it_names_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(r"`make ([a-z]+)|^make ([a-z]+)|exec make ([a-z]+)", (ROOT / page).read_text(), re.MULTILINE)
    )
    assert {name for match in named for name in match if name} - targets == set()


def test_every_command_it_names_exists() -> None:
    text = "".join((ROOT / page).read_text() for page in (*OPERATIONS_PAGES, "docs/deployment.md"))
    assert set(re.findall(r"manage\.py ([a-z_]+)", text)) - set(get_commands()) == set()
    modules = set(re.findall(r"python -m (kcoord\.[a-z.]+)", text))
    assert modules
    for module in modules:
        path = ROOT / Path(*module.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), module


TASKS = re.compile(r"`((?:groups|offsets|kcoord)\.[a-z_]+)`")


def test_every_task_of_beat_is_explained_and_every_task_named_is_one() -> None:
    from django.conf import settings

    text = (ROOT / "docs/operations/health.md").read_text()
    table = text.partition("Celery beat starts these")[2].partition("\n## ")[0]
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    scheduled |= {"offsets.archive", "offsets.reconcile"}  # a migration schedules them, for the admin to change
    assert set(TASKS.findall(table)) == scheduled


def test_the_table_of_actions_names_operations_of_rules_and_no_permission_of_django() -> None:
    table = (ROOT / "docs/operations/access.md").read_text().partition("| action | takes |")[2].partition("\n\n")[0]
    named = re.findall(r"`([a-z_.-]+)`", table)
    assert len(named) > 10
    assert set(named) <= set(OPERATIONS)
