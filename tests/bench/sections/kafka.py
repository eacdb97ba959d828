"""A real broker: heartbeats and commits of 5 offsets over its wire protocol, beside ours over HTTP.

The load is the same: 64 connections with one request each under way, the same number of groups and members, and the
same load generator.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from tests.bench import requests
from tests.bench.bench import Bench, details
from tests.bench.figures import Figure
from tests.bench.generator import Found, measure, once
from tests.bench.kafka import answers, broker, frames, groups
from tests.bench.kafka.answers import PARTITIONS
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.sections.offsets import WARM
from tests.bench.usage import Watched

WARM_UP = 5.0
"""How many times a load's seconds the broker's compilers get before it is measured."""


def run(bench: Bench) -> None:
    """The broker alone first, then ours."""
    theirs = found_of_broker(bench)
    version = bench.results.machine["kafka"]
    ours = _ours(bench)
    for kind in ("heartbeats", "commits"):
        a, b = theirs[kind], ours[kind]
        name = f"Kafka {version}: {kind}"
        bench.add(Figure(f"kafka.{kind}.rate", name, a.rate, "/s", "kcoord", b.rate, details(a)))
        bench.add(
            Figure(
                f"kafka.{kind}",
                f"{name}, per CPU second",
                a.per_cpu_second,
                "/s",
                "kcoord",
                b.per_cpu_second,
                details(a),
            )
        )


def found_of_broker(bench: Bench) -> Mapping[str, Found]:
    """The broker's heartbeats and commits, measured once in a run. Raises AssertionError if it cannot be had."""
    if not bench.of_broker:
        with broker.running(bench.kafka) as kafka:
            bench.results.machine = {**bench.results.machine, "kafka": kafka.version}
            bench.of_broker.update(_theirs(bench, kafka))
    return bench.of_broker


def _theirs(bench: Bench, kafka: broker.Broker) -> dict[str, Found]:
    scale = bench.scale
    formed = asyncio.run(
        groups.form(kafka.port, requests.TOPIC, PARTITIONS * scale.members, scale.groups, scale.members)
    )
    everybody = [(group, number, member) for group in formed for number, member in enumerate(group.members)]
    random.Random(1).shuffle(everybody)
    sent = {
        "heartbeats": [frames.heartbeat(group.name, member, group.generation) for group, _, member in everybody],
        "commits": [
            frames.offset_commit(
                group.name,
                member,
                group.generation,
                requests.TOPIC,
                range(number * PARTITIONS, (number + 1) * PARTITIONS),
            )
            for group, number, member in everybody
        ],
    }
    watched, found = Watched([kafka.pid]), {}
    for kind, ones in sent.items():
        options: dict[str, Any] = {"is_whole": answers.is_whole, "is_well": answers.is_well}
        measure({kafka.port: ones}, WARM_UP * scale.seconds, watched, **options)
        found[kind] = middle(
            [measure({kafka.port: ones}, scale.seconds, watched, **options) for _ in range(scale.rounds)]
        )
    return found


def _ours(bench: Bench) -> dict[str, Found]:
    with bench.database() as database:
        people = bench.populate(database, "beside-kafka", bench.scale.groups)
        with bench.servers(database) as (server,):
            port, watched, found = server.port or 0, Watched([server.pid], database.conninfo, [server.port or 0]), {}
            for kind, ones in (
                ("heartbeats", requests.heartbeats(people, database.token)),
                ("commits", requests.commits(people, database.token, PARTITIONS)),
            ):
                ones = ones[:WARM]
                once({port: ones})
                rounds = range(bench.scale.rounds)
                found[kind] = middle(
                    [measure({port: ones}, bench.scale.seconds, watched, settle=SETTLE_SECONDS) for _ in rounds]
                )
            return found
