"""Texts that JSON or URLs allow and Postgres does not, in every string of every operation of the control plane.

Each is sent in a request that is otherwise carried out, so that what is not refused is stored or compared there.
The bodies of the data plane are in `test_bad_input.py`, Kafka's protocol is in `tests/wire/test_odd_texts.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from urllib.parse import quote, quote_from_bytes

import pytest
from structlog.testing import capture_logs

from tests.kcoord.audit.test_walk import PLAN, STORIES, Story, World, changing, committed, config, world

__all__ = ["config", "world"]

UNSTORABLE = {"nul": "\0", "nul inside": "a\0b", "surrogate": "a\ud800"}
"""What Postgres has no text for."""
ODD = {
    **UNSTORABLE,
    "noncharacter": "\uffff",
    "line breaks": "a\r\n\x1b[0m",
    "quotes": "a'\"\\%_{}",
    "longer than an index": "x" * 3_000,
}
BYTES = {"nul": b"a\0b", "not utf-8": b"a\xff\xfeb", "surrogate": b"\xed\xa0\x80", "overlong nul": b"\xc0\x80"}
"""The same in an address, which has bytes."""
Place = tuple[str | int, ...]


def document() -> Any:
    from kcoord.control.openapi.page import document as text

    return json.loads(text())


DOCUMENT = document()


def resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def texts(schema: Any, place: Place = (), depth: int = 0) -> Iterator[Place]:
    """The places of all strings of a body; `"*"` stands for a name that the client chooses."""
    schema = resolved(schema)
    if depth > 6:
        return
    for part in (*schema.get("oneOf", ()), *schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from texts(part, place, depth + 1)
    kinds = schema.get("type", "object")
    if "string" in kinds:
        yield place
    if "array" in kinds:
        yield from texts(schema.get("items", {}), (*place, 0), depth + 1)
    for name, inner in schema.get("properties", {}).items():
        yield from texts(inner, (*place, name), depth + 1)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        yield (*place, "*")
        yield from texts(others, (*place, "owner"), depth + 1)


def with_text(body: Any, place: Place, text: str) -> Any:
    """The body with a text at a place; what leads there is made if it is not there."""
    if not place:
        return text
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        first = body[0] if isinstance(body, list) and body else {}
        return [with_text(first, rest, text)]
    found = dict(body) if isinstance(body, dict) else {}
    if step == "*":
        return {**found, text: "x"}
    found[step] = with_text(found.get(step), rest, text)
    return found


def parameters(path: str, method: str, where: str) -> list[str]:
    operation = DOCUMENT["paths"][path][method]
    both = (*DOCUMENT["paths"][path].get("parameters", ()), *operation.get("parameters", ()))
    return [one["name"] for one in both if one["in"] == where]


READS = {
    operation["operationId"]: ("get", path)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if method == "get" and path.startswith("/v1/")
}


async def prepared(operation: str, world: World) -> tuple[str, str, Story, dict[str, str]]:
    """Method, path, the request that is carried out, and the parameters of its path."""
    if operation in READS:
        method, path = READS[operation]
        await committed(world)
        made = await world.post("/v1/groups/g/offsets/plan", PLAN)
        ordinary = {"group_id": "g", "name": "orders", "topic": "orders", "plan_id": made["id"]}
        return method, path, Story(), {name: ordinary.get(name, "1") for name in parameters(path, method, "path")}
    method, path = changing()[operation]
    story = STORIES[operation]
    given = (await story.prepare(world) if story.prepare is not None else None) or {}
    given.pop("name", None)
    return method, path, story, {**story.path, **given}


OPERATIONS = sorted({*STORIES, *READS})
WHOLE = pytest.mark.whole("odd texts in every operation of the control plane")
SAMPLE = {"holdGroup", "planOffsets", "createAlertRule", "listGroups", "listGroupLag"}


def requests(method: str, path: str, story: Story, given: dict[str, str]) -> Iterator[tuple[str, bool, str, Any]]:
    """Name of the field, whether it is unstorable, address, body; what is refused before what may be carried out."""

    def at(template: str) -> str:
        return template.format(**{name: quote(value, safe="") for name, value in given.items()})

    query = "&".join(f"{name}={quote(value)}" for name, value in story.query.items())
    schema = DOCUMENT["paths"][path][method].get("requestBody", {}).get("content", {}).get("application/json", {})
    for kind, text in ODD.items():
        for place in texts(schema["schema"]) if schema else ():
            named = next((str(step) for step in reversed(place) if isinstance(step, str) and step != "*"), "")
            yield named, kind in UNSTORABLE, f"{at(path)}?{query}", with_text(deepcopy(story.body), place, text)
    raws = {**BYTES, **{kind: text.encode() for kind, text in ODD.items() if kind not in UNSTORABLE}}
    for kind, raw in raws.items():
        text = quote_from_bytes(raw, safe="")
        for name in parameters(path, method, "query"):
            others = "".join(f"&{other}={quote(value)}" for other, value in story.query.items() if other != name)
            yield name, kind == "nul", f"{at(path)}?{name}={text}{others}", story.body
        for name in parameters(path, method, "path"):
            yield name, kind == "nul", f"{at(path.replace(f'{{{name}}}', text))}?{query}", story.body


@pytest.mark.parametrize("operation", [pytest.param(one, marks=() if one in SAMPLE else WHOLE) for one in OPERATIONS])
async def test_odd_texts_are_refused_by_name_or_stored(operation: str, world: World) -> None:
    method, path, story, given = await prepared(operation, world)
    wrong = []
    headers = {"content-type": "application/json"}
    with capture_logs() as lines:
        for name, unstorable, address, body in requests(method, path, story, given):
            content = {} if body is None else {"content": json.dumps(body), "headers": headers}
            answer = await world.api.request(method.upper(), address.removesuffix("?"), **content)
            # A batch answers for each of its things, and names those by their value.
            each = '"error":"INVALID_GROUP_ID"' in answer.text
            named = each or name in answer.text or name.replace("_", " ") in answer.text or answer.status_code == 404
            refused = each or answer.status_code >= 400
            if answer.status_code >= 500 or (unstorable and not (refused and named)):
                wrong.append((name, address, body, answer.status_code, answer.text))
    assert wrong == [], "\n".join(map(repr, wrong[:10]))
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []


def test_every_operation_is_walked() -> None:
    assert len(OPERATIONS) > 60
    assert set(OPERATIONS) >= SAMPLE
