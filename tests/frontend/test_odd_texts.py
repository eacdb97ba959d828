"""Texts that Postgres cannot store or an address cannot have, in every address, filter and form of the pages.

Addresses and forms are those of the table of URLs and of the pages themselves: a new field is in the walk by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, quote_from_bytes, urlencode, urlsplit

import pytest
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern

from frontend.urls import urlpatterns
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms, working_group
from tests.frontend.test_every_action import ACTIONS, Shown
from tests.frontend.test_visibility import addresses
from tests.support.selection import sample
from tests.support.spark_runs import put_run

ODD = {
    "nul": b"a\0b",
    "not utf-8": b"a\xff\xfeb",
    "surrogate": b"\xed\xa0\x80",
    "quotes": b"a'\"\\%_{}",
    "line breaks": b"a\r\n\x1b[0m",
    "longer than an index": b"x" * 3_000,
}
NEVER = {"live", "logout"}
"""The stream, which does not end, and what signs out."""


@dataclass
class Form:
    """A form of a page. `fields`: the values that it sends; `free`: those that may have any text."""

    method: str
    action: str
    fields: dict[str, str] = field(default_factory=dict)
    free: list[str] = field(default_factory=list)


class Forms(HTMLParser):
    """The forms of a page with what they send when nothing is changed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._inside, self._select = False, ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a form, or a field of it."""
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "form":
            self._inside = True
            self.found.append(Form((given.get("method") or "get").lower(), given.get("action") or ""))
        elif tag == "option" and self._inside and self._select:
            if "selected" in given or self._select not in self.found[-1].fields:
                self.found[-1].fields[self._select] = given.get("value") or ""
        elif self._inside and name and tag in ("input", "textarea", "select", "button"):
            form, kind = self.found[-1], given.get("type", "text")
            self._select = name if tag == "select" else ""
            if tag == "button" or kind in ("checkbox", "radio"):
                if name not in form.fields and (tag == "button" or "checked" in given):
                    form.fields[name] = given.get("value") or "on"
            elif tag != "select":
                form.fields.setdefault(name, given.get("value") or "")
            if name not in form.free and name != "csrfmiddlewaretoken":
                form.free.append(name)

    def handle_endtag(self, tag: str) -> None:
        """Leave a form or a field with choices."""
        if tag == "form":
            self._inside = False
        elif tag == "select":
            self._select = ""


def read(answer: HttpResponseBase) -> bytes:
    """The whole answer: a file is made while it is read."""
    return b"".join(answer) if answer.streaming else answer.content  # type: ignore[arg-type, attr-defined]


def asked(client: Client, address: str, wrong: list[Any], *, unstorable: bool) -> None:
    answer = client.get(address)
    content = read(answer)
    if answer.status_code >= 500 or b"ERROR: the file" in content:
        wrong.append((address[:150], answer.status_code))
    elif unstorable and answer.status_code < 400:
        wrong.append((address[:150], answer.status_code, "nothing is said of it"))


@pytest.fixture
def pages(seed: Seed) -> dict[str, list[str]]:
    """The addresses of all pages, with data, by the names of the table."""
    members = working_group(seed)
    seed.topic("orders", 3, [100, 200, 300])
    ids = {"plan_id": put_plan(seed.connection, "billing", made_at=now_ms()), "run_id": put_run(seed.connection),
           "rule_id": 1, "token_id": 1}  # fmt: skip
    return addresses("billing", "orders", members[0], ids, "b")


WHOLE = pytest.mark.whole("odd texts in every form of the pages")
FORMS = [shown if shown.action in ("hold-group", "pins") else pytest.param(shown, marks=WHOLE) for shown in ACTIONS]


def test_every_part_of_an_address(operator: Client, pages: dict[str, list[str]]) -> None:
    wrong: list[Any] = []
    operator.raise_request_exception = False
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        for changed in pattern.pattern.converters:
            for kind, raw in ODD.items():
                values = dict.fromkeys(pattern.pattern.converters, "billing")
                values[changed] = quote_from_bytes(raw, safe="")
                path = re.sub(r"<(?:\w+:)?(\w+)>", lambda part: values[part[1]], str(pattern.pattern))  # noqa: B023
                asked(operator, f"/{path}", wrong, unstorable=kind == "nul")
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize("kinds", sample([["nul"], [*ODD][1:]], "the same filters with other texts"), ids="-".join)
def test_every_filter_of_a_page(operator: Client, pages: dict[str, list[str]], kinds: list[str]) -> None:
    """The parameters of addresses that pages have, and the fields of the forms that lead there."""
    wrong: list[Any] = []
    operator.raise_request_exception = False
    seen: set[tuple[str, str]] = set()
    for name, some in pages.items():
        for address in some if name not in NEVER else ():
            answer = operator.get(address)
            parts = urlsplit(address)
            queries = [(parts.path, dict(parse_qsl(parts.query)))]
            if answer.status_code == 200 and not answer.streaming and "html" in answer.headers["Content-Type"]:
                forms = Forms(answer.content.decode()).found
                queries += [(form.action or parts.path, form.fields) for form in forms if form.method == "get"]
            for path, fields in queries:
                for changed in fields:
                    if (path, changed) in seen:
                        continue
                    seen.add((path, changed))
                    others = urlencode({one: value for one, value in fields.items() if one != changed})
                    for kind in kinds:
                        query = f"{changed}={quote_from_bytes(ODD[kind], safe='')}&{others}"
                        asked(operator, f"{path}?{query}", wrong, unstorable=kind == "nul")
    assert len(seen) > 70
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize("shown", FORMS, ids=lambda shown: f"{shown.action}-{'-'.join(shown.buttons)}")
def test_every_field_of_a_form(operator: Client, seed: Seed, archived: None, receivers: None, shown: Shown) -> None:
    path = shown.page(seed)
    operator.raise_request_exception = False
    wrong: list[Any] = []
    forms = [form for form in Forms(operator.get(path).content.decode()).found if form.method == "post"]
    for form in forms:
        target = form.action or path
        for changed in form.free:
            for kind, raw in ODD.items():
                others = urlencode({one: value for one, value in form.fields.items() if one != changed})
                body = f"{others}&{changed}={quote_from_bytes(raw, safe='')}"
                answer = operator.post(target, body, content_type="application/x-www-form-urlencoded")
                if answer.status_code >= 500 or (kind == "nul" and answer.status_code < 400):
                    wrong.append((target, changed, kind, answer.status_code))
    assert wrong == [], "\n".join(map(str, wrong))
