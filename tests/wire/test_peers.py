"""A group of each client that others write: join, share, commit, leave, start again, be killed."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.kcoord.client.live import SESSION_MS
from tests.processes.test_examples import PARTITIONS
from tests.support.selection import sample
from tests.wire.kafka_workers import Listening
from tests.wire.members import OUTLASTING_MS, polled
from tests.wire.peer_members import PROGRAMS, Peer

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("kafka-clients")]

WHY = "more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each"

EVERYTHING = set(range(PARTITIONS))


def split(first: Peer, second: Peer) -> bool:
    """Whether each of the two has a half."""
    one, other = first.numbers(), second.numbers()
    return len(one) == len(other) == PARTITIONS // 2 and one | other == EVERYTHING


@pytest.mark.parametrize("client", sample(PROGRAMS, WHY, default="aiokafka"))
def test_members_share_commit_leave_and_start_again(listening: Listening, client: str) -> None:
    """The sessions outlast the test: what moves partitions is that a member says that it leaves."""
    group = f"peers-of-{client}"
    with closing(Peer(client, listening, group, OUTLASTING_MS)) as first:
        polled(lambda: first.numbers() == EVERYTHING)
        assert first.committed(1) == -1
        first.commit(1, 7)
        assert first.committed(1) == 7
        with closing(Peer(client, listening, group, OUTLASTING_MS)) as second:
            polled(lambda: split(first, second))
            assert EVERYTHING in first.revoked or client.endswith("-consumer"), "in the classic protocol it joins again"
            partition = min(second.numbers())
            second.commit(partition, 9)
            assert first.committed(partition) == 9
        polled(lambda: first.numbers() == EVERYTHING)
    assert listening.service.describe(group)["members"] == [], "the last one left when it was closed"
    with closing(Peer(client, listening, group, OUTLASTING_MS)) as again:
        polled(lambda: again.numbers() == EVERYTHING)
        assert again.committed(1) == (9 if partition == 1 else 7)


@pytest.mark.whole(WHY)
@pytest.mark.parametrize("client", ["aiokafka", "platformatic-consumer"])
def test_a_member_that_is_killed_is_succeeded(listening: Listening, client: str) -> None:
    """In each protocol once: the server ends the session, without the client."""
    group = f"killed-of-{client}"
    with closing(Peer(client, listening, group, SESSION_MS)) as stays:
        with closing(Peer(client, listening, group, SESSION_MS)) as killed:
            polled(lambda: split(stays, killed))
            partition = min(killed.numbers())
            killed.commit(partition, 7)
            killed.kill()
        polled(lambda: stays.numbers() == EVERYTHING)
        assert stays.committed(partition) == 7
