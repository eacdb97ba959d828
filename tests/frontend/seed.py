"""Rows for pages to show, written straight into the tables: any state, any size, in a few statements."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from uuid import UUID, uuid5

import psycopg
from psycopg.types.json import Jsonb

from kcoord.database.sql import queries

NAMESPACE = UUID("5c1f7e0e-7a55-4f0c-9c7e-6d6f9f1a2b3c")
NOBYTES = b""


def now_ms() -> int:
    """The time of this machine, which is the database's in tests."""
    return time.time_ns() // 1_000_000


def member_id(client_id: str, number: int) -> str:
    """A member id as the coordinator makes them, the same in every run."""
    return f"{client_id}-{uuid5(NAMESPACE, f'{client_id}/{number}')}"


def topic_id(name: str) -> str:
    """The id that `Seed.topic` gives a topic."""
    return str(uuid5(NAMESPACE, name))


class Seed:
    """Writes rows and tells listeners, as the stores do. For pages only: it keeps no rule of the protocol."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection

    def group(
        self,
        group_id: str,
        state: str = "Stable",
        *,
        generation: int = 1,
        protocol: str | None = "range",
        leader: str | None = None,
        since_ms_ago: int = 60_000,
        changed_ms_ago: int = 60_000,
        join_deadline_in: int | None = None,
        initial: bool = False,
        sync_deadline_in: int | None = None,
    ) -> int:
        """A group without members; returns its key."""
        now = now_ms()
        row = self.connection.execute(
            """
            insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                protocol_name, leader_id, new_member_added, join_deadline, join_delay_ms, join_remaining_ms,
                sync_deadline, wake_at, version, created_at, updated_at)
            values (%s, 'classic', %s, 'Empty', %s, %s, 'consumer', %s, %s, false, %s, %s, %s, %s, null, 1, %s, %s)
            returning id
            """,
            [
                group_id,
                state,
                now - since_ms_ago,
                generation,
                protocol,
                leader,
                None if join_deadline_in is None else now + join_deadline_in,
                3_000 if initial else None,
                0 if initial else None,
                None if sync_deadline_in is None else now + sync_deadline_in,
                now - since_ms_ago - 60_000,
                now - changed_ms_ago,
            ],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def members(
        self,
        group: int,
        member_ids: Sequence[str],
        *,
        client_id: str = "worker",
        static: bool = False,
        joined: Sequence[bool] | None = None,
        heartbeat_ms_ago: int = 1_200,
        session_timeout_ms: int = 45_000,
    ) -> None:
        """Members in this order. `joined`: who waits in a join."""
        now = now_ms()
        with self.connection.cursor() as cursor:
            cursor.executemany(
                """
                insert into groups_member (group_id, member_id, instance_id, client_id, client_host,
                    session_timeout_ms, rebalance_timeout_ms, protocol_type, protocol_names, protocol_metadata,
                    assignment, is_new, join_parked_until, sync_parked_until, pending_sync, session_deadline,
                    last_heartbeat_at)
                values (%s, %s, %s, %s, %s, %s, 300000, 'consumer', '{range}', %s, '', false, %s, null, false, %s, %s)
                """,
                [
                    (
                        group,
                        member,
                        f"{client_id}-{index}" if static else None,
                        client_id,
                        f"10.0.{index // 250}.{index % 250 + 1}",
                        session_timeout_ms,
                        [NOBYTES],
                        now + 30_000 if joined and joined[index] else None,
                        now + session_timeout_ms - heartbeat_ms_ago - 97 * (index % 20),
                        now - heartbeat_ms_ago - 97 * (index % 20),
                    )
                    for index, member in enumerate(member_ids)
                ],
            )

    def consumer_group(self, group_id: str, state: str, *, epoch: int, assignment_epoch: int) -> int:
        """A group of the consumer protocol without members; returns its key."""
        now = now_ms()
        row = self.connection.execute(
            """
            insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                new_member_added, assignment_epoch, version, created_at, updated_at)
            values (%s, 'consumer', %s, '', %s, %s, 'consumer', false, %s, 1, %s, %s)
            returning id
            """,
            [group_id, state, now - 4_000, epoch, assignment_epoch, now - 900_000, now - 1_000],
        ).fetchone()
        assert row is not None
        return int(row[0])

    def consumer_member(
        self,
        group: int,
        member_id: str,
        *,
        epoch: int,
        state: int = 0,
        target: Sequence[int] = (),
        instance_id: str | None = None,
        rebalance_deadline_in: int | None = None,
    ) -> None:
        """A member of a consumer group, meant to have these partitions of `entries`."""
        now = now_ms()
        self.connection.execute(
            """
            insert into groups_consumermember (group_id, member_id, instance_id, client_id, client_host,
                rebalance_timeout_ms, subscribed_topic_names, subscribed_topic_regex, member_epoch,
                previous_member_epoch, state, target, session_deadline, session_armed_at, rebalance_deadline,
                rebalance_armed_at)
            values (%s, %s, %s, 'ledger', '10.0.0.9', 300000, '{entries}', '', %s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [
                group,
                member_id,
                instance_id,
                epoch,
                epoch - 1,
                state,
                Jsonb({topic_id("entries"): list(target)}),
                now + 43_700,
                now - 1_300,
                None if rebalance_deadline_in is None else now + rebalance_deadline_in,
                None if rebalance_deadline_in is None else now - 1_300,
            ],
        )

    def give_up(self, group: int, *partitions: int) -> None:
        """The owners of these partitions were told to give them up."""
        self.connection.execute(
            "update groups_assignment set pending = true where group_id = %s and partition = any(%s)",
            [group, list(partitions)],
        )

    def assign(
        self, group: int, owners: Mapping[tuple[str, int], str], generation: int = 1, *, by_id: bool = False
    ) -> None:
        """Who owns which (topic, partition). Only consumer groups know topics by their ids (`by_id`)."""
        with (
            self.connection.cursor() as cursor,
            cursor.copy(
                "copy groups_assignment (group_id, topic_id, topic, partition, member_id, generation_id) from stdin"
            ) as copy,
        ):
            for (topic, partition), member in owners.items():
                copy.write_row((group, topic_id(topic) if by_id else topic, topic, partition, member, generation))

    def commit(self, group: int, offsets: Mapping[tuple[str, int], int], metadata: str = "", ms_ago: int = 900) -> None:
        """Committed offsets."""
        now = now_ms()
        with (
            self.connection.cursor() as cursor,
            cursor.copy(
                "copy offsets_committedoffset (group_id, topic, partition, committed_offset, leader_epoch, metadata, "
                "commit_timestamp, expire_timestamp, member_id, generation_id) from stdin"
            ) as copy,
        ):
            for (topic, partition), offset in offsets.items():
                copy.write_row((group, topic, partition, offset, -1, metadata, now - ms_ago, None, "", -1))

    def topic(self, name: str, partitions: int, ends: Sequence[int] = ()) -> None:
        """A topic of the catalogue, with the ends of its first partitions' logs."""
        now = now_ms()
        row = self.connection.execute(
            "insert into groups_topic (name, topic_id, partitions, labels, created_at) values (%s, %s, %s, %s, %s) "
            "returning id",
            [name, topic_id(name), partitions, Jsonb({}), now - 86_400_000],
        ).fetchone()
        assert row is not None
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "insert into groups_watermark (topic_id, partition, log_start_offset, log_end_offset, sampled_at) "
                "values (%s, %s, 0, %s, %s)",
                [(row[0], partition, end, now - 4_000) for partition, end in enumerate(ends)],
            )
        self.connection.execute(queries("groups").bump_revision.encode(), {"subject": "topics"})

    def journal(
        self,
        group_id: str,
        kind: str,
        topic: str,
        partition: int,
        offset: int | None,
        *,
        ms_ago: int = 0,
        member_id: str = "",
        generation: int = -1,
        principal: str = "",
        metadata: str = "",
    ) -> None:
        """A line of the journal."""
        self.connection.execute(
            "insert into offset_commit_log (at, kind, group_name, topic, partition, committed_offset, member_id,"
            " generation_id, client_id, principal, metadata) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            [
                now_ms() - ms_ago,
                kind,
                group_id,
                topic,
                partition,
                offset,
                member_id,
                generation,
                "worker" if member_id else "",
                principal,
                metadata,
            ],
        )

    def group_lag(self, group: int, lag: int | None, time_lag_ms: int | None = None) -> None:
        """How far a group was behind when it was last looked at."""
        self.connection.execute(
            "insert into offsets_grouplag (group_id, at, lag, time_lag_ms) values (%s, %s, %s, %s)",
            [group, now_ms() - 20_000, lag, time_lag_ms],
        )

    def lag_samples(
        self,
        group_id: str,
        lags: Mapping[str, Sequence[int]],
        *,
        every_ms: int = 900_000,
        late: bool = True,
        now: int | None = None,
    ) -> None:
        """Samples of lag by topic, the newest last and just now; each record is 20 ms of work.

        `now` (ms): this instant instead, such as that of one look at several groups.
        """
        now = now or now_ms()
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "insert into offsets_lagsample (group_name, topic, at, lag, time_lag_ms) values (%s, %s, %s, %s, %s)",
                [
                    (group_id, topic, now - 1_000 - every_ms * age, lag, lag * 20 if late else None)
                    for topic, series in lags.items()
                    for age, lag in enumerate(reversed(series))
                ],
            )

    def sampled(self, name: str, lags: Mapping[str, Sequence[int]], unknown: int = 0) -> int:
        """A group whose lag was sampled every five minutes, for the last time just now; returns its key.

        `unknown`: of how many partitions of each topic the end was unknown.
        """
        pk = self.group(name)
        now = now_ms()
        self.lag_samples(name, lags, every_ms=300_000, now=now)
        total = sum(series[-1] for series in lags.values())
        self.connection.execute(
            "insert into offsets_grouplag (group_id, at, lag) values (%s, %s, %s)", [pk, now - 1_000, total]
        )
        for topic, series in lags.items():
            self.connection.execute(
                "insert into offsets_topiclag (group_id, topic, at, lag, committed_offsets, partitions,"
                " unknown_partitions) values (%s, %s, %s, %s, 0, 1, %s)",
                [pk, topic, now - 1_000, series[-1], unknown],
            )
        return pk

    def reported(self, topic: str, ends: Mapping[int, Sequence[int | None]], *, every_ms: int = 60_000) -> None:
        """Where logs ended by partition, as sampled until just now; None: nobody reported it."""
        last = now_ms() - 1_000
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "insert into offsets_watermarksample (topic_id, partition, at, until, log_start_offset, log_end_offset)"
                " select id, %s, %s, %s, 0, %s from groups_topic where name = %s",
                [
                    (partition, last - every_ms * age, last - every_ms * age, end, topic)
                    for partition, series in ends.items()
                    for age, end in enumerate(reversed(series))
                    if end is not None
                ],
            )

    def event(
        self,
        group_id: str,
        kind: str,
        generation: int,
        member: str | None = None,
        ms_ago: int = 0,
        **detail: object,
    ) -> None:
        """Something that happened."""
        self.connection.execute(
            "insert into groups_event (group_name, at, kind, generation_id, member_id, detail) "
            "values (%s, %s, %s, %s, %s, %s)",
            [group_id, now_ms() - ms_ago, kind, generation, member, Jsonb(detail)],
        )

    def changed(self, group_id: str) -> None:
        """Notify all processes, as a store does when it commits."""
        self.connection.execute("select pg_notify('kcoord_changed', %s)", [group_id])

    def many_groups(self, count: int) -> None:
        """Empty and stable groups by the thousand."""
        now = now_ms()
        self.connection.execute(
            """
            insert into groups_group (group_id, type, state, previous_state, state_since, generation_id, protocol_type,
                protocol_name, leader_id, new_member_added, version, created_at, updated_at)
            select 'team-' || lpad((i %% 97)::text, 2, '0') || '.service-' || lpad(i::text, 5, '0'), 'classic',
                   case when i %% 5 = 0 then 'Empty' else 'Stable' end, 'Empty', %(now)s - i * 1000, i %% 40,
                   'consumer', 'range', null, false, 1, %(now)s - 86400000, %(now)s - i * 977
            from generate_series(1, %(count)s) i
            """,
            {"now": now, "count": count},
        )


