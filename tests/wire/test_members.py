"""What members of unmodified clients rely on: static ids, cooperative rebalances, commits, transactions, TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.kcoord.client.live import OUTLASTING_MS, SESSION_MS
from tests.processes.test_examples import PARTITIONS, TOPIC
from tests.support.database import cloned_database
from tests.support.tls import make_certificate
from tests.wire.java_members import Java
from tests.wire.kafka_workers import Listening, listening_on
from tests.wire.members import KINDS, described, member_of, polled

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("kafka-clients")]
WHOLE = pytest.mark.whole("more Kafka clients and tools; the default has librdkafka, Java and aiokafka once each")
DEFAULT = ("confluent-consumer", "java")

EVERYTHING = set(range(PARTITIONS))
NOT_STATIC = {"franz-go-consumer"}
"""franz-go leaves without its instance id, which is refused, as by Kafka: its place is free after the session only."""


@WHOLE
@pytest.mark.parametrize("kind", sorted(KINDS.keys() - NOT_STATIC))
def test_a_static_member_comes_back_without_a_rebalance(listening: Listening, kind: str) -> None:
    group = f"static-of-{kind}"
    listening.service.configure(group, consumer_session_timeout_ms=OUTLASTING_MS)  # consumer groups
    with closing(member_of(kind, listening, group, instance="stays")) as stays:
        goes = member_of(kind, listening, group, instance="goes")
        polled(lambda: len(stays.numbers()) == len(goes.numbers()) == 2, stays, goes)
        polled(
            lambda: described(listening, group)[1] == {"stays": stays.numbers(), "goes": goes.numbers()}, stays, goes
        )
        before, held = described(listening, group), goes.numbers()
        goes.close()
        assert described(listening, group) == before, "a static member does not leave"
        with closing(member_of(kind, listening, group, instance="goes")) as again:
            polled(lambda: again.numbers() == held, stays, again)
            assert described(listening, group) == before


@WHOLE
@pytest.mark.parametrize("kind", ["kafka-python", "confluent", "franz-go", "java"])
def test_a_cooperative_rebalance_takes_no_more_than_it_must(listening: Listening, kind: str) -> None:
    group = f"cooperative-of-{kind}"
    with closing(member_of(kind, listening, group, assignor="cooperative-sticky")) as first:
        polled(lambda: first.numbers() == EVERYTHING, first)
        first.revoked.clear()
        with closing(member_of(kind, listening, group, assignor="cooperative-sticky")) as second:
            polled(lambda: len(first.numbers()) == len(second.numbers()) == 2, first, second)
            assert listening.service.describe(group)["protocol_name"] == "cooperative-sticky"
            assert [lost for lost in first.revoked if lost] == [second.numbers()]
            assert first.numbers() | second.numbers() == EVERYTHING


@pytest.mark.parametrize("kind", [kind if kind in DEFAULT else pytest.param(kind, marks=WHOLE) for kind in KINDS])
def test_a_member_that_starts_again_knows_its_commits(listening: Listening, kind: str) -> None:
    group = f"commits-of-{kind}"
    with closing(member_of(kind, listening, group)) as first:
        polled(lambda: first.numbers() == EVERYTHING, first)
        assert first.committed(1) < 0
        first.commit(1, 7)
    with closing(member_of(kind, listening, group)) as again:
        polled(lambda: again.numbers() == EVERYTHING, again)
        assert again.committed(1) == 7


@WHOLE
def test_a_member_of_java_that_is_killed_is_succeeded(listening: Listening) -> None:
    """Alone with its like, in the classic protocol; the shortest session."""
    group = "killed-of-java"
    with closing(member_of("java", listening, group, session_ms=SESSION_MS)) as stays:
        with closing(member_of("java", listening, group, session_ms=SESSION_MS)) as killed:
            polled(lambda: len(stays.numbers()) == len(killed.numbers()) == 2, stays, killed)
            partition = min(killed.numbers())
            killed.commit(partition, 7)
            killed.kill()  # type: ignore[attr-defined]
        polled(lambda: stays.numbers() == EVERYTHING, stays)
        assert stays.committed(partition) == 7


@WHOLE
def test_a_pattern_of_java_is_resolved_by_the_server(listening: Listening) -> None:
    """Its partitions come with topic ids alone, whose names Java asks Metadata for; KIP-848."""
    group = "pattern-of-java"
    with closing(Java(listening, group, "consumer", "", "", topic=f"^{TOPIC[:3]}.*")) as member:
        polled(lambda: member.numbers() == EVERYTHING, member)


@WHOLE
@pytest.mark.parametrize("kind", ["java", "java-consumer"])
def test_a_transaction_of_java_commits_offsets(listening: Listening, kind: str) -> None:
    with closing(member_of(kind, listening, f"tx-of-{kind}")) as member:
        polled(lambda: member.numbers() == EVERYTHING, member)
        member.transaction(0, 11, "commit")  # type: ignore[attr-defined]
        assert member.committed(0) == 11
        member.transaction(0, 12, "abort")  # type: ignore[attr-defined]
        assert member.committed(0) == 11
        member.transaction(0, 13, "commit")  # type: ignore[attr-defined]
        assert member.committed(0) == 13
    metrics = httpx.get(f"{listening.service.url}/metrics").text
    assert 'kcoord_kafka_requests_total{api="end_txn",version="5"}' in metrics, "it has an epoch for each (KIP-890)"


@WHOLE
@pytest.mark.parametrize("kind", ["franz-go", "franz-go-consumer"])
def test_a_transaction_of_franz_go_commits_offsets(listening: Listening, kind: str) -> None:
    group = f"tx-of-{kind}"
    with closing(member_of(kind, listening, group, transactional_id=group)) as member:
        polled(lambda: member.numbers() == EVERYTHING, member)
        member.transaction(0, 11, "commit")  # type: ignore[attr-defined]
        assert member.committed(0) == 11
        member.transaction(0, 12, "abort")  # type: ignore[attr-defined]
        assert member.committed(0) == 11


@WHOLE
def test_a_transaction_of_kafka_python_commits_offsets(listening: Listening) -> None:
    kafka = pytest.importorskip("kafka")
    login, group = listening.login(), "tx-kafka-python"
    with closing(member_of("kafka-python", listening, group)) as member:
        polled(lambda: member.numbers() == EVERYTHING, member)
        producer = kafka.KafkaProducer(
            bootstrap_servers=login["bootstrap.servers"],
            security_protocol=login["security.protocol"],
            sasl_mechanism="PLAIN",
            sasl_plain_username="any",
            sasl_plain_password=login["sasl.password"],
            transactional_id="tx-of-kafka-python",
        )
        where = kafka.TopicPartition("lines", 0)
        metadata = member._consumer.group_metadata()  # type: ignore[attr-defined]

        def send(offset: int) -> None:
            producer.begin_transaction()
            producer.send_offsets_to_transaction({where: kafka.OffsetAndMetadata(offset, "", -1)}, metadata)

        with closing(producer):
            producer.init_transactions()
            send(11)
            producer.commit_transaction()
            assert member.committed(0) == 11
            send(12)
            producer.abort_transaction()
            assert member.committed(0) == 11


@dataclass(frozen=True)
class Secure(Listening):
    """A server that Kafka clients reach over TLS only."""

    certificate: Path

    def login(self) -> dict[str, str]:
        return {**super().login(), "security.protocol": "SASL_SSL"}


@pytest.fixture(scope="module")
def secure(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    key, certificate = make_certificate(tmp_path_factory.mktemp("tls"))
    tls = {"KCOORD_KAFKA_TLS_CERTIFICATE": certificate, "KCOORD_KAFKA_TLS_KEY": key}
    with cloned_database(postgres) as conninfo, listening_on(conninfo, **tls) as found:
        yield Secure(found.service, found.port, certificate)


@WHOLE
@pytest.mark.parametrize(
    ("kind", "setting"), [("kafka-python", "ssl_cafile"), ("confluent-consumer", "ssl.ca.location")]
)
def test_clients_trust_the_certificate_of_the_listener(secure: Secure, kind: str, setting: str) -> None:
    with closing(member_of(kind, secure, f"over-tls-{kind}", **{setting: str(secure.certificate)})) as member:
        polled(lambda: member.numbers() == EVERYTHING, member)
        member.commit(0, 5)
        assert member.committed(0) == 5
