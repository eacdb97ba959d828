"""Requests to every endpoint of the OpenAPI document, about names that the caller chooses."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kcoord.control.openapi.page import document

METHODS = ("get", "post", "put", "patch", "delete")
NO_TEXT = {"integer": 1, "number": 1, "boolean": False, "object": {}, "null": None}
GROUP_FIELDS = ("group_id", "group", "from_group")
TOPIC_FIELDS = ("topic", "subscribed_topic_names")


@dataclass(frozen=True, slots=True)
class Names:
    """What requests are about. Ids of members, plans, runs and tokens as text."""

    group: str
    topic: str
    transactional_id: str
    member: str
    plan: str
    run: str
    token: str
    principal: str
    alert_rule: str = "999999"
    alert: str = "999999"

    def in_path(self, path: str) -> str:
        """The path with its parameters filled in. Raises KeyError for one that this does not know: add it here."""
        names = {
            "group_id": self.group,
            "name": self.topic,
            "transactional_id": self.transactional_id,
            "member_id": self.member,
            "plan_id": self.plan,
            "run_id": self.run,
            "id": self.token,
            "rule_id": self.alert_rule,
            "alert_id": self.alert,
        }
        return path.format_map({key: quote(value, safe="") for key, value in names.items()})

    def in_query(self, name: str) -> str | None:
        """The value of a query parameter that names something; None for others."""
        return {
            **dict.fromkeys(GROUP_FIELDS, self.group),
            "topic": self.topic,
            "name": self.group,
            "q": self.group,
            "member": self.member,
            "run": self.run,
            "principal": self.principal,
        }.get(name)

    def mask(self, text: str) -> str:
        """The text with the names left out, so that answers about others can be compared with it."""
        for value in sorted(
            (self.group, self.topic, self.transactional_id, self.member, self.plan, self.run, self.principal),
            key=len,
            reverse=True,
        ):
            text = text.replace(value, "…").replace(quote(value, safe=""), "…")
        for number in (self.alert_rule, self.alert):
            text = text.replace(f"alert {number}", "…").replace(f"rule {number}", "…")
        return text.replace(f"'{self.token}'", "…")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: `path` as in the document, `url` with everything filled in."""

    method: str
    path: str
    url: str
    body: Any
    is_open: bool
    operation_id: str

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


def all_requests(names: Names) -> Iterator[Asked]:
    """Of each endpoint one request, and one more for each of its query parameters that names something."""
    found = json.loads(document())
    for path, item in found["paths"].items():
        for method in METHODS:
            if method in item:
                yield from _requests(found, path, method, item[method], names)


def _requests(found: Any, path: str, method: str, operation: Any, names: Names) -> Iterator[Asked]:
    queries = [one for one in operation.get("parameters", []) if one["in"] == "query"]
    required = {one["name"]: names.in_query(one["name"]) for one in queries if one.get("required")}
    optional = {
        one["name"]: value for one in queries if (value := names.in_query(one["name"])) and not one.get("required")
    }
    body = _body(found, operation, names, is_topic=path == "/v1/topics")
    is_open = operation.get("security") == [] or {} in operation.get("security", [])
    for query in ({}, *({name: value} for name, value in optional.items())):
        parameters = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in (required | query).items())
        url = names.in_path(path) + (f"?{parameters}" if parameters else "")
        yield Asked(method, path, url, copy.deepcopy(body), is_open, operation["operationId"])


def _body(found: Any, operation: Any, names: Names, *, is_topic: bool) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    examples = content.get("examples")
    body = next(iter(examples.values()))["value"] if examples else content.get("example")
    if body is None:
        body = _sample(found, content["schema"])
    body = _about(body, names)
    if is_topic:
        body["name"] = names.topic
    if "max_wait_ms" in body:
        body["max_wait_ms"] = 0
    return body


def _about(value: Any, names: Names, key: str = "") -> Any:
    """The same value about these names."""
    if isinstance(value, Mapping):
        of_topics = key == "topics" and "name" in value
        filled = {name: _about(one, names, name) for name, one in value.items()}
        return filled | {"name": names.topic} if of_topics else filled
    if isinstance(value, list):
        return [_about(one, names, key) for one in value]
    if not isinstance(value, str):
        return value
    if key in GROUP_FIELDS:
        return names.group
    if key in TOPIC_FIELDS or key == "topics":
        return names.topic
    return {"principal": names.principal, "member_id": names.member, "transactional_id": names.transactional_id}.get(
        key, value
    )


def _sample(found: Any, schema: Any) -> Any:
    """A value of a schema, with its required fields."""
    while "$ref" in schema:
        schema = found["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _sample(found, schema[several][0])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        fields = schema.get("properties", {})
        return {name: _sample(found, fields[name]) for name in schema.get("required", list(fields)[:1])}
    if kind == "array":
        return [_sample(found, schema["items"])]
    return NO_TEXT.get(kind, "x")
