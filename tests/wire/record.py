"""`python -m tests.wire.record`: write `recorded/frames.jsonl` again, by Kafka's own classes.

Random values fill every field of every API and version that is served. Kafka's generated classes read them, and write
the frames and the values that are recorded; so neither depends on this project's codec or on kio.
"""

from __future__ import annotations

import io
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kio.serial import entity_writer

from kcoord.door.kafka.api import Api, request_class, response_class
from tests.wire import java
from tests.wire.generate import instance

RECORDED = Path(__file__).parent / "recorded"
FRAMES = RECORDED / "frames.jsonl"
KINDS = {"request": request_class, "response": response_class}
LONGEST = 300
"""Bytes of a body: the fullest one of at most this length is taken, or the shortest."""
SEEDS = 30


def served() -> Iterator[tuple[Api, int]]:
    """Every API with every version that is served."""
    from groups.api.kafka.apis import APIS as OF_GROUPS
    from kcoord.door.kafka.session import APIS as OF_SESSIONS
    from offsets.api.kafka.apis import APIS as OF_OFFSETS

    for api in sorted((*OF_SESSIONS, *OF_GROUPS, *OF_OFFSETS), key=lambda api: api.key):
        for version in range(api.versions[0], api.versions[1] + 1):
            yield api, version


def body(cls: Any) -> bytes:
    """A body of this class with random values."""
    found = []
    for seed in range(SEEDS):
        with io.BytesIO() as out:
            entity_writer(cls)(out, instance(cls, random.Random(seed)))
            found.append(out.getvalue())
    short = [raw for raw in found if len(raw) <= LONGEST]
    return max(short, key=len) if short else min(found, key=len)


def main() -> None:
    """Record all frames."""
    asked = [
        f"{api.key} {version} {kind} {body(class_of(api.name, version)).hex()}\n"
        for api, version in served()
        for kind, class_of in KINDS.items()
    ]
    command = ["java", "-cp", java.classpath(), str(RECORDED / "Recorder.java")]
    done = subprocess.run(command, input="".join(asked), capture_output=True, text=True, check=True, timeout=300)
    FRAMES.write_text(done.stdout, encoding="utf-8")


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    django.setup()
    main()
