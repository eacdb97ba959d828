"""Settings are checked before anything is sent, and the message names the setting and the remedy."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

from kcoord.client import (
    AsyncConsumer,
    Consumer,
    ConsumerConfig,
    ConsumerSettings,
    InvalidConfigurationError,
    Record,
)
from kcoord.client.core.strategies import Strategies
from tests.kcoord.client.sources import MemorySource
from tests.support.processes import ROOT


class FetchOnly:
    """A source that cannot say where its partitions begin and end."""

    def fetch(self, topic: str, partition: int, offset: int, max_records: int) -> list[Record[str]]:
        return []


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"group_id": ""}, "group_id", "1 to 255"),
    ({"group_id": "g" * 256}, "group_id", "1 to 255"),
    ({"group_id": "a/b"}, "group_id", "'/'"),
    ({"group_id": "a\n"}, "group_id", "control"),
    ({"group_instance_id": "a b"}, "group_instance_id", "1 to 249"),
    ({"group_instance_id": ".."}, "group_instance_id", "1 to 249"),
    ({"heartbeat_interval_ms": 45_000}, "heartbeat_interval_ms", "smaller than session_timeout_ms"),
    ({"session_timeout_ms": 0}, "session_timeout_ms", "from 1"),
    ({"session_timeout_ms": "6000"}, "session_timeout_ms", "whole number"),
    ({"max_poll_records": True}, "max_poll_records", "whole number"),
    ({"max_poll_interval_ms": 2**31}, "max_poll_interval_ms", "2147483647"),
    ({"retry_backoff_ms": 2_000}, "retry_backoff_ms", "retry_backoff_max_ms"),
    ({"auto_offset_reset": "smallest"}, "auto_offset_reset", "earliest, latest, none"),
    ({"group_protocol": "raft"}, "group_protocol", "'classic' or 'consumer'"),
    ({"group_protocol": "consumer", "session_timeout_ms": 6_000}, "session_timeout_ms", "leave it out"),
    ({"group_protocol": "consumer", "heartbeat_interval_ms": 3_000}, "heartbeat_interval_ms", "leave it out"),
    (
        {"group_protocol": "consumer", "partition_assignment_strategy": ["range"]},
        "partition_assignment_strategy",
        "the service determines this",
    ),
    ({"group_protocol": "consumer", "group_remote_assignor": " "}, "group_remote_assignor", "the name of an assignor"),
    ({"group_remote_assignor": "uniform"}, "group_remote_assignor", "use partition_assignment_strategy"),
    ({"partition_assignment_strategy": "range"}, "partition_assignment_strategy", "a sequence"),
    ({"partition_assignment_strategy": []}, "partition_assignment_strategy", "at least one"),
    ({"partition_assignment_strategy": ["range", "range"]}, "partition_assignment_strategy", "twice"),
    ({"partition_assignment_strategy": [object()]}, "partition_assignment_strategy", "not an assignor"),
    ({"url": "localhost:8000"}, "url", "http://"),
    ({"url": " , "}, "url", "at least one"),
    ({"url": "http://localhost:8000/v1"}, "url", "leave out /v1"),
    ({"url": "https://a.example, https://b.example/kcoord/v1/"}, "url", "leave out /v1"),
    ({"source": object()}, "source", "no method fetch, beginning_offset, end_offset"),
    ({"source": MemorySource}, "source", "pass an instance"),
    ({"source": FetchOnly()}, "source", "no method beginning_offset, end_offset"),
    ({"session_timeout": 6_000}, "session_timeout", "did you mean session_timeout_ms?"),
    ({"xyzzy": 1}, "xyzzy", "the settings are group_id"),
]


@pytest.mark.parametrize(("settings", "name", "says"), REFUSED, ids=[f"{r[1]}: {r[2]}" for r in REFUSED])
def test_refused(settings: dict[str, Any], name: str, says: str) -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        Consumer(**{"group_id": "g", **settings})
    assert caught.value.setting == name
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"INVALID_CONFIG: {name}: ")


@pytest.mark.parametrize("kind", [Consumer, AsyncConsumer])
def test_source_is_checked_before_anything_is_read(kind: type[Consumer[Any] | AsyncConsumer[Any]]) -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        kind("t", group_id="g", source=FetchOnly())  # type: ignore[arg-type]
    assert caught.value.setting == "source"


class AsyncSource(MemorySource):
    """A source that only `AsyncConsumer` can wait for."""

    async def end_offset(self, topic: str, partition: int) -> int:  # type: ignore[override]
        return 0


class AsyncTruncated(MemorySource):
    """One whose optional method is asynchronous."""

    async def truncated(self, topic: str, partition: int) -> bool:
        return False


@pytest.mark.parametrize("source", [AsyncSource, AsyncTruncated])
def test_an_asynchronous_source_is_refused_before_anything_is_read(source: type[MemorySource]) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"is asynchronous: use kcoord.client.AsyncConsumer") as caught:
        Consumer("t", group_id="g", source=source({}))
    assert caught.value.setting == "source"
    AsyncConsumer("t", group_id="g", source=source({}))
    AsyncConsumer("t", group_id="g", source=MemorySource({}))


def test_every_setting_is_known_to_type_checkers() -> None:
    assert list(ConsumerSettings.__annotations__) == [f.name for f in fields(ConsumerConfig)]


def test_client_needs_nothing_of_the_server() -> None:
    program = (
        "import sys, kcoord.client\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "server = {'django', 'psycopg', 'celery', 'starlette', 'groups', 'offsets', 'frontend'}\n"
        "sys.exit(', '.join(loaded & server) or None)"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_group_id_is_required() -> None:
    with pytest.raises(InvalidConfigurationError, match="group_id"):
        Consumer()


def test_environment_completes_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCOORD_URL", "https://a.example/, https://b.example:8443")
    monkeypatch.setenv("KCOORD_TOKEN", "s3cret")
    config = ConsumerConfig.of({"group_id": "g"})
    assert config.urls == ("https://a.example", "https://b.example:8443")
    assert config.token == "s3cret"
    assert "s3cret" not in repr(config)
    assert ConsumerConfig.of({"group_id": "g", "url": "http://c", "token": "x"}).urls == ("http://c",)


def test_defaults_are_those_of_the_java_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KCOORD_URL", raising=False)
    config = ConsumerConfig.of({"group_id": "g"})
    assert (config.session_timeout_ms, config.heartbeat_interval_ms, config.max_poll_interval_ms) == (
        45_000,
        3_000,
        300_000,
    )
    assert (config.enable_auto_commit, config.auto_commit_interval_ms, config.max_poll_records) == (True, 5_000, 500)
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms, config.request_timeout_ms) == (100, 1_000, 30_000)
    assert config.partition_assignment_strategy == ("range", "cooperative-sticky")
    assert config.auto_offset_reset == "latest"
    assert config.urls == ("http://127.0.0.1:8000",)


@pytest.mark.parametrize(
    ("names", "protocol"),
    [
        (["range", "cooperative-sticky"], "eager"),
        (["cooperative-sticky"], "cooperative"),
        (["cooperative-sticky", "sticky"], "eager"),
        (["range", "roundrobin", "sticky"], "eager"),
    ],
)
def test_rebalance_protocol_is_the_strongest_in_common(names: list[str], protocol: str) -> None:
    assert Strategies(names).protocol.value == protocol
