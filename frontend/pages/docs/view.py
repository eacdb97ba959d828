"""The reference of the API: every operation with its parameters, bodies, errors and a line for curl, and every schema.

Made from the OpenAPI document alone, so it needs no token and no script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from frontend.ui.commands import curl, service_url
from kcoord.control.openapi.page import document

Schema = Mapping[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")
ANY_ADDRESS = "http://kcoord.invalid"
"""Stands for the address of the service in the page that is kept: it is made once, and not for each address."""


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter or a field of a schema."""

    name: str
    kind: SafeString
    required: bool
    limits: str
    text: SafeString


@dataclass(frozen=True, slots=True)
class Answer:
    """What a status says. `example`: a body as text, or ""."""

    status: str
    text: Sequence[SafeString]
    kind: SafeString
    example: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `body`: the schema of the request, "" if it takes none."""

    key: str
    method: str
    path: str
    summary: str
    text: Sequence[SafeString]
    parameters: Sequence[Field]
    body: SafeString
    curl: str
    answers: Sequence[Answer]
    errors: Sequence[Answer]


@dataclass(frozen=True, slots=True)
class Named:
    """A schema with a name. `values`: those of an enumeration."""

    name: str
    text: Sequence[SafeString]
    kind: SafeString
    values: Sequence[str]
    fields: Sequence[Field]


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The page."""
    return HttpResponse(_page().replace(ANY_ADDRESS.encode(), escape(service_url(request)).encode()))


@cache
def _page() -> bytes:
    api = json.loads(document())
    by_tag: dict[str, list[Operation]] = {tag["name"]: [] for tag in api["tags"]}
    for path, operations in api["paths"].items():
        for method in METHODS:
            if method in operations:
                found = operations[method]
                by_tag[found["tags"][0]].append(_operation(method, path, found))
    context = {
        "tags": [(tag["name"], inline(tag["description"]), by_tag[tag["name"]]) for tag in api["tags"]],
        "schemas": [_named(name, schema) for name, schema in sorted(api["components"]["schemas"].items())],
    }
    return render_to_string("frontend/pages/docs/docs.html", context).encode()


def _operation(method: str, path: str, found: Mapping[str, Any]) -> Operation:
    parameters = found.get("parameters", ())
    content = _content(found.get("requestBody", {}))
    address = ANY_ADDRESS + re.sub(r"\{(\w+)\}", lambda found: _example_of(parameters, str(found[1])), path)
    return Operation(
        found["operationId"],
        method.upper(),
        path,
        found["summary"],
        _paragraphs(found["description"]) if found.get("description", found["summary"]) != found["summary"] else [],
        [_field(one["name"], one["schema"] | one, required=one.get("required", False)) for one in parameters],
        kind(content["schema"]) if content else SafeString(),
        curl(method.upper(), address, _example(content) if content else None),
        [_answer(status, answer) for status, answer in found["responses"].items() if status < "400"],
        [_answer(status, answer) for status, answer in found["responses"].items() if status >= "400"],
    )


def _example_of(parameters: Iterable[Mapping[str, Any]], name: str) -> str:
    """A value of a parameter of the path, in capitals if the document has no example."""
    found = next((one for one in parameters if one["name"] == name), {})
    return str(found.get("example", name.upper()))


def _answer(status: str, found: Mapping[str, Any]) -> Answer:
    content = _content(found)
    example = _example(content)
    text = "" if example is None else json.dumps(example, indent=2, ensure_ascii=False)
    is_problem = "application/problem+json" in found.get("content", {})
    shown = kind(content["schema"]) if content and not is_problem and "schema" in content else SafeString()
    return Answer(status, _paragraphs(found["description"]), shown, text)


def _content(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body of a request or an answer, of whatever type it is."""
    return next(iter(found.get("content", {}).values()), {})


def _example(content: Mapping[str, Any]) -> Any:
    if "example" in content:
        return content["example"]
    return next((one["value"] for one in content.get("examples", {}).values() if "value" in one), None)


def _named(name: str, schema: Schema) -> Named:
    required = schema.get("required", ())
    fields = [_field(key, one, required=key in required) for key, one in schema.get("properties", {}).items()]
    shown = SafeString() if fields or "enum" in schema else kind(schema)
    values = [json.dumps(value) for value in schema.get("enum", ())]
    return Named(name, _paragraphs(schema.get("description", "")), shown, values, fields)


def _field(name: str, schema: Schema, *, required: bool) -> Field:
    return Field(name, kind(schema), required, limits(schema), inline(schema.get("description", "")))


def kind(schema: Schema) -> SafeString:
    """A type in words, with links to the schemas that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return format_html('<a href="#schema-{}">{}</a>', name, name)
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return mark_safe(" or ".join(kind(one) for one in schema[several]))  # noqa: S308 - its parts are safe
    types = schema.get("type", "anything")
    types = [types] if isinstance(types, str) else types
    return mark_safe(" or ".join(_of_type(name, schema) for name in types))  # noqa: S308 - its parts are safe


def _of_type(name: str, schema: Schema) -> SafeString:
    if "enum" in schema and name != "null":
        return escape(", ".join(json.dumps(value) for value in schema["enum"] if value is not None))
    if name == "array":
        return format_html("list of {}", kind(schema.get("items", {})))
    if name == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return format_html("map to {}", kind(schema["additionalProperties"]))
    if schema.get("format") == "date-time" and name == "string":
        return SafeString("time")
    return escape(name)


BOUNDS = (("minimum", "maximum", ""), ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " items"))
WIDTHS = frozenset({-(2**63), 2**63 - 1, -(2**31), 2**31 - 1, -32_768, 32_767})
"""Bounds that only say how wide a number is."""


def limits(schema: Schema) -> str:
    """The default and the bounds of a value in words, "" without any."""
    said = [f"default {json.dumps(schema['default'])}"] if "default" in schema else []
    for names in BOUNDS:
        least, most = (schema.get(name) for name in names[:2])
        least, most = (None if bound in WIDTHS else bound for bound in (least, most))
        if least is not None and most is not None:
            said.append(f"{least:,} to {most:,}{names[2]}")
        elif least is not None:
            said.append(f"{least:,}{names[2]} or more")
        elif most is not None:
            said.append(f"at most {most:,}{names[2]}")
    return ", ".join(said)


def _paragraphs(text: str) -> list[SafeString]:
    """The paragraphs and the items of lists of a description."""
    parts = re.split(r"\n\s*\n|\n- |^- ", text)
    return [inline(" ".join(part.split())) for part in parts if part.strip()]


@cache
def inline(text: str) -> SafeString:
    """A text with what is between backticks as code."""
    parts = escape(text).split("`")
    return mark_safe("".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts)))  # noqa: S308
