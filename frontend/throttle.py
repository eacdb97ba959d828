"""Slows down password guessing: after several failures in a row the next attempt has to wait.

Counted in the database, so that it holds across server processes and restarts, under two keys: the account name (5
failures are free) and the address (20 are free, since a proxy or office shares one). Names that Django's sign-in
treats as equal, and addresses that belong to one subscriber of a provider, count as one. Each further failure doubles
the wait, from one second up to a minute: guessing stays at about one password per minute, and a user locked out by
someone else's attempts gets in within that minute. After a quarter of an hour without a failure the count is reset.
An attempt counts before its password is checked, so that concurrent attempts cannot all pass.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass

from django.db import connection

from kcoord.audit.refusals import network
from kcoord.sql import queries

Q = queries("frontend")

FORGET_MS = 15 * 60_000
LONGEST_WAIT_MS = 60_000
FREE_FOR_ACCOUNT = 5
FREE_FOR_ADDRESS = 20

LONGEST_NAME = 254
"""Longer names have no account. They are not normalized (neither does Django): it would be wasted time."""


@dataclass(frozen=True, slots=True)
class Key:
    """What is counted, and how many failures are allowed before it has to wait."""

    key: str
    free: int

    def parameters(self) -> dict[str, str | int]:
        """The values as parameters of the statements."""
        return {"key": self.key, "free": self.free, "forget_ms": FORGET_MS, "longest_ms": LONGEST_WAIT_MS}


def account_key(username: str) -> Key:
    """The key of an account, existing or not. Hashed: people type passwords into this field.

    Django's form strips a name and applies NFKC before the account is looked up, so all spellings of one account have
    one key. Accounts that differ only in case share theirs.
    """
    return Key("account:" + hashlib.sha256(_folded(username).encode()).hexdigest(), FREE_FOR_ACCOUNT)


def address_key(address: str) -> Key:
    """The key of a client's address: its /64 for IPv6, unless it is an IPv4-mapped address."""
    return Key(f"address:{network(address)}", FREE_FOR_ADDRESS)


def _folded(username: str) -> str:
    name = username.strip()
    if len(name) > LONGEST_NAME:
        return name
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def count_attempt(username: str, address: str) -> int:
    """Count a sign-in attempt; returns how many ms it has to wait, 0 if it may proceed.

    An attempt that has to wait does not count, or an attacker could keep an account locked indefinitely.
    """
    with connection.cursor() as cursor:
        for key in (address_key(address), account_key(username)):
            cursor.execute(Q.count_attempt, key.parameters())
            if cursor.fetchone() is None:
                cursor.execute(Q.wait_ms, key.parameters())
                row = cursor.fetchone()
                return max(int(row[0]) if row else 0, 1)
    return 0


def succeeded(username: str, address: str) -> None:
    """The attempt just counted succeeded: the account's count is reset, the address gets its one attempt back."""
    with connection.cursor() as cursor:
        cursor.execute(Q.forgive_user, account_key(username).parameters())
        cursor.execute(Q.forgive_one, address_key(address).parameters())
        cursor.execute(Q.forget_old_attempts, {"forget_ms": FORGET_MS})
