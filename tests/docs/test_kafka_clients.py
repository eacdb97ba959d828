"""docs/kafka-clients.md: its table of APIs is what ApiVersions tells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from groups.wire.apis import APIS as OF_GROUPS
from kcoord.wire.session import APIS as OF_SESSIONS
from offsets.wire.apis import APIS as OF_OFFSETS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "kafka-clients.md").read_text(encoding="utf-8")


def listed() -> Iterator[tuple[str, tuple[int, int]]]:
    """The names of the table with their first and last version."""
    section = PAGE.partition("## APIs\n")[2].partition("\n## ")[0]
    for names, versions in re.findall(r"^\| ([A-Z]\w+(?:, \w+)*) \| ([\d–, ]+) \|", section, re.MULTILINE):
        for name, span in zip(names.split(", "), versions.split(", "), strict=True):
            first, _, last = span.partition("–")
            yield name.lower(), (int(first), int(last or first))


def test_every_api_is_listed_with_its_versions() -> None:
    served = {api.name.replace("_", ""): api.versions for api in (*OF_SESSIONS, *OF_GROUPS, *OF_OFFSETS)}
    found = list(listed())
    assert len(found) == len(dict(found)), "one is listed twice"
    assert dict(found) == served
