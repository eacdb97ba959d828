"""`manage.py create_token NAME --allow read:group:billing-* …`: a new API token, printed once."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from kcoord.access import tokens
from kcoord.database.sql import queries

DAY_MS = 24 * 60 * 60 * 1000


class Command(BaseCommand):
    help = "Create an API token. Its secret is printed once and cannot be shown again."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The name, the rules and the lifetime."""
        parser.add_argument("name", help="who or what uses it; unique")
        parser.add_argument(
            "--allow",
            action="append",
            default=[],
            metavar="OPERATION:RESOURCE:NAME",
            help=f"what it may do; repeatable; operation: {', '.join(tokens.OPERATIONS)}; resource: "
            f"{', '.join(tokens.RESOURCES)}; a * at the end of NAME makes it a prefix",
        )
        parser.add_argument("--allow-all", action="store_true", help="everything on everything")
        parser.add_argument("--days", type=int, help="days until it expires; without it, the token does not expire")

    def handle(self, *args: Any, **options: Any) -> None:
        """Create the token and print only its secret on standard output, so that a script can read it."""
        days = options["days"]
        if days is not None and days < 1:
            raise CommandError(f"--days {days}: must be at least 1")
        try:
            rules = [tokens.parse_rule(text) for text in options["allow"]]
            if options["allow_all"]:
                rules.extend(tokens.ALL_RULES)
            if not rules:
                raise CommandError("a token needs rules: --allow read:group:billing-* (repeatable), or --allow-all")
            token = tokens.create_token(options["name"], rules, None if days is None else now_ms() + days * DAY_MS)
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stderr.write(f"token {token.name} ({token.prefix}…): keep the secret, it is not shown again")
        self.stdout.write(token.secret)


def now_ms() -> int:
    """The database's clock."""
    with connection.cursor() as cursor:
        cursor.execute(queries("kcoord").read_clock, {"override": None})
        return int(cursor.fetchone()[0])
