"""docs/kafka-clients.md: its table of APIs is what ApiVersions tells."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from groups.api.kafka.apis import APIS as OF_GROUPS
from kcoord.door.kafka.session import APIS as OF_SESSIONS
from offsets.api.kafka.apis import APIS as OF_OFFSETS
from tests.differential.scenes import VERSIONS
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "kafka-clients.md").read_text(encoding="utf-8")


SERVED = {api.name.replace("_", ""): api for api in (*OF_SESSIONS, *OF_GROUPS, *OF_OFFSETS)}
BROKER = {int(key): tuple(span) for key, span in json.loads(VERSIONS.read_text()).items()}
"""What a broker of 4.4.0 announced."""


def listed(column: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """The names of the table with their first and last version; `column` 0: here, 1: of Kafka."""
    section = PAGE.partition("## APIs\n")[2].partition("\n## ")[0]
    for names, *columns in re.findall(
        r"^\| ([A-Z]\w+(?:, \w+)*) \| ([\d–, ]+) \| ([\d–, ]+) \|", section, re.MULTILINE
    ):
        for name, span in zip(names.split(", "), columns[column].split(", "), strict=True):
            first, _, last = span.partition("–")
            yield name.lower(), (int(first), int(last or first))


def test_every_api_is_listed_with_its_versions() -> None:
    found = list(listed(0))
    assert len(found) == len(dict(found)), "one is listed twice"
    assert dict(found) == {name: api.versions for name, api in SERVED.items()}


def test_versions_stand_beside_those_of_a_broker() -> None:
    assert dict(listed(1)) == {name: BROKER[api.key] for name, api in SERVED.items()}
    theirs = {(api.key, v) for api in SERVED.values() for v in range(BROKER[api.key][0], BROKER[api.key][1] + 1)}
    both = {(api.key, version) for api in SERVED.values() for version in range(api.versions[0], api.versions[1] + 1)}
    figures = (
        f"{len(BROKER)} APIs that a broker of Kafka 4.4.0 announces, {len(SERVED)} are served, in {len(both & theirs)}"
    )
    assert f"{figures} of their {len(theirs)} versions" in PAGE
