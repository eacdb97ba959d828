"""Who can be told of alerts: the file `alerts.receivers.file`, and how a message reaches them.

Whoever deploys the service writes the file, so no secret is in Postgres or on a page, and nobody who may edit rules can
make a server send requests to an address of their choice. A table of the file is a receiver:

    [automation]                                # a program: JSON with every field, signed
    webhook = "https://ops.example.com/kcoord"
    secret = "..."

    [oncall]                                    # people: any address that Apprise knows (chats, e-mail, pagers)
    url = "slack://..."
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import hmac
import json
import re
import stat
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kcoord.http.outgoing import OutgoingError, exchange
from kcoord.setting_table import RECEIVERS_FILE

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_RECEIVERS = 100
TIMEOUT_SECONDS = 10.0
"""How long a receiver may take in all to connect, to take a message, and to answer."""
AT_ONCE = 8
"""How many receivers one process waits for at a time."""
SIGNATURE = "X-Kcoord-Signature"
OTHERS = stat.S_IWGRP | stat.S_IRWXO
"""The group may read it: so Kubernetes mounts secrets."""
FIELDS = {"url", "webhook", "secret"}


class ReceiversError(Exception):
    """The file cannot be used. The text names the receiver and the remedy, and no address: addresses hold secrets."""


class SendError(Exception):
    """A message was not taken. The text says why, without the address."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """Who can be told. `kind`: `webhook`, or the scheme of an address of Apprise. `address` and `secret` stay here."""

    name: str
    kind: str
    address: str = field(repr=False)
    secret: str = field(default="", repr=False)

    async def send(self, message_id: str, title: str, text: str, body: Mapping[str, Any], *, bad: bool = True) -> None:
        """Send a message, within TIMEOUT_SECONDS. Raises SendError.

        `title` and `text` are for people, `body` for programs. `bad`: it is about something that is wrong.
        """
        if self.kind == "webhook":
            await _post(self, message_id, body)
        else:
            await _notify(self, title, text, bad=bad)


def read_receivers(path: str) -> Mapping[str, Receiver]:
    """The receivers of a file by name; none for an empty path. Raises ReceiversError."""
    if not path:
        return {}
    file = Path(path)
    try:
        if stat.S_IMODE(file.stat().st_mode) & OTHERS:
            raise ReceiversError(f"{RECEIVERS_FILE}: others can use {path}, which holds secrets: chmod 600 it")
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReceiversError(f"{RECEIVERS_FILE}: {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReceiversError(f"{RECEIVERS_FILE}: {path} is not TOML: {error}") from error
    if len(tables) > MOST_RECEIVERS:
        raise ReceiversError(f"{RECEIVERS_FILE}: {len(tables)} receivers, of at most {MOST_RECEIVERS}")
    return {name: _receiver(name, table) for name, table in tables.items()}


def _receiver(name: str, table: object) -> Receiver:
    here = f"{RECEIVERS_FILE}: receiver {name!r}"
    if not NAME.fullmatch(name):
        raise ReceiversError(f"{here}: a name has 1 to 64 letters, digits, '.', '_' and '-'")
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise ReceiversError(f"{here}: expected a table [{name}] with a webhook or a url, as texts")
    unknown = sorted(table.keys() - FIELDS)
    if unknown:
        raise ReceiversError(f"{here}: unknown field {unknown[0]!r}; the fields are {', '.join(sorted(FIELDS))}")
    if ("url" in table) == ("webhook" in table):
        raise ReceiversError(f"{here}: give either a webhook or a url")
    if "webhook" in table:
        parts = urlsplit(table["webhook"])
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ReceiversError(f"{here}: webhook is not an http or https address")
        return Receiver(name, "webhook", table["webhook"], table.get("secret", ""))
    if "secret" in table:
        raise ReceiversError(f"{here}: a secret belongs to a webhook; the url of a receiver holds its own")
    if not _is_known(table["url"]):
        raise ReceiversError(f"{here}: Apprise does not know the url; see its list of services")
    return Receiver(name, table["url"].partition(":")[0].lower(), table["url"])


def _is_known(url: str) -> bool:
    import apprise

    return bool(apprise.Apprise().add(url))


async def _notify(receiver: Receiver, title: str, text: str, *, bad: bool) -> None:
    """Apprise blocks, and limits each read only: a thread that it holds for longer is left to it."""
    work = asyncio.get_running_loop().run_in_executor(_threads(), _notify_now, receiver, title, text, bad)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            was_taken = await work
    except TimeoutError as error:
        raise SendError(f"no answer within {TIMEOUT_SECONDS:g} s") from error
    if not was_taken:
        raise SendError(f"{receiver.kind} did not take the message; the log of the worker says why")


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Threads for Apprise alone: receivers that are slow take none of those that the service needs."""
    return ThreadPoolExecutor(AT_ONCE, "kcoord-notify")


def _notify_now(receiver: Receiver, title: str, text: str, bad: bool) -> bool:
    import apprise

    service = apprise.Apprise()
    service.add(receiver.address)
    kind = apprise.NotifyType.WARNING if bad else apprise.NotifyType.SUCCESS
    return bool(service.notify(body=text, title=title, notify_type=kind))


async def _post(receiver: Receiver, message_id: str, body: Mapping[str, Any]) -> None:
    """Redirects are not followed: the answer must come from the address of the file."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "X-Kcoord-Message": message_id}
    if receiver.secret:
        headers[SIGNATURE] = "sha256=" + hmac.new(receiver.secret.encode(), content, hashlib.sha256).hexdigest()
    try:
        answer = await exchange(
            "POST", receiver.address, TIMEOUT_SECONDS, headers=headers, content=content, reads_body=False
        )
    except OutgoingError as error:
        raise SendError(str(error)) from error
    if not 200 <= answer.status < 300:
        raise SendError(f"the answer was {answer.status}")
