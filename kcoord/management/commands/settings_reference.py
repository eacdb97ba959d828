"""`manage.py settings_reference`: every setting with its variable, default, unit, bounds and help."""

from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from kcoord.config import Config
from kcoord.setting import Setting, Value
from kcoord.setting_table import INT_MAX, SETTINGS


class Command(BaseCommand):
    help = "List the settings: name, environment variable, default, unit, bounds, help, and current value."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which settings, and the output format."""
        parser.add_argument("name", nargs="?", help="only settings whose name or variable contains this")
        parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print them."""
        wanted = (options["name"] or "").lower()
        found = [s for s in SETTINGS if wanted in s.name or wanted in s.env.lower()]
        write = {"text": as_text, "markdown": as_markdown, "json": as_json}[options["format"]]
        self.stdout.write(write(found, settings.KCOORD))


def bounds(setting: Setting) -> str:
    """The allowed values, as text; empty if all are."""
    if setting.choices:
        return (", " if setting.listed else " | ").join(setting.choices)
    if isinstance(setting.default, bool):
        return "true | false"
    low, high = setting.minimum, setting.maximum if setting.maximum != INT_MAX else None
    if low is None and high is None:
        return ""
    return f"{low} to {high}" if low is not None and high is not None else f"{low} or more"


def written(value: Value) -> str:
    """A value as it would be written in the environment."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def in_force(setting: Setting, config: Config) -> Value:
    """The value in effect; a secret is only reported to be set."""
    value: Value
    if isinstance(setting.default, bool):
        value = config.bool(setting.name)
    elif isinstance(setting.default, int):
        value = config.int(setting.name)
    else:
        value = config.str(setting.name)
    return "(set)" if setting.secret and value else value


def as_text(found: list[Setting], config: Config) -> str:
    """One paragraph per setting, for a terminal."""
    paragraphs = []
    for setting in found:
        value, default = written(in_force(setting, config)), written(setting.default)
        shown = value if value == default else f"{value} (default {default or 'empty'})"
        allowed = f"; {bounds(setting)}" if bounds(setting) else ""
        text = textwrap.fill(setting.help, 100, initial_indent="    ", subsequent_indent="    ")
        paragraphs.append(f"{setting.env}={shown}\n    {setting.name}, in {setting.unit}{allowed}\n{text}")
    return "\n\n".join(paragraphs)


def as_markdown(found: list[Setting], config: Config) -> str:
    """The table, whatever is in effect."""
    return as_table(found)


def as_table(found: list[Setting]) -> str:
    """A table of variables, defaults and meaning, for a page of documentation."""
    rows = [
        f"| `{s.env}` | {f'`{written(s.default)}`' if s.default != '' else ''} | {s.unit} "
        f"| {bounds(s).replace('|', chr(92) + '|')} | {s.help} |"
        for s in found
    ]
    return "\n".join(["| variable | default | unit | allowed | meaning |", "| --- | --- | --- | --- | --- |", *rows])


def as_json(found: list[Setting], config: Config) -> str:
    """A list of objects, for programs."""
    return json.dumps(
        [
            {
                "name": s.name,
                "env": s.env,
                "default": s.default,
                "unit": s.unit,
                "minimum": s.minimum,
                "maximum": s.maximum,
                "choices": list(s.choices),
                "help": s.help,
                "secret": s.secret,
                "value": in_force(s, config),
            }
            for s in found
        ],
        indent=2,
        ensure_ascii=False,
    )
