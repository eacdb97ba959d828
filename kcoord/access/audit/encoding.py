"""The encoding of a record of the audit, from which its hash is computed, and its JSON.

It is the same as that of the SQL function `kcoord_audit_digest`. docs/operations/access.md describes it for
other programs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

GENESIS = bytes(32)
"""The hash before the first record."""

_HEADING = b"kcoord audit 1\n"
HIDDEN = "(hidden)"
SECRETS = frozenset({"digest", "password", "previous_digest", "secret"})
"""Names of values that are never recorded."""

LONGEST = 16_384
"""Characters of the JSON of what was before or after; beyond them only its size is recorded."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of the chain. `before`, `after`: JSON as it was written. `count`: how often it happened."""

    seq: int
    prev: bytes
    hash: bytes
    at: int
    kind: str
    principal: str
    principal_id: str
    address: str
    request_id: str
    door: str
    act: str
    resource: str
    name: str
    before: str | None
    after: str | None
    reason: str
    result: str
    error: str
    count: int


_ENCODED = tuple(field.name for field in fields(Record) if field.name != "hash")


def digest(record: Record) -> bytes:
    """SHA-256 of the encoding: a heading, then each field except `hash`, in the order of the columns."""
    return hashlib.sha256(_HEADING + b"".join(_field(name, getattr(record, name)) for name in _ENCODED)).digest()


def _field(name: str, value: object) -> bytes:
    if value is None:
        return f"{name} -\n".encode()
    text = value.hex() if isinstance(value, bytes) else str(value)
    encoded = text.encode()
    return f"{name} {len(encoded)}:".encode() + encoded + b"\n"


def canonical(value: object) -> str | None:
    """JSON with sorted keys and without spaces, secrets hidden; None stays None.

    Text that is not valid Unicode, NUL and numbers that are not integers are written so that every database and
    language reads the same.
    """
    if value is None:
        return None
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if len(text) > LONGEST:
        text = json.dumps({"characters": len(text), "omitted": True}, sort_keys=True, separators=(",", ":"))
    return text


def clean(text: str) -> str:
    """Text that Postgres can store."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {clean(str(key)): HIDDEN if key in SECRETS and item else _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_plain(item) for item in value]
        return sorted(items, key=repr) if isinstance(value, set | frozenset) else items
    return clean(str(value))


def to_json(record: Record) -> dict[str, Any]:
    """A record as exports and `/v1/audit` show it: hashes in hex, `before` and `after` as JSON."""
    shown = asdict(record)
    for name in ("before", "after"):
        shown[name] = None if shown[name] is None else json.loads(shown[name])
    return {**shown, "prev": record.prev.hex(), "hash": record.hash.hex()}


def from_json(line: Mapping[str, Any]) -> Record:
    """The record of an exported line. Raises KeyError, ValueError, TypeError for one that is not such a line."""
    values = {field.name: line[field.name] for field in fields(Record)}
    for name in ("before", "after"):
        if values[name] is not None:
            values[name] = json.dumps(values[name], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Record(**{**values, "prev": bytes.fromhex(line["prev"]), "hash": bytes.fromhex(line["hash"])})
