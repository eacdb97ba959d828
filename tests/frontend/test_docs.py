"""The reference of the API: types and limits in words, and a page that is made once."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from frontend.pages.docs import view
from frontend.pages.docs.view import inline, kind, limits


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"type": "string", "format": "date-time"}, "time"),
        ({"$ref": "#/components/schemas/Topic"}, '<a href="#schema-Topic">Topic</a>'),
        ({"type": "array", "items": {"$ref": "#/x/Topic"}}, 'list of <a href="#schema-Topic">Topic</a>'),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map to string"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer or string"),
        ({"type": ["string", "null"], "enum": ["<a>", None]}, "&quot;&lt;a&gt;&quot; or null"),
        ({}, "anything"),
    ],
)
def test_a_type_in_words(schema: dict[str, Any], said: str) -> None:
    assert kind(schema) == said


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, ""),
        ({"minimum": 0, "maximum": 2**63 - 1}, "0 or more"),
        ({"minLength": 1, "maxLength": 255, "default": "x"}, 'default "x", 1 to 255 characters'),
        ({"maxItems": 10_000}, "at most 10,000 items"),
    ],
)
def test_limits_in_words(schema: dict[str, Any], said: str) -> None:
    assert limits(schema) == said


def test_backticks_are_code_and_nothing_else_is_markup() -> None:
    assert inline("a `b<c>` d & e") == "a <code>b&lt;c&gt;</code> d &amp; e"


def test_the_page_names_the_address_that_it_was_asked_at_and_is_made_once(client: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    view._page.cache_clear()
    for host in ("one.example", "two.example:8000"):
        page = client.get("/docs", headers={"Host": host}).content.decode()
        assert f"http://{host}/v1/groups/GROUP_ID/join" in page
        assert view.ANY_ADDRESS not in page
    assert view._page.cache_info().misses == 1
    assert client.post("/docs").status_code == 405
