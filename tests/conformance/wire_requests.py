"""Requests of Kafka's protocol for calls over HTTP: their parts, and what all of them need."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from kcoord.door.kafka.api import UNSUPPORTED_VERSION
from kcoord.door.kafka.codec import Fields
from kcoord.protocol.errors import BY_CODE
from tests.conformance.conventions import NEWEST_VERSIONS
from tests.conformance.driver import BrokenPromise
from tests.conformance.http_terms import Args, HttpAnswer, HttpRequest

_IN_GROUP = re.compile(r"/v1/groups/(?P<group>[^/]*)")


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request by the names of kio's fields."""

    api: str
    version: int
    fields: Mapping[str, Any]
    client_id: str = "t"


@dataclass(frozen=True, slots=True)
class Translation:
    """How one call travels."""

    request: Callable[[HttpRequest, Args], WireRequest]
    read: Callable[[Fields, WireRequest], HttpAnswer]


def name_of(code: int) -> str:
    """The name of an error."""
    return "UNSUPPORTED_VERSION" if code == UNSUPPORTED_VERSION else BY_CODE[code].name


def refused(code: int, **fields: Any) -> HttpAnswer:
    """The answer for an error."""
    return HttpAnswer(400, {"error": name_of(code), **fields})


def group_of(request: HttpRequest) -> str:
    """The group that a path names. Raises BrokenPromise."""
    found = _IN_GROUP.match(request.path)
    if found is None:
        raise BrokenPromise(f"{request.path} names no group")
    return unquote(found["group"])


def body_of(request: HttpRequest) -> Mapping[str, Any]:
    """What it says, if anything."""
    return request.body or {}


def version_of(call: str, args: Args) -> int:
    """The version that a case names, else the newest that names topics."""
    return int(args.get("api_version", NEWEST_VERSIONS[call]))
