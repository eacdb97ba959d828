"""`kgroups`, the console script of the package kcoord-client: the tool without Django, for a service at an address."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import kcoord
from kcoord.client.config import DEFAULT_URL
from kcoord.client.kgroups import arguments, completion, options
from kcoord.client.kgroups.api import service_at
from kcoord.client.kgroups.output import Output
from kcoord.client.kgroups.run import FAILURE, run

URL_VARIABLE = "KCOORD_URL"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit status: 0, or 1 if anything failed. `argv` None: the arguments of the process."""
    parser = _parser()
    try:
        given = parser.parse_args(argv)
        if given.url is None:
            given.url = os.environ.get(URL_VARIABLE) or DEFAULT_URL
        status = _run(arguments.check(given))
        sys.stdout.flush()
    except arguments.UsageError as error:
        sys.stderr.write(f"{error}\n")
        return FAILURE
    except BrokenPipeError:
        # The reader closed the pipe. Buffered output must not fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    return status


def _run(wanted: arguments.Arguments) -> int:
    if wanted.action is options.Action.VALIDATE_REGEX:
        raise arguments.UsageError(
            "Option --validate-regex needs the service's regular expressions: "
            "use `manage.py kgroups` in a clone of the service"
        )
    assert wanted.url is not None, "it has a default"
    to_stderr = wanted.reset is not None and wanted.reset.export
    output = Output(sys.stdout, sys.stderr, errors_on_stderr=to_stderr)
    with service_at(wanted.url, wanted.token_file, wanted.timeout_ms) as api:
        return run(wanted, api, output)


class _Parser(argparse.ArgumentParser):
    """Unknown options are usage errors like all others: exit status 1, not argparse's 2 (docs/kgroups.md)."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise arguments.UsageError(f"{self.format_usage()}{message}")


class _Completion(argparse.Action):
    """Prints the script for a shell, and ends, as --version does."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        sys.stdout.write(completion.script(values, parser))
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="kgroups",
        description="List, describe, reset and delete groups and their offsets, as kafka-consumer-groups does.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kgroups {kcoord.__version__}")
    shells = ", ".join(completion.SHELLS)
    text = f"print a script that completes the options in a shell ({shells}), and exit"
    parser.add_argument("--completion", action=_Completion, choices=completion.SHELLS, metavar="SHELL", help=text)
    options.declare(parser, service=f"the service (without --url: {URL_VARIABLE}, else {DEFAULT_URL})")
    return parser


if __name__ == "__main__":
    sys.exit(main())
