"""A share group with items in every state."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from tests.frontend.seed import Seed, now_ms, topic_id

WORKERS = ("worker-1", "worker-2")

PARTITION = """
insert into offsets_sharepartition (group_id, topic_id, partition, next_offset, end_offset)
select %s, topic_id, %s, %s, %s from groups_topic where name = 'entries' returning id
"""
LOCK = """
insert into offsets_sharelock (share_partition_id, member_id, held, delivery_count, until, lock_ms, acquired_at,
                               last_error)
values (%s, %s, %s, %s, %s, 30000, %s, %s)
"""
RETRY = """
insert into offsets_shareretry (share_partition_id, held, delivery_count, not_before, last_error, last_member)
values (%s, %s, %s, %s, %s, %s)
"""
DEAD = """
insert into offsets_sharedead (share_partition_id, "offset", delivery_count, cause, error, member_id, at)
select %s, n, %s, %s, %s, %s, %s from generate_series(%s::bigint, %s::bigint) n
"""


def share_group(seed: Seed) -> int:
    """A share group `mailing` of two workers, which share partition 1 of `entries`; its key."""
    seed.topic("entries", 3)
    pk = seed.consumer_group("mailing", "Stable", epoch=7, assignment_epoch=7)
    seed.connection.execute("update groups_group set type = 'share', protocol_type = 'share' where id = %s", [pk])
    for worker, partitions in zip(WORKERS, ([0, 1], [1, 2]), strict=True):
        seed.consumer_member(pk, worker, epoch=7, target=partitions)
        assigned = Jsonb({topic_id("entries"): {str(p): 7 for p in partitions}})
        update = "update groups_consumermember set assigned = %s where group_id = %s and member_id = %s"
        seed.connection.execute(update, [assigned, pk, worker])
    return pk


def queue(seed: Seed, dead: int = 2) -> int:
    """The group with items: partition 0 has all states, 1 is finished up to 40, 2 has not begun. Its key.

    `dead`: how many dead letters beside the one that was delivered too often.
    """
    pk, now, run = share_group(seed), now_ms(), seed.connection.execute
    keys = []
    for number, following, end in ((0, 60, 100), (1, 40, 40), (2, None, 0)):
        row = run(PARTITION, [pk, number, following, end]).fetchone()
        assert row is not None
        keys.append(row[0])
    run(LOCK, [keys[0], WORKERS[0], "{[50,60)}", 1, now + 20_000, now - 10_000, None])
    run(LOCK, [keys[0], WORKERS[1], "{[30,32),[35,36)}", 3, now + 25_000, now - 5_000, "SMTP 451: try again"])
    run(RETRY, [keys[0], "{[20,23)}", 2, now - 1_000, "SMTP 421: too busy", WORKERS[1]])
    run(RETRY, [keys[0], "{[10,11)}", 4, now + 600_000, "SMTP 450: mailbox full", WORKERS[0]])
    run(DEAD, [keys[0], 5, "limit", "SMTP 450: mailbox full", WORKERS[0], now - 3_600_000, 1, 1])
    if dead:
        run(DEAD, [keys[0], 1, "rejected", "no such address: bob@example.org", WORKERS[1], now - 60_000, 2, dead + 1])
    return pk
