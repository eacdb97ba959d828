"""Who can be told of alerts: what a receiver is, the file `alerts.receivers.file`, and how a message reaches them.

A table of the file is a receiver (see `kcoord.secret_tables`):

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
import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kcoord.door.http.outgoing import OutgoingError, exchange
from kcoord.door.http.problem import invalid
from kcoord.protocol.errors import ProtocolError
from kcoord.secret_tables import SecretTablesError, is_http_address, read_secret_tables
from kcoord.setting_table import RECEIVERS_FILE
from offsets.alerts import wording
from offsets.alerts.types import Message
from offsets.core.alerts import Notice

TIMEOUT_SECONDS = 10.0
"""How long a receiver may take in all to connect, to take a message, and to answer."""
AT_ONCE = 8
"""How many receivers one process waits for at a time."""
SIGNATURE = "X-Kcoord-Signature"
FIELDS = {"url", "webhook", "secret"}
LOCAL = frozenset(["blink1", "dbus", "gio", "glib", "gnome", "kde", "macosx", "qt", "syslog", "vapid", "windows"])
"""Schemes of Apprise that show something on the machine that sends, or keep files there.

They are for the file alone, and so are LOCAL_FIELDS: rights in the service give none on its machines.
"""
LOCAL_FIELDS = ("keyfile", "pgp", "subfile", "template")
"""How those fields of addresses begin that name a file of that machine."""


class SendError(Exception):
    """A message was not taken. The text says why, without the address."""


class Source(StrEnum):
    """Where a receiver is kept."""

    FILE = "file"
    DATABASE = "database"


@dataclass(frozen=True, slots=True)
class Receiver:
    """Who can be told. `kind`: `webhook`, or the scheme of an address of Apprise. `address` and `secret` stay here.

    `problem`: what is wrong with it, "" if nothing is. Without an address nothing is sent.
    """

    name: str
    kind: str
    address: str = field(repr=False)
    secret: str = field(default="", repr=False)
    source: Source = Source.FILE
    problem: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether there is one of this name that can be deleted, also if the file has another."""
        return self.source is Source.DATABASE or bool(self.problem)

    async def send(self, message: Message) -> None:
        """Send a message, within TIMEOUT_SECONDS. Raises SendError."""
        if not self.address:
            raise SendError(self.problem)
        await (_post if self.kind == "webhook" else _notify)(self, message)


def read_receivers(path: str) -> Mapping[str, Receiver]:
    """The receivers of a file by name; none for an empty path. Raises SecretTablesError."""
    tables = read_secret_tables(RECEIVERS_FILE, path, "receiver", FIELDS)
    found = {}
    for name, table in tables.items():
        try:
            found[name] = receiver_of(name, table)
        except ProtocolError as error:
            raise SecretTablesError(f"{RECEIVERS_FILE}: receiver {name!r}: {error.detail}") from None
    return found


def receiver_of(name: str, fields: Mapping[str, str], source: Source = Source.FILE) -> Receiver:
    """A receiver with some of FIELDS. Raises INVALID_REQUEST naming the field, without its value."""
    if ("url" in fields) == ("webhook" in fields):
        raise invalid("give either a webhook or a url", "webhook")
    if "webhook" in fields:
        if not is_http_address(fields["webhook"]):
            raise invalid("webhook is not an http or https address", "webhook")
        return Receiver(name, "webhook", fields["webhook"], fields.get("secret", ""), source)
    if "secret" in fields:
        raise invalid("a secret belongs to a webhook; the url of a receiver holds its own", "secret")
    if not _is_known(fields["url"]):
        raise invalid("Apprise does not know the url; see its list of services", "url")
    return Receiver(name, fields["url"].partition(":")[0].lower(), fields["url"], source=source)


def refuse_local(url: str) -> None:
    """Raise INVALID_REQUEST for an address of Apprise that only the file may have: see LOCAL."""
    from apprise.plugins import url_to_dict

    with _unlogged():
        read: Any = url_to_dict(url) or {"schema": "", "qsd": {}}  # type: ignore[no-untyped-call]
    if read["schema"] in LOCAL or any(name.startswith(LOCAL_FIELDS) for name in read["qsd"]):
        raise invalid("the url acts on the machine that sends, or reads its files: only the file may have it", "url")


_is_checking: ContextVar[bool] = ContextVar("is_checking", default=False)
logging.getLogger("apprise").addFilter(lambda record: not _is_checking.get())


@contextmanager
def _unlogged() -> Iterator[None]:
    """Apprise logs addresses that it does not know, with what may be their secrets."""
    token = _is_checking.set(True)
    try:
        yield
    finally:
        _is_checking.reset(token)


def _is_known(url: str) -> bool:
    import apprise

    with _unlogged():
        return bool(apprise.Apprise().add(url))


async def _notify(receiver: Receiver, message: Message) -> None:
    """Apprise blocks, and limits each read only: a thread that it holds for longer is left to it."""
    work = asyncio.get_running_loop().run_in_executor(_threads(), _notify_now, receiver, message)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            was_taken = await work
    except TimeoutError as error:
        raise SendError(f"no answer within {TIMEOUT_SECONDS:g} s") from error
    if not was_taken:
        raise SendError(f"{receiver.kind} did not take the message; the log says why")


@functools.cache
def _threads() -> ThreadPoolExecutor:
    """Threads for Apprise alone: receivers that are slow take none of those that the service needs."""
    return ThreadPoolExecutor(AT_ONCE, "kcoord-notify")


def _notify_now(receiver: Receiver, message: Message) -> bool:
    import apprise

    service = apprise.Apprise()
    service.add(receiver.address)
    is_good = message.notice in (Notice.RESOLVED.value, Notice.TEST.value)
    kind = apprise.NotifyType.SUCCESS if is_good else apprise.NotifyType.WARNING
    return bool(service.notify(body=wording.text(message), title=wording.title(message), notify_type=kind))


async def _post(receiver: Receiver, message: Message) -> None:
    """Redirects are not followed: the answer must come from the address of the file."""
    content = json.dumps(wording.body(message), ensure_ascii=False, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "X-Kcoord-Message": message.id}
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