def working_group(seed: Seed, group_id: str = "billing", workers: int = 3, partitions: int = 12) -> list[str]:
    """A stable group at work on two topics; returns its members."""
    members = [member_id(group_id, number) for number in range(workers)]
    pk = seed.group(group_id, generation=7, leader=members[0], since_ms_ago=95_000, changed_ms_ago=95_000)
    seed.members(pk, members, client_id=group_id)
    orders = {("orders", p): members[p * workers // partitions] for p in range(partitions)}
    payments = {("payments", p): members[p % workers] for p in range(6)}
    seed.assign(pk, {**orders, **payments}, generation=7)
    seed.commit(pk, {("orders", p): 10_400 + 37 * p for p in range(partitions)}, metadata="")
    seed.commit(pk, {("payments", p): 88_000 + p for p in range(4)}, metadata="batch 17")
    events(seed, group_id, members)
    return members


def reconciling_group(seed: Seed, group_id: str = "ledger") -> tuple[str, str]:
    """A consumer group of three, in which the first member gives up partitions that the second waits for."""
    first, second, third = (str(uuid5(NAMESPACE, f"{group_id}/{number}")) for number in range(3))
    seed.topic("entries", 12)
    pk = seed.consumer_group(group_id, "Reconciling", epoch=12, assignment_epoch=12)
    seed.consumer_member(pk, first, epoch=11, state=1, target=range(4), rebalance_deadline_in=41_000)
    seed.consumer_member(pk, second, epoch=12, state=2, target=range(4, 8), instance_id="ledger-2")
    seed.consumer_member(pk, third, epoch=12, target=range(8, 12))
    owners = [first] * 6 + [second] * 2 + [third] * 4
    seed.assign(pk, {("entries", partition): owner for partition, owner in enumerate(owners)}, 12, by_id=True)
    seed.give_up(pk, 4, 5)
    seed.event(group_id, "group_epoch_bumped", 12, second, ms_ago=5_000, cause="member_joined")
    seed.event(group_id, "target_computed", 12, ms_ago=4_900, members=2, assignor="uniform")
    return first, second


def events(seed: Seed, group_id: str, members: Sequence[str]) -> None:
    """A life: created, joined, one member killed, rebalanced."""
    lost = member_id(group_id, 99)
    seed.event(group_id, "group_created", 0, ms_ago=900_000)
    for number, member in enumerate([*members, lost]):
        seed.event(group_id, "member_joined", 5, member, ms_ago=890_000 - number, client_host="10.0.0.7")
    seed.event(group_id, "rebalance_started", 5, members[0], ms_ago=890_000, cause="member_joined")
    seed.event(
        group_id, "rebalance_completed", 6, ms_ago=886_800, leader=members[0], protocol_name="range", members=4,
        duration_ms=3_204,
    )  # fmt: skip
    seed.event(group_id, "assignment_stored", 6, ms_ago=886_760, members=4, duration_ms=41)
    seed.event(group_id, "member_expired", 6, lost, ms_ago=97_000, cause="session_expired")
    seed.event(group_id, "rebalance_started", 6, lost, ms_ago=97_000, cause="session_expired")
    seed.event(
        group_id, "rebalance_completed", 7, ms_ago=95_200, leader=members[0], protocol_name="range",
        members=len(members), duration_ms=1_800,
    )  # fmt: skip
    seed.event(group_id, "assignment_stored", 7, ms_ago=95_000, members=len(members), duration_ms=38)
