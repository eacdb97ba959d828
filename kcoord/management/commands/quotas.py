"""`manage.py quotas`: quotas in the manner of `kafka-configs --entity-type users`."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from kcoord.access.quotas.budgets import BY_KEY, Budget
from kcoord.access.quotas.quotas import Kind
from kcoord.access.quotas.stored import change, checked_limit
from kcoord.models import Quota

TYPES = {"tokens": Kind.TOKEN, "users": Kind.USER, "groups": Kind.GROUP}
UNLIMITED = "unlimited"


class Command(BaseCommand):
    help = (
        "Show or change how much principals may use. A quota of a token comes before one of the user who owns it, that "
        "before one of the groups of people, and that before the default. Budgets: "
        + "; ".join(f"{budget.key} ({budget.value.unit})" for budget in Budget)
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """As those of kafka-configs."""
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--describe", action="store_true", help="print quotas")
        what.add_argument("--alter", action="store_true", help="change the quota of one entity")
        parser.add_argument("--entity-type", choices=sorted(TYPES), help="tokens, users, or groups of people")
        parser.add_argument("--entity-name", default="", help="name of the token, user or group of people")
        parser.add_argument("--entity-default", action="store_true", help="the default quota of all tokens")
        parser.add_argument(
            "--add-config", default="", metavar="BUDGET=LIMIT,…", help=f"limits to set; {UNLIMITED}: no limit"
        )
        parser.add_argument("--delete-config", default="", metavar="BUDGET,…", help="limits to remove")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was asked for, or the quota after the change."""
        if options["alter"]:
            self._alter(options)
        found = Quota.objects.order_by("kind", "name", "budget")
        if options["entity_default"]:
            found = found.filter(kind=Kind.DEFAULT.value)
        elif options["entity_type"]:
            found = found.filter(kind=TYPES[options["entity_type"]].value)
            if options["entity_name"]:
                found = found.filter(name=options["entity_name"])
        lines: dict[tuple[str, str], list[str]] = {}
        for quota in found:
            limit = UNLIMITED if quota.limit is None else f"{quota.limit:.12g}"
            lines.setdefault((quota.kind, quota.name), []).append(f"{quota.budget}={limit}")
        for (kind, name), limits in lines.items():
            self.stdout.write(f"{f'{kind} {name}'.rstrip()}: {', '.join(limits)}")
        if not lines:
            self.stderr.write("no quota; `GET /v1/quotas` has what is limited without one")

    def _alter(self, options: dict[str, Any]) -> None:
        kind = Kind.DEFAULT
        if not options["entity_default"]:
            if not (options["entity_type"] and options["entity_name"]):
                raise CommandError("--alter needs --entity-type and --entity-name, or --entity-default")
            kind = TYPES[options["entity_type"]]
        elif options["entity_type"] == "groups" or options["entity_name"]:
            raise CommandError("--entity-default is for all tokens; leave out --entity-type and --entity-name")
        try:
            add, remove = _limits(options["add_config"]), frozenset(map(_budget, _parts(options["delete_config"])))
            if not (add or remove):
                raise ValueError("nothing to change: use --add-config or --delete-config")
            with transaction.atomic():
                change(kind, options["entity_name"], add, remove)
        except ValueError as error:
            raise CommandError(str(error)) from error


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _budget(text: str) -> Budget:
    if text not in BY_KEY:
        raise ValueError(f"{text}: no such budget; there are {', '.join(BY_KEY)}")
    return BY_KEY[text]


def _limits(text: str) -> dict[Budget, float | None]:
    found: dict[Budget, float | None] = {}
    for part in _parts(text):
        key, separator, limit = part.partition("=")
        if not separator:
            raise ValueError(f"{part!r}: expected BUDGET=LIMIT")
        budget = _budget(key.strip())
        found[budget] = None if limit.strip() == UNLIMITED else checked_limit(limit.strip(), budget)
    return found
