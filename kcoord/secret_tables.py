"""TOML files with secrets, a table for each peer of the service: receivers of alerts, other services.

The person who deploys the service writes them, so no secret of theirs is in Postgres or on a page.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "a name has 1 to 64 letters, digits, '.', '_' and '-'"
MOST_TABLES = 100
OTHERS = stat.S_IWGRP | stat.S_IRWXO
"""The group may read it: so Kubernetes mounts secrets."""


class SecretTablesError(Exception):
    """The file cannot be used. The text names the setting, the table and the remedy, and no value: those are secret."""


def read_secret_tables(setting: str, path: str, noun: str, fields: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """The tables of the file at `path` by name; none for an empty path. Raises SecretTablesError.

    `setting`: the setting that names the file; `noun`: what a table is, "receiver"; `fields`: those it may have.
    """
    if not path:
        return {}
    file = Path(path)
    try:
        if stat.S_IMODE(file.stat().st_mode) & OTHERS:
            raise SecretTablesError(f"{setting}: others can use {path}, which holds secrets: chmod 600 it")
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SecretTablesError(f"{setting}: {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SecretTablesError(f"{setting}: {path} is not TOML: {error}") from error
    if len(tables) > MOST_TABLES:
        raise SecretTablesError(f"{setting}: {len(tables)} {noun}s, of at most {MOST_TABLES}")
    for name, table in tables.items():
        here = f"{setting}: {noun} {name!r}"
        if not NAME.fullmatch(name):
            raise SecretTablesError(f"{here}: {NAME_RULE}")
        if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
            raise SecretTablesError(f"{here}: expected a table [{name}] whose fields are texts")
        unknown = sorted(table.keys() - set(fields))
        if unknown:
            known = ", ".join(sorted(fields))
            raise SecretTablesError(f"{here}: unknown field {unknown[0]!r}; the fields are {known}")
    return tables


def is_http_address(url: str) -> bool:
    """Whether it is an http or https address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets or a port that make no sense
        return False
