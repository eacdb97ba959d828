"""Who can be told of alerts: the file `alerts.receivers.file`, and how a message reaches them.

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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kcoord.door.http.outgoing import OutgoingError, exchange
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


class SendError(Exception):
    """A message was not taken. The text says why, without the address."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """Who can be told. `kind`: `webhook`, or the scheme of an address of Apprise. `address` and `secret` stay here."""

    name: str
    kind: str
    address: str = field(repr=False)
    secret: str = field(default="", repr=False)

    async def send(self, message: Message) -> None:
        """Send a message, within TIMEOUT_SECONDS. Raises SendError."""
        await (_post if self.kind == "webhook" else _notify)(self, message)


def read_receivers(path: str) -> Mapping[str, Receiver]:
    """The receivers of a file by name; none for an empty path. Raises SecretTablesError."""
    tables = read_secret_tables(RECEIVERS_FILE, path, "receiver", FIELDS)
    return {name: _receiver(name, table) for name, table in tables.items()}


def _receiver(name: str, table: Mapping[str, str]) -> Receiver:
    here = f"{RECEIVERS_FILE}: receiver {name!r}"
    if ("url" in table) == ("webhook" in table):
        raise SecretTablesError(f"{here}: give either a webhook or a url")
    if "webhook" in table:
        if not is_http_address(table["webhook"]):
            raise SecretTablesError(f"{here}: webhook is not an http or https address")
        return Receiver(name, "webhook", table["webhook"], table.get("secret", ""))
    if "secret" in table:
        raise SecretTablesError(f"{here}: a secret belongs to a webhook; the url of a receiver holds its own")
    if not _is_known(table["url"]):
        raise SecretTablesError(f"{here}: Apprise does not know the url; see its list of services")
    return Receiver(name, table["url"].partition(":")[0].lower(), table["url"])


def _is_known(url: str) -> bool:
    import apprise

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
        raise SendError(f"{receiver.kind} did not take the message; the log of the worker says why")


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
