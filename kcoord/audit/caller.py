"""On whose behalf code runs, and from where: what a record of the audit says about its author.

A `Caller` is made where a request enters and travels in a context variable, over the bridge too. Who it is may become
known later, when the token or the session was looked at. Code that outlives the request, such as the queue of a group,
takes the caller along (`Work.caller`).
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a principal is."""

    PERSON = "person"
    TOKEN = "token"  # noqa: S105 - not a secret
    LOCAL = "local"
    NODE = "node"
    UNKNOWN = "unknown"


class Door(StrEnum):
    """Where a request came in."""

    HTTP = "http"
    DASHBOARD = "dashboard"
    ADMIN = "admin"
    WIRE = "wire"
    COMMAND = "command"
    SERVICE = "service"


@dataclass(slots=True)
class Caller:
    """Who acts. `identifier`: the id of a token or an account. `address`: of the client, "" if it came by no network.

    `subject`: what its request names, as far as it was read. `refused`: a refusal of it was noted already.
    """

    door: Door
    kind: Kind = Kind.UNKNOWN
    name: str = ""
    identifier: str = ""
    address: str = ""
    request_id: str = ""
    subject: str = ""
    refused: bool = False


_current: ContextVar[Caller | None] = ContextVar("kcoord_caller", default=None)
_process: Caller | None = None


def current() -> Caller:
    """The caller; outside of a request the process itself."""
    return _current.get() or of_process()


def of_request() -> Caller | None:
    """The caller of the current request; None outside of one."""
    return _current.get()


def of_process() -> Caller:
    """The process: a server or worker after `is_service`, else a command of a user of this machine."""
    global _process
    if _process is None:
        _process = Caller(Door.COMMAND, Kind.LOCAL, f"local:{_user()}", address=os.uname().nodename)
    return _process


def is_service(node: str) -> None:
    """This process serves requests or runs tasks: what nobody asked for is done by this node."""
    global _process
    _process = Caller(Door.SERVICE, Kind.NODE, node, address=os.uname().nodename)


def identify(name: str, token_id: int | None = None, account_id: object = None) -> None:
    """Who the caller of the current request is, once that is known. Without a request it has no effect.

    A token without an id is the user of this machine, whose command made the request within its own process.
    """
    caller = _current.get()
    if caller is None:
        return
    caller.name = name
    if account_id is not None:
        caller.kind, caller.identifier = Kind.PERSON, str(account_id)
    elif token_id:
        caller.kind, caller.identifier = Kind.TOKEN, str(token_id)
    else:
        caller.kind, caller.door, caller.address = Kind.LOCAL, Door.COMMAND, os.uname().nodename


def enter(caller: Caller) -> None:
    """Make `caller` that of the present context, which belongs to its request."""
    _current.set(caller)


@contextmanager
def calling(caller: Caller) -> Iterator[Caller]:
    """Make `caller` the current one."""
    token = _current.set(caller)
    try:
        yield caller
    finally:
        _current.reset(token)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the account has no name, as in some containers
        return str(os.getuid())
