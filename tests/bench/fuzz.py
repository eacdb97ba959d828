"""Mutated requests of Kafka clients, decoded: `python -m tests.bench.fuzz [--frames 1000000] [--seed 1]`.

Frames of every API and version served are filled at random, then cut, lengthened, or changed in a few bytes, lengths
above all. A frame must be read or refused as malformed; anything else ends the run. It prints how many of each, the
rate, and by how much the process grew.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import resource
import struct
import time
from typing import Any

import django
from kio.serial import entity_writer

from kcoord.door.kafka import dispatch, session
from kcoord.door.kafka.api import request_class
from kcoord.door.kafka.codec import Frame, Malformed
from tests.wire.generate import instance

LENGTHS = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x80",
    b"\xff\xff",
    b"\0",
)
EXAMPLES = 20
"""Frames made of each version, which are then mutated."""


def examples(chance: random.Random) -> list[tuple[Any, int, bytes]]:
    """Valid frames: the API, its version, the bytes."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kcoord.settings")
    django.setup()
    from groups.api.kafka.apis import APIS as OF_GROUPS
    from offsets.api.kafka.apis import APIS as OF_OFFSETS

    found = []
    for api in (*session.APIS, *OF_GROUPS, *OF_OFFSETS):
        for version in range(api.versions[0], api.versions[1] + 1):
            cls: Any = request_class(api.name, version)
            head = struct.pack(">hhih", api.key, version, 1, 1) + (b"t\0" if cls.__flexible__ else b"t")
            for _ in range(EXAMPLES):
                with io.BytesIO() as out:
                    entity_writer(cls)(out, instance(cls, chance))
                    found.append((api, version, head + out.getvalue()))
    return found


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """The frame with one to four changes."""
    changed = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0:
                del changed[at:]
            case 1:
                changed[at : at + 4] = chance.choice(LENGTHS)
            case 2:
                changed[at : at + 1] = chance.randbytes(1)
            case _:
                changed[at:at] = chance.randbytes(chance.randint(1, 8))
    return bytes(changed)


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    known = examples(chance)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    read = 0
    for _ in range(arguments.frames):
        api, version, frame = chance.choice(known)
        raw = Frame(mutated(frame, chance))
        try:
            header = dispatch.read_header(raw)
            dispatch.read_body(api.name, header._replace(version=version), raw)
            read += 1
        except Malformed:
            continue
    seconds = time.perf_counter() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{arguments.frames} frames: {read} read, {arguments.frames - read} malformed, nothing else")
    print(f"{arguments.frames / seconds:.0f} frames/s; the process grew by {grown} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
