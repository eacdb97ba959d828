"""`manage.py kgroups`: kafka-consumer-groups for kcoord; docs/kgroups.md has an example of each verb."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import httpx
import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from groups.configs import regex_error
from kcoord.client.kgroups import arguments, options
from kcoord.client.kgroups.api import Api, service_at
from kcoord.client.kgroups.output import Output
from kcoord.client.kgroups.run import FAILURE, SUCCESS, run, validate_regex
from kcoord.door.http import local_transport as local
from kcoord.door.http import logs
from kcoord.process import bridge
from kcoord.stack.credentials import LOG_FILE, is_running
from kcoord.stack.preflight import one_line

CONNECT_SECONDS = 3


class Command(BaseCommand):
    help = "List, describe, reset and delete consumer groups and their offsets, as kafka-consumer-groups does."
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Django's parser; option names cannot be abbreviated."""
        return super().create_parser(prog_name, subcommand, allow_abbrev=False, **kwargs)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The options of kafka-consumer-groups, and those that select the service."""
        options.declare(parser)

    def run_from_argv(self, argv: list[str]) -> NoReturn:
        """Run and exit: 0, or 1 if anything failed. Usage errors come with the help, on standard error."""
        parser = self.create_parser(*argv[:2])
        try:
            wanted = arguments.check(parser.parse_args(argv[2:]))
        except (arguments.UsageError, CommandError) as error:
            self.stderr.write(f"{error}\n\n{parser.format_help()}")
            sys.exit(FAILURE)
        try:
            status = self._run(wanted)
            sys.stdout.flush()
        except arguments.UsageError as error:
            self.stderr.write(str(error))
            status = FAILURE
        except BrokenPipeError:
            # The reader closed the pipe. Buffered output must not fail again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = FAILURE
        bridge.close()
        sys.exit(status)

    def handle(self, *args: Any, **given: Any) -> None:
        """Run for `call_command`. Raises CommandError if anything failed."""
        try:
            status = self._run(arguments.check(argparse.Namespace(**given)))
        except arguments.UsageError as error:
            raise CommandError(str(error)) from error
        if status != SUCCESS:
            raise CommandError("kgroups: some actions failed; see the errors above")

    def _run(self, wanted: arguments.Arguments) -> int:
        to_stderr = wanted.reset is not None and wanted.reset.export
        output = Output(_Plain(self.stdout), _Plain(self.stderr), errors_on_stderr=to_stderr)
        if wanted.action is options.Action.VALIDATE_REGEX:
            return validate_regex(wanted.regex, regex_error(wanted.regex), output)
        if wanted.url is None and (problem := _postgres_problem()):
            output.error(problem)
            return FAILURE
        with _service(wanted) as api:
            return run(wanted, api, output)


class _Plain:
    """A stream of Django's without the line ends and colours that it adds."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str, /) -> object:
        """Write the text unchanged."""
        return self._stream.write(text, style_func=str, ending="")


@contextmanager
def _service(wanted: arguments.Arguments) -> Iterator[Api]:
    """The service at --url, or this installation."""
    if wanted.url is not None:
        with service_at(wanted.url, wanted.token_file, wanted.timeout_ms) as api:
            yield api
        return
    transport = local.LocalTransport(local.local_operator())
    logs.configure("warning")  # the access log of these internal requests would only be in the way
    with httpx.Client(transport=transport) as client:
        yield Api(client, local.BASE_URL, "", wanted.timeout_ms, alone=True)


def _postgres_problem() -> str | None:
    """Why this installation cannot answer; None if it can. A runtime would try for half a minute, and log each try."""
    try:
        psycopg.connect(settings.CONNINFO, connect_timeout=CONNECT_SECONDS).close()
    except psycopg.OperationalError as error:
        what = f"Postgres cannot be reached: {one_line(error)}"
        if settings.KCOORD.str("database.url"):
            remedy = "start it or correct KCOORD_DATABASE_URL"
        elif is_running(settings.DATA_DIR):
            remedy = f"try again; if that does not help, see {settings.DATA_DIR / LOG_FILE}"
        else:
            what, remedy = f"no service is running in {settings.DATA_DIR}", "`make up` starts one"
        return f"The command failed: {what}; {remedy}, or name another service with --url"
    return None
