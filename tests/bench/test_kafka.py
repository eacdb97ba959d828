"""The Kafka requests of the bench, read by kio, which knows the schemas; and the broker's answers."""

from __future__ import annotations

import struct
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kio.serial import entity_reader

from tests.bench.kafka import answers, broker, frames


def decoded(name: str, request: bytes) -> Any:
    """The request as kio reads it, after its size and header."""
    api = getattr(frames, name.upper())
    header = struct.pack(">hhi", api, frames.VERSIONS[api], frames.CORRELATION) + frames.string(frames.CLIENT)
    assert struct.unpack_from(">i", request) == (len(request) - 4,)
    assert request[4 : 4 + len(header)] == header
    module = import_module(f"kio.schema.{name}.v{frames.VERSIONS[api]}.request")
    kind = getattr(module, name.title().replace("_", "") + "Request")
    body = request[4 + len(header) :]
    entity, size = entity_reader(kind)(body, 0)
    assert size == len(body), "nothing is left over"
    return entity


def test_heartbeat_and_sync() -> None:
    beat = decoded("heartbeat", frames.heartbeat("g", "m", 7))
    assert (beat.group_id, beat.member_id, beat.generation_id) == ("g", "m", 7)
    sync = decoded("sync_group", frames.sync_group("g", "m", 7, ["m", "n"]))
    assert [one.member_id for one in sync.assignments] == ["m", "n"]


def test_join() -> None:
    join = decoded("join_group", frames.join_group("g", "", 30_000, 60_000))
    assert (join.group_id, join.member_id, join.protocol_type) == ("g", "", "consumer")
    assert (join.session_timeout.total_seconds(), join.rebalance_timeout.total_seconds()) == (30, 60)
    assert [protocol.name for protocol in join.protocols] == ["range"]


def test_commit() -> None:
    commit = decoded("offset_commit", frames.offset_commit("g", "m", 7, "orders", [3, 4]))
    (topic,) = commit.topics
    assert (topic.name, [one.partition_index for one in topic.partitions]) == ("orders", [3, 4])
    assert {one.committed_offset for one in topic.partitions} == {1_000}


def test_control_requests() -> None:
    (topic,) = decoded("create_topics", frames.create_topic("orders", 5)).topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("orders", 5, 1)
    found = decoded("find_coordinator", frames.find_coordinator("g"))
    assert (found.key, found.key_type) == ("g", 0)


def test_an_answer_to_a_join_is_read() -> None:
    module = import_module("kio.schema.join_group.v3.response")
    body = struct.pack(">ihi", 0, 0, 4) + frames.string("range") + frames.string("a") + frames.string("b")
    body += frames.array([frames.string(one) + frames.binary(b"xyz") for one in ("a", "b")])
    theirs, _ = entity_reader(module.JoinGroupResponse)(body, 0)
    ours = frames.read_joined(body)
    assert (ours.generation, ours.leader, ours.member) == (4, theirs.leader, theirs.member_id)
    assert ours.members == tuple(one.member_id for one in theirs.members)


@pytest.mark.parametrize("place", range(5))
def test_a_commit_with_one_refused_partition_is_not_well(place: int) -> None:
    well = frames.commit_well("orders", range(5))
    assert answers.is_well(well)
    at = len(well) - 6 * place - 1
    assert not answers.is_well(well[:at] + b"\x10" + well[at + 1 :])


def test_only_a_heartbeat_without_an_error_is_well() -> None:
    assert answers.is_well(frames.HEARTBEAT_WELL)
    assert not answers.is_well(frames.HEARTBEAT_WELL[:-1] + b"\x19")
    assert answers.is_whole(frames.HEARTBEAT_WELL)
    assert not answers.is_whole(frames.HEARTBEAT_WELL[:-1])
    assert not answers.is_whole(b"\0\0")


def test_a_directory_without_jars_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no Kafka distribution"):
        broker.jars_of(str(tmp_path))
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.3.1.jar").touch()
    assert broker.jars_of(str(tmp_path)) == tmp_path / "libs"
