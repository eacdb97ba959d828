"""Rows of coordinator nodes for pages to show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.frontend.seed import Seed, now_ms

EMPTIED = (
    "truncate groups_coordinatornode, groups_coordinatorpartition, groups_partitionchange restart identity cascade"
)
LONG_LEASE_MS = 3_600_000
"""Pages are shown for longer than a real lease lasts."""


def empty(seed: Seed) -> None:
    """No node has ever been there."""
    seed.connection.execute(EMPTIED)


def node(
    seed: Seed,
    node_id: str,
    *,
    url: str | None = None,
    version: str = "0.12.0",
    started_ms_ago: int = 5_400_000,
    renewed_ms_ago: int = 400,
    lease_ms: int = LONG_LEASE_MS,
    ended_ms_ago: int | None = None,
    reason: str | None = None,
) -> int:
    """A node; returns its incarnation."""
    now = now_ms()
    row = seed.connection.execute(
        "insert into groups_coordinatornode (node_id, url, version, started_at, renewed_at, expires_at, ended_at,"
        " end_reason) values (%s, %s, %s, %s, %s, %s, %s, %s) returning id",
        [
            node_id,
            f"http://{node_id}:8000" if url is None else url,
            version,
            now - started_ms_ago,
            now - renewed_ms_ago,
            now - renewed_ms_ago + lease_ms,
            None if ended_ms_ago is None else now - ended_ms_ago,
            reason,
        ],
    ).fetchone()
    assert row is not None
    return int(row[0])


def own(
    seed: Seed,
    owners: Mapping[int, int | None],
    *,
    epoch: int = 3,
    loading: Iterable[int] = (),
    since_ms_ago: int = 190_000,
    load_ms: int | None = 4,
) -> None:
    """Who owns which partition (partition -> incarnation; None: nobody)."""
    loads = set(loading)
    with seed.connection.cursor() as cursor:
        cursor.executemany(
            "insert into groups_coordinatorpartition (partition, owner_id, epoch, gap, state, state_since, load_ms)"
            " values (%s, %s, %s, 1, %s, %s, %s)",
            [
                (
                    partition,
                    owner,
                    epoch + partition % 3,
                    "CLOSED" if owner is None else "LOADING" if partition in loads else "ACTIVE",
                    now_ms() - since_ms_ago - 1_700 * (partition % 7),
                    None if partition in loads else load_ms,
                )
                for partition, owner in owners.items()
            ],
        )


def change(
    seed: Seed,
    partitions: Iterable[int],
    before: str,
    after: str,
    reason: str,
    *,
    ms_ago: int,
    gap_ms: int | None = None,
) -> None:
    """Partitions changed their owner."""
    at = now_ms() - ms_ago
    with seed.connection.cursor() as cursor:
        cursor.executemany(
            "insert into groups_partitionchange (at, partition, epoch, gap, from_node, to_node, reason, gap_ms)"
            " values (%s, %s, 3, 1, %s, %s, %s, %s)",
            [(at, partition, before, after, reason, gap_ms) for partition in partitions],
        )


def four_nodes(seed: Seed) -> list[int]:
    """A cluster at work, in which a node died, another one restarted, and a release was rolled out."""
    started = 5_400_000
    nodes = [node(seed, f"node-{number}", started_ms_ago=started - 60_000 * number) for number in range(4)]
    own(seed, {partition: nodes[partition % 4] for partition in range(50)}, loading=(9, 13))
    node(seed, "node-2", started_ms_ago=9_000_000, ended_ms_ago=190_000, renewed_ms_ago=193_000, reason="lapsed")
    node(seed, "node-3", version="0.11.2", started_ms_ago=90_000_000, ended_ms_ago=started, reason="stopped")
    node(seed, "node-1", version="0.11.2", started_ms_ago=90_000_000, ended_ms_ago=started, reason="lapsed")
    change(seed, range(50), "", "node-0", "taken", ms_ago=90_000_000, gap_ms=4_100)
    for number in range(1, 4):
        change(seed, range(number, 50, 4), "node-0", f"node-{number}", "balanced", ms_ago=80_000_000 - number * 1_000)
    change(seed, range(3, 50, 4), "node-3", "node-0", "stopped", ms_ago=started)
    change(seed, range(2, 50, 8), "node-2", "node-0", "lapsed", ms_ago=190_000, gap_ms=640)
    change(seed, range(6, 50, 8), "node-2", "node-1", "lapsed", ms_ago=190_000, gap_ms=640)
    change(seed, range(2, 50, 4), "node-0", "node-2", "balanced", ms_ago=3_000)
    return nodes


def outage(seed: Seed) -> list[int]:
    """One of three nodes has just stopped renewing; a few partitions have had no owner for longer."""
    nodes = [node(seed, f"kcoord-{number}.coordination.svc.cluster.local") for number in range(2)]
    silent = node(seed, "kcoord-2.coordination.svc.cluster.local", renewed_ms_ago=9_000, lease_ms=3_000)
    owners: dict[int, int | None] = {partition: [*nodes, silent][partition % 3] for partition in range(50)}
    own(seed, owners | dict.fromkeys((7, 19), None), epoch=41)
    change(seed, (7, 19), "kcoord-3.coordination.svc.cluster.local", "", "stopped", ms_ago=95_000, gap_ms=0)
    return nodes


def keep_servers_out(seed: Seed) -> None:
    """No server can register in this database: rows of nodes stay as they were written."""
    seed.connection.execute(
        """
        create or replace function refuse_servers() returns trigger language plpgsql as $$
        begin
            if current_setting('application_name') = 'kcoord-node' then raise 'kept out by the test'; end if;
            return new;
        end $$;
        create or replace trigger refuse_servers before insert on groups_coordinatornode
        for each row execute function refuse_servers()
        """
    )
