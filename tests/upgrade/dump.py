"""`python -m tests.upgrade.dump`: writes the database of this release, with rows, to `tests/upgrade/<version>.sql`.

It is run once for each release, right after the tag; the files of released versions are not written again.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psycopg

from kcoord import __version__
from kcoord.access.tokens import digest
from kcoord.stack.embedded import find_programs
from tests.frontend.seed import Seed
from tests.support.database import ephemeral_database
from tests.support.http_members import HttpMember, make_token
from tests.support.processes import start_server
from tests.support.spark_runs import put_day, put_finding, put_run

FOLDER = Path(__file__).parent
SECRET = "kc_of_the_dump_which_is_no_secret_at_all"
"""Of the token in the dumps, which may do everything."""

PATIENT = {"KCOORD_GROUP_INITIAL_REBALANCE_DELAY_MS": 0, "KCOORD_REQUEST_MAX_AGE_MS": 60_000}
"""The data is for comparison: a slow machine must not change it."""

PLAN = {"strategy": "to-offset", "offset": 3, "topics": [{"name": "t", "partitions": [1]}], "reason": "bug 17"}
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "topics", {"name": "t", "partitions": 2, "labels": {"owner": "billing"}}),
    ("POST", "topics/t/watermarks", {"partitions": [{"partition": 1, "log_start_offset": 0, "log_end_offset": 100}]}),
    ("POST", "groups", {"group_id": "idle", "topics": [
        {"name": "t", "partitions": [{"partition": 1, "committed_offset": 5, "committed_metadata": "kept"}]}]}),
    ("PATCH", "groups/idle/labels", {"labels": {"owner": "billing"}}),
    ("POST", "groups/idle/pins", {"topic": "t"}),
    ("POST", "groups/idle/offsets/plan", PLAN),
    ("PATCH", "groups/idle/config", {"consumer.session.timeout.ms": 50_000}),
    ("POST", "quotas", {"kind": "default", "set": {"cpu": 1000}}),
    ("POST", "topics", {"name": "gone", "partitions": 1}),
    ("DELETE", "topics/gone", {}),
    ("POST", "groups/modern/consumer-heartbeat", {
        "member_id": "AAAAAAAAAAAAAAAAAAAAAA", "member_epoch": 0, "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"], "topic_partitions": []}),
]  # fmt: skip
PEOPLE = """
insert into auth_user (username, password, email, first_name, last_name, is_superuser, is_staff, is_active, date_joined)
values ('mara', '!', '', '', '', false, true, true, now());
insert into auth_group (name) values ('billing');
insert into auth_user_groups (user_id, group_id) select u.id, g.id from auth_user u, auth_group g;
insert into kcoord_accessrule (group_id, effect, operation, resource, pattern, name)
select id, 'allow', 'describe', 'group', 'prefix', 'billing-' from auth_group;
insert into frontend_savedview (owner_id, name, query, created_at) select id, 'mine', 'state=Empty', 1 from auth_user;
insert into frontend_provideridentity (user_id, issuer, subject)
select id, 'https://id.example', 'mara-1' from auth_user;
insert into frontend_signinattempt (key, failures, last_at) values ('mara', 2, 1);
insert into offsets_alertrule (name, enabled, pattern, group_name, verdicts, for_ms, remind_ms, send_resolved,
    receivers, updated_at, updated_by)
values ('bad', true, 'literal', 'g', '{stuck}', 0, 0, true, '{ops}', 1, 'mara');
insert into kcoord_counter (name, value) values ('of the dump', 7) on conflict do nothing;
"""


async def work(url: str) -> None:
    """What people and members do over HTTP."""
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {SECRET}"}, timeout=60) as client:
        for method, path, body in BODIES:
            answer = await client.request(method, f"{url}/v1/{path}", json=body)
            assert answer.is_success, f"{method} {path}: {answer.text}"
        member = HttpMember(client, [url])
        await member.become_stable()
        assert (await member.commit(0, 7))[0] == 200


def fill(conninfo: str) -> None:
    """Rows in the tables that matter."""
    secret = make_token(conninfo)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("update kcoord_apitoken set digest = %s where digest = %s", [digest(SECRET), digest(secret)])
        connection.execute(PEOPLE)
        with start_server(conninfo, env={**PATIENT, "KCOORD_NODE_ID": "a"}) as server:
            server.wait_ready()
            asyncio.run(work(server.url))
            server.terminate()
        run = put_run(connection, "archive")
        put_day(connection, run, 20_000)
        put_finding(connection, put_run(connection, "reconcile"), 1)
        Seed(connection).event("g", "group_created", 0)


def dump(conninfo: str, *options: str) -> str:
    """What pg_dump says of a database, without its commands for psql."""
    command = [find_programs() / "pg_dump", "--no-owner", *options, f"--dbname={conninfo}"]
    written = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    return "".join(line for line in written.splitlines(keepends=True) if not line.startswith("\\"))


def main() -> None:
    """Write the file of this version."""
    with ephemeral_database() as conninfo:
        fill(conninfo)
        path = FOLDER / f"{__version__}.sql"
        path.write_text(dump(conninfo, "--inserts", "--rows-per-insert=1000"))
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
