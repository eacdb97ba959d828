"""What is attached to the ticket of an incident: data, and the same as Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseBase

from frontend.ui.page import attached

Report = Mapping[str, Any]
"""What JSON can say; instants are RFC 3339, in UTC."""
TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8"}
"""The kinds of files, by the end of their names."""


def report(name: str, kind: str, found: Report, blocks: Iterable[str], *, at: str = "") -> HttpResponseBase:
    """The file, of one of `TYPES`. `blocks`: what the Markdown consists of; `name`, `at`: as `attached` takes them."""
    content = json.dumps(found, indent=1, ensure_ascii=False) if kind == "json" else "\n\n".join(blocks) + "\n"
    return attached(HttpResponse(content, content_type=TYPES[kind]), name, kind, at=at)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], more: int = 0) -> list[str]:
    """A section with a table; nothing without rows. `more`: how many are left out."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *body]
    left_out = [f"{more:,} more are left out."] if more > 0 else []
    return [f"## {title}", "\n".join(lines), *left_out] if body else []


def escaped(written: str) -> str:
    """Text from outside within a line or a cell: nothing in it is markup, or begins another cell or line."""
    return " ".join(re.sub(r"[\\`*_\[\]<>|#]", r"\\\g<0>", written).split())


def code(written: str) -> str:
    """An id as it is, in a code span where it can be."""
    if "`" in written or "|" in written or written != " ".join(written.split()):
        return escaped(written)
    return f"`{written}`"
