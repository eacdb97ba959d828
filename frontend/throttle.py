"""Slows down guessing of passwords: after some failures in a row the next attempt has to wait.

Counted in the database, so that it holds across server processes and restarts, under two keys: the account name (5
failures are free) and the address (20 are free, since a proxy or office shares one). Names that Django's sign-in takes
for the same, and addresses that one subscriber of a provider has, count as one. Each further failure doubles
the wait, from one second up to a minute: guessing stays at about one password a minute, and whoever is locked out by
somebody else's attempts gets in within that minute. A quarter of an hour without a failure forgets everything.
An attempt counts before its password is looked at, so that attempts sent at the same moment cannot all pass.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from django.db import connection

from kcoord.sql import queries

Q = queries("frontend")

FORGET_MS = 15 * 60_000
LONGEST_WAIT_MS = 60_000
FREE_FOR_ACCOUNT = 5
FREE_FOR_ADDRESS = 20

LONGEST_NAME = 254
"""Longer names have no account. They are not normalized, as Django does not: it would take time for nothing."""

SUBSCRIBER_BITS = 64
"""A subscriber of a provider has 2^64 IPv6 addresses or more; the first half of an address names it (RFC 6177)."""


@dataclass(frozen=True, slots=True)
class Key:
    """What is counted, and how many failures it may have before it has to wait."""

    key: str
    free: int

    def parameters(self) -> dict[str, str | int]:
        """As the statements take them."""
        return {"key": self.key, "free": self.free, "forget_ms": FORGET_MS, "longest_ms": LONGEST_WAIT_MS}


def account_key(username: str) -> Key:
    """The key of an account, whether it exists or not. Hashed: people type passwords into this field.

    Django's form strips a name and applies NFKC before the account is looked up, so all spellings of one account have
    one key. Accounts that differ in case alone share theirs.
    """
    return Key("account:" + hashlib.sha256(_folded(username).encode()).hexdigest(), FREE_FOR_ACCOUNT)


def address_key(address: str) -> Key:
    """The key of a client's address: of an IPv6 address its /64, unless an IPv4 address is mapped into it."""
    return Key(f"address:{_network(address)}", FREE_FOR_ADDRESS)


def _folded(username: str) -> str:
    name = username.strip()
    if len(name) > LONGEST_NAME:
        return name
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return address[:200]  # a Unix socket has none
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    host_bits = 128 - SUBSCRIBER_BITS
    return f"{IPv6Address(int(found) >> host_bits << host_bits)}/{SUBSCRIBER_BITS}"


def count_attempt(username: str, address: str) -> int:
    """Count an attempt to sign in; returns how many ms it has to wait, 0 if it may go on.

    An attempt that has to wait does not count, or an attacker could keep an account locked for ever.
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
    """The attempt just counted was right: the account starts afresh, the address gets its one attempt back."""
    with connection.cursor() as cursor:
        cursor.execute(Q.forgive_user, account_key(username).parameters())
        cursor.execute(Q.forgive_one, address_key(address).parameters())
        cursor.execute(Q.forget_old_attempts, {"forget_ms": FORGET_MS})
