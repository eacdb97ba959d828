"""Requests of Kafka's protocol to the handlers of the gateway, in process: encoded and decoded as on a connection.

`kio` writes the requests and reads the answers, so what is tested against is not the gateway's own codec.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
from kio.serial import entity_reader, entity_writer

from groups.api.kafka.apis import APIS as OF_GROUPS
from kcoord.access.rights import ALL_ALLOWED, Principal, Rules
from kcoord.door.http.peers import Peer
from kcoord.door.kafka.api import Api, Call, Session, Software, request_class, response_class
from kcoord.door.kafka.codec import Frame
from kcoord.door.kafka.dispatch import encoded
from kcoord.door.kafka.gateway import limits_of
from kcoord.process.off_loop import settled
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from offsets.api.kafka.apis import APIS as OF_OFFSETS
from tests.support.frames import read_all

BY_NAME: dict[str, Api] = {api.name: api for api in (*OF_GROUPS, *OF_OFFSETS)}


@dataclass
class Wire:
    """A client that is logged in: `ask` sends a request and returns the answer, a dataclass of kio."""

    runtime: Runtime
    principal: Principal

    async def ask(self, name: str, version: int, **request: Any) -> Any:
        """The answer to a request with these fields; or None. Fields that are left out have defaults."""
        api = BY_NAME[name]
        assert api.serves(version), f"{name} {version} is not served"
        cls: Any = request_class(name, version)
        sent = io.BytesIO()
        entity_writer(cls)(sent, filled(cls, request))
        content = read_all(cls, Frame(sent.getvalue()), 0)
        gateway = SimpleNamespace(software=Software())
        session = Session(Peer(limits_of(self.runtime.config)), "127.0.0.1", 1, "127.0.0.1", 2)
        call = Call(self.runtime, gateway, session, self.principal, version, "tests")
        try:
            fields_ = await settled(api.handler(call, content))
        except ProtocolError as error:
            fields_ = api.refuse(content, version, error.error.code, error.detail)
        if fields_ is None:
            return None
        expected: Any = response_class(name, version)
        header = 5 if expected.__flexible__ else 4
        got = encoded(api.key, name, version, 1, fields_)[4 + header :]
        found, end = entity_reader(expected)(got, 0)
        assert end == len(got)
        return found


def filled(cls: Any, given: Mapping[str, Any]) -> Any:
    """An instance of a kio class with nested mappings made classes, and defaults for what is not given."""
    hints = get_type_hints(cls)
    unknown = given.keys() - {field.name for field in fields(cls)}
    assert not unknown, f"{cls.__name__} {cls.__version__} has no {unknown}"
    values: dict[str, Any] = {}
    for field in fields(cls):
        hint = hints[field.name]
        options = [hint, *get_args(hint), *(inner for option in get_args(hint) for inner in get_args(option))]
        nested = next((option for option in options if is_dataclass(option)), None)
        if field.name not in given:
            if field.default is MISSING:
                values[field.name] = _default(field.metadata.get("kafka_type"), options)
            continue
        value = given[field.name]
        if isinstance(value, (list, tuple)):
            value = tuple(filled(nested, entry) if nested is not None else entry for entry in value)
        elif nested is not None and isinstance(value, Mapping):
            value = filled(nested, value)
        elif str(field.metadata.get("kafka_type")).startswith("timedelta"):
            value = datetime.timedelta(milliseconds=value)
        values[field.name] = value
    return cls(**values)


def _default(kind: Any, options: list[Any]) -> Any:
    if type(None) in options:
        return None
    if kind is not None and kind.startswith("timedelta"):
        return datetime.timedelta()
    if tuple in options or any(getattr(option, "__origin__", None) is tuple for option in options):
        return ()
    return {"string": "", "bool": False, "bytes": b""}.get(kind, 0)


WireWith = Callable[..., Wire]


@pytest.fixture
def wire(runtime: Runtime) -> Wire:
    """A client that may do everything."""
    return Wire(runtime, Principal(1, "test", ALL_ALLOWED))


@pytest.fixture
def wire_with(runtime: Runtime) -> WireWith:
    """Make a client with just these rules, written `operation:resource:name`."""

    def make(*rules: str) -> Wire:
        parts = [rule.split(":", 2) for rule in rules]
        return Wire(
            runtime,
            Principal(
                2,
                "limited",
                Rules(
                    (op, kind, "prefix" if name.endswith("*") else "literal", name.rstrip("*"))
                    for op, kind, name in parts
                ),
            ),
        )

    return make
