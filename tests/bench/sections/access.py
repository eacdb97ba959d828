"""What authorization costs a request and the audit an act, and how soon a revoked token is refused by every server."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping, Sequence

import msgspec
import psycopg

from kcoord.access.rights import Operation, Principal, Rules
from kcoord.access.tokens import Rule
from tests.bench import access, audit, requests
from tests.bench.bench import TIMEOUT_MS, Bench, details
from tests.bench.figures import Figure
from tests.bench.generator import Found, Requests, measure, once
from tests.bench.populate import begin_sessions
from tests.bench.revoking import revocation
from tests.bench.sections.heartbeats import SETTLE_SECONDS, middle
from tests.bench.usage import Watched
from tests.support.http_members import make_token

PREFIX = "guarded"
PROMISED_SECONDS = 1.0
"""How soon a revoked token has to be refused everywhere."""
REVOCATIONS = 10


def rules(count: int) -> list[Rule]:
    """So many rules, of which the last, a prefix, allows the groups of the load."""
    half = count // 2
    names = [Rule("read", "group", "literal", f"group-{number}") for number in range(half)]
    prefixes = [Rule("read", "group", "prefix", f"{PREFIX}.{number:05}-") for number in range(count - half - 1)]
    return [*names, *prefixes, Rule("read", "group", "prefix", f"{PREFIX}-")]


def run(bench: Bench) -> None:
    """Each part by itself."""
    _heartbeats(bench)
    _checks(bench)
    with bench.database() as database, bench.servers(database, 2) as servers:
        revocation(servers, database.token)  # statements are prepared, connections are open
        times = [revocation(servers, database.token) for _ in range(REVOCATIONS)]
    slowest = max(refused for refused, _ in times)
    said = {"median_ms": 1_000 * statistics.median(refused for refused, _ in times)}
    said["deletion_ms"] = 1_000 * statistics.median(deleted for _, deleted in times)
    name = f"until two servers refuse a revoked token, the longest of {REVOCATIONS}"
    bench.add(Figure("access.revoked", name, slowest, "s", "the promise", PROMISED_SECONDS, said))
    with bench.database() as database, psycopg.connect(database.conninfo) as connection:
        plain, recorded = audit.measured(connection)
    bench.add(Figure("access.audit", "the smallest act with its record", recorded, "ms", "without it", plain))


def _heartbeats(bench: Bench) -> None:
    """In turns: without authorization, with 1 rule and with 10,000. Each server has groups of its own, in memory."""
    found: dict[int, list[Found]] = {0: [], 1: [], access.MANY: []}
    with contextlib.ExitStack() as stack:
        jobs: dict[int, tuple[Requests, Watched]] = {}
        for counts, module in (((0,), "tests.bench.unguarded"), ((1, access.MANY), "kcoord.stack.server")):
            database = stack.enter_context(bench.database())
            people = bench.populate(database, PREFIX, bench.scale.groups)
            secrets = {count: make_token(database.conninfo, rules(max(count, 1))) for count in counts}
            (server,) = stack.enter_context(bench.servers(database, module=module))
            port = server.port or 0
            begin_sessions(database.conninfo, TIMEOUT_MS)
            for count in counts:
                load = {port: requests.heartbeats(people, secrets[count])}
                jobs[count] = load, Watched([server.pid], database.conninfo, [port])
        for load, _ in jobs.values():
            once(load)
        for _ in range(bench.scale.rounds):
            for count, (load, watched) in jobs.items():
                found[count].append(measure(load, bench.scale.seconds, watched, settle=SETTLE_SECONDS))
    _add(bench, {count: middle(some) for count, some in found.items()})


def _add(bench: Bench, found: Mapping[int, Found]) -> None:
    base = found[0].server_us
    for count in (1, access.MANY):
        name = f"CPU of a heartbeat, token with {count:,} rule{'s' if count > 1 else ''}"
        one = found[count]
        bench.add(Figure(f"access.rules.{count}", name, one.server_us, "µs", "none asked", base, details(one)))


def _checks(bench: Bench) -> None:
    """The check alone, in this process: it is too small to be seen in a request."""
    decoder = msgspec.json.Decoder()
    yardstick = access.nanoseconds(lambda: decoder.decode(access.BODY))
    for count in (1, access.MANY):
        took = access.nanoseconds(_check(rules(count)))
        name = f"  the check alone, {count:,} rule{'s' if count > 1 else ''}"
        bench.add(Figure(f"access.check.{count}", name, took / 1_000, "µs", "reading its body", yardstick / 1_000))


def _check(given: Sequence[Rule]) -> access.Call:
    caller = Principal(1, "bench", Rules((one.operation, one.resource, one.pattern, one.name) for one in given))
    group = f"{PREFIX}-7"
    return lambda: caller.require_group(Operation.READ, group)
