"""Texts that JSON and URLs allow and Postgres or an index does not, in every string of every operation over HTTP.

Each is answered below 500, as the texts of tests/wire are; the operations and their strings are those of the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from groups.catalogue.topics import TopicService
from kcoord.process.runtime import Runtime

pytestmark = pytest.mark.whole("thousands of requests; test_openapi sends the examples")

ODD = {
    "nul": "\0",
    "nul inside": "a\0b",
    "surrogate": "a\ud800",
    "line breaks": "a\r\n\x1b[0m",
    "bidirectional": "a\u202eb",
    "noncharacter": "\uffff",
    "beyond the basic plane": "\U0001f600",
    "longer than an index": "x" * 3_000,
    "dots": "..",
}
NAMES = {"group_id": "g", "name": "orders", "topic": "orders"}
DEEPEST = 6

Path = tuple[str, ...]


class Document:
    """The served document, of which `components` are looked up."""

    def __init__(self) -> None:
        from kcoord.openapi.page import document

        self.tree: dict[str, Any] = json.loads(document())

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Path, method and description of all that do not answer with a stream."""
        for path, item in self.tree["paths"].items():
            for method in ("get", "put", "post", "patch", "delete"):
                if method in item and "event-stream" not in json.dumps(item[method]["responses"]):
                    yield path, method, {**item[method], "shared": item.get("parameters", [])}

    def resolved(self, schema: Any) -> dict[str, Any]:
        """A schema without references and choices: the first that is not null."""
        while True:
            if "$ref" in schema:
                found: Any = self.tree
                for part in schema["$ref"].removeprefix("#/").split("/"):
                    found = found[part]
                schema = found
            elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
                schema = next(choice for choice in choices if choice.get("type") != "null")
            else:
                return dict(schema)

    def kind(self, schema: dict[str, Any]) -> str:
        """Its type."""
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        return kinds if isinstance(kinds, str) else next(kind for kind in kinds if kind != "null")

    def strings(self, given: Any, at: Path = ()) -> Iterator[Path]:
        """The paths of all strings; `*` is an item of a list, or the value of a map."""
        schema = self.resolved(given)
        kind = self.kind(schema)
        if kind == "string":
            yield at
        if len(at) >= DEEPEST:
            return
        for name, part in schema.get("properties", {}).items() if kind == "object" else ():
            yield from self.strings(part, (*at, name))
        inner = schema.get("items") if kind == "array" else schema.get("additionalProperties")
        if isinstance(inner, dict):
            yield from self.strings(inner, (*at, "*"))

    def sample(self, given: Any, at: Path | None, text: str, name: str = "") -> Any:
        """A value with `text` at a path, and otherwise what is required."""
        schema = self.resolved(given)
        kind = self.kind(schema)
        if at == ():
            return text
        if kind == "array":
            rest = at[1:] if at else None
            return [self.sample(schema["items"], rest, text, name)] if at or schema.get("minItems") else []
        if kind == "object":
            parts = schema.get("properties", {})
            wanted = [part for part in parts if part in schema.get("required", ()) or (at and part == at[0])]
            made = {
                part: self.sample(parts[part], at[1:] if at and part == at[0] else None, text, part) for part in wanted
            }
            if at and at[0] == "*":
                made["owner"] = self.sample(schema["additionalProperties"], at[1:], text)
            return made
        if "enum" in schema or "const" in schema:
            return schema["const"] if "const" in schema else schema["enum"][0]
        ordinary: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "string": NAMES.get(name, "t")}
        return ordinary[kind]


def encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def requests(document: Document) -> Iterator[tuple[str, str, Any, str]]:
    """Method, URL, body and what is odd, for each string of each operation."""
    for path, method, described in document.operations():
        parameters = [document.resolved(one) for one in [*described["shared"], *described.get("parameters", [])]]
        names = {one["name"]: NAMES.get(one["name"], "1") for one in parameters if one["in"] == "path"}
        content = document.resolved(described.get("requestBody", {})).get("content", {}).get("application/json", {})
        schema = content.get("schema")
        plain = document.sample(schema, None, "") if schema else None
        for what, text in ODD.items():
            for one in parameters:
                about = f"{method} {path} {one['in']} {one['name']}: {what}"
                if one["in"] == "path":
                    odd = {**names, one["name"]: encoded(text)}
                    yield method, path.format(**odd), plain, about
                elif one["in"] == "query":
                    yield method, f"{path.format(**names)}?{one['name']}={encoded(text)}", plain, about
            for at in document.strings(schema) if schema else ():
                body = document.sample(schema, at, text)
                yield method, path.format(**names), body, f"{method} {path} body {'.'.join(at)}: {what}"


async def test_every_string_of_every_operation(api: httpx.AsyncClient, runtime: Runtime) -> None:
    await runtime.get(TopicService).create("orders", 3)
    sent, failed = 0, []
    for method, url, body, about in requests(Document()):
        content = None if body is None else json.dumps(body)
        answer = await api.request(method, url, content=content, headers={"Content-Type": "application/json"})
        sent += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            failed.append((answer.status_code, about, answer.text[:200]))
    assert not failed, (len(failed), failed[:20])
    assert sent > 2_000
    healthy = await api.post("/v1/groups/other/offsets/fetch", json={"topics": None})
    assert healthy.status_code == 200, healthy.text
