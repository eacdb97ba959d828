"""Who is answered what: share.md 2.2, row by row."""

from __future__ import annotations

import pytest

from groups.core.model.commands import CommitOffsets
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.world import GROUP
from tests.groups.core.share.world import ShareWorld, config


@pytest.fixture
def world() -> ShareWorld:
    """A group in which `a` has epoch 3 and had 2 before; `t` has two partitions."""
    world = ShareWorld()
    world.set_topics(t=2)
    world.beat("a", 0, "t")
    world.beat("b", 0, "t")
    world.beat("a", 1)
    world.beat("b", -1)
    world.beat("a", 2)
    assert (world.of("a").previous_member_epoch, world.of("a").member_epoch) == (2, 3)
    return world


@pytest.mark.parametrize(
    ("row", "member_id", "epoch", "fields", "error"),
    [
        (3, "", 0, {}, Error.INVALID_REQUEST),
        (3, "x" * 37, 0, {}, Error.INVALID_REQUEST),
        (6, "  ", 0, {}, Error.INVALID_REQUEST),
        (6, "x", 0, {"rack_id": " "}, Error.INVALID_REQUEST),
        (7, "x", 0, {"subscribed_topic_names": None}, Error.INVALID_REQUEST),
        (7, "x", 0, {"subscribed_topic_names": frozenset()}, Error.INVALID_REQUEST),
        (8, "a", -2, {}, Error.INVALID_REQUEST),
        (11, "x", -1, {}, Error.UNKNOWN_MEMBER_ID),
        (15, "x", 5, {}, Error.UNKNOWN_MEMBER_ID),
        (16, "a", 4, {}, Error.FENCED_MEMBER_EPOCH),
        (17, "a", 1, {}, Error.FENCED_MEMBER_EPOCH),
        (18, "a", 2, {}, Error.NONE),
        (18, "a", 3, {}, Error.NONE),
        (18, "a", 0, {}, Error.NONE),
        (18, "x" * 36, 0, {}, Error.NONE),
    ],
)
def test_rows_of_an_existing_group(
    world: ShareWorld, row: int, member_id: str, epoch: int, fields: dict[str, object], error: Error
) -> None:
    given = {"subscribed_topic_names": frozenset({"t"}) if epoch == 0 else None, **fields}
    assert world.beat(member_id, epoch, **given).error is error


@pytest.mark.parametrize(("epoch", "error"), [(-1, Error.GROUP_ID_NOT_FOUND), (5, Error.GROUP_ID_NOT_FOUND)])
def test_rows_10_and_12_without_a_group(epoch: int, error: Error) -> None:
    world = ShareWorld()
    assert world.beat("x", epoch).error is error
    assert world.group is None


@pytest.mark.parametrize("epoch", [0, 1, -1])
@pytest.mark.parametrize("kind", ["consumer", "classic with an offset"])
def test_rows_10_and_13_with_a_group_of_another_type(kind: str, epoch: int) -> None:
    world = ShareWorld()
    world.set_topics(t=1)
    if kind == "consumer":
        world.join("m", "t")
    else:
        world.send(CommitOffsets(GROUP, "", None, -1))
    before = world.group
    call = world.beat("a", epoch, *(["t"] if epoch == 0 else []))
    assert call.error is Error.GROUP_ID_NOT_FOUND
    assert before is not None
    assert "no share group" in call.reply.detail
    assert world.group == before


def test_row_14_a_full_group_refuses_strangers_whatever_their_epoch() -> None:
    world = ShareWorld(config=config(max_size=2))
    world.set_topics(t=1)
    world.beat("a", 0, "t")
    world.beat("b", 0, "t")
    assert world.beat("c", 0, "t").error is Error.GROUP_MAX_SIZE_REACHED
    assert world.beat("c", 7).error is Error.GROUP_MAX_SIZE_REACHED, "row 14 is before row 15"
    assert world.beat("a", 0, "t").error is Error.NONE


def test_a_member_that_joins_again_keeps_its_epoch(world: ShareWorld) -> None:
    """Row 18 with epoch 0."""
    call = world.beat("a", 0, "t")
    assert call.epoch == 3
    assert call.assignment == {"t": [0, 1]}


def test_a_heartbeat_that_a_later_one_has_overtaken_changes_nothing(world: ShareWorld) -> None:
    call = world.beat("a", -1, age_ms=5_000)
    assert call.error is Error.COORDINATOR_NOT_AVAILABLE
    assert "a" in world.share.members


def test_a_held_group_lets_nobody_join(world: ShareWorld) -> None:
    assert world.hold(60_000).error is Error.NONE
    assert world.beat("a", 3).error is Error.UNKNOWN_MEMBER_ID
    assert world.beat("a", 0, "t").error is Error.COORDINATOR_LOAD_IN_PROGRESS
    world.advance(60_000)
    assert world.beat("a", 0, "t").error is Error.NONE
