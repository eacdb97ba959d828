"""The servers that may be asked for the coordinator, and which announced addresses this client may use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from urllib.parse import urlsplit

from kcoord.protocol.errors import Error, ProtocolError


class Servers:
    """The servers of the `url` setting, in an order of this client's own, and the addresses it could not reach.

    Clients with the same setting begin with different servers, and continue with different ones when a server dies.
    Parameters: `forgive_s` how long ago an address must have failed before `forgive` makes it usable again.
    """

    def __init__(self, urls: Sequence[str], forgive_s: float, rng: Random) -> None:
        self._order = sorted(urls, key=lambda _: rng.random())
        self._forgive_s = forgive_s
        self._unreachable: dict[str, float] = {}

    def __iter__(self) -> Iterator[str]:
        """Each server once, the one that answered last before the others."""
        return iter(tuple(self._order))

    def skipped(self, server: str) -> None:
        """`server` was of no help: the others are asked before it from now on."""
        if server in self._order:
            self._order.remove(server)
            self._order.append(server)

    def lost(self, address: str, now: float) -> None:
        """There was no answer from `address`, a server or an announced address."""
        self.skipped(address)
        self._unreachable[address] = now

    def reached(self, address: str) -> None:
        """`address` answered."""
        self._unreachable.pop(address, None)

    def forgive(self, now: float) -> None:
        """Only the announced address will do: those that failed some time ago may be tried again."""
        for address, failed_at in tuple(self._unreachable.items()):
            if now - failed_at >= self._forgive_s:
                del self._unreachable[address]

    def is_unreachable(self, address: str) -> bool:
        """There was no answer from this address."""
        return address in self._unreachable


def permitted(announced: str, announcer: str) -> str | None:
    """The announced address without a trailing slash; None if it is not one, or if it leaves TLS.

    The token was sent to the announcer over TLS; it must not be sent without.
    """
    address = announced.rstrip("/")
    try:
        there, here = urlsplit(address), urlsplit(announcer)
        is_valid = there.scheme in ("http", "https") and bool(there.hostname) and there.port != 0
    except ValueError:
        return None
    if not is_valid or (here.scheme == "https" and there.scheme != "https"):
        return None
    return address


def named_coordinator(failure: ProtocolError, announcer: str) -> str | None:
    """The address of the coordinator that a NOT_COORDINATOR of `announcer` names, if it may be used and is another."""
    named = failure.fields.get("coordinator")
    if failure.error is not Error.NOT_COORDINATOR or named is None:
        return None
    address = permitted(named["url"], announcer)
    return None if address == announcer else address
