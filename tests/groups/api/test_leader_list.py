"""The leader's list of a large group: the same bytes as encoding it at once, and encoded only once for each member."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups.api import handlers
from groups.api.handlers import FEW, LeaderLists
from groups.core.model.replies import JoinedMember, JoinReply
from kcoord.config import Config
from kcoord.process.runtime import Runtime
from kcoord.protocol.consumer_protocol import Subscription, encode_subscription
from kcoord.protocol.errors import Error
from tests.support.rounds import counted_rounds

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
SUBSCRIPTIONS = st.builds(
    lambda topics, owned, user_data: encode_subscription(
        Subscription(tuple(topics), owned_partitions=dict.fromkeys(owned, (0, 7)), user_data=user_data)
    ),
    st.lists(NAMES.filter(bool), max_size=3),
    st.sets(NAMES.filter(bool), max_size=3),
    st.none() | st.binary(max_size=8),
)
MEMBERS = st.lists(
    st.builds(JoinedMember, NAMES, st.none() | NAMES, SUBSCRIPTIONS | st.binary(max_size=20)),
    min_size=1,
    max_size=8,
    unique_by=lambda member: member.member_id,
)


def lists(most: int = 10) -> LeaderLists:
    return LeaderLists(Runtime(Config({"cache.max.groups": most}), ""))


def reply(members: list[JoinedMember], protocol_type: str = "consumer") -> JoinReply:
    return JoinReply(Error.NONE, "a", 3, protocol_type, "range", "a", members=tuple(members), session_deadline=1)


def many(count: int = 2 * FEW) -> list[JoinedMember]:
    return [JoinedMember(f"m{n}", None, encode_subscription(Subscription((f"t{n}",)))) for n in range(count)]


@given(st.lists(MEMBERS, min_size=1, max_size=4), st.sampled_from(["consumer", "connect"]))
async def test_it_is_what_encoding_it_at_once_gives(rebalances: list[list[JoinedMember]], protocol_type: str) -> None:
    kept = lists()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("groups.api.handlers.FEW", 0)
        for members in rebalances:
            given = reply(members, protocol_type)
            encoded = await kept.encoded("g", given)
            assert encoded is not None
            assert msgspec.json.encode(handlers.join_response(given, encoded)) == msgspec.json.encode(
                handlers.join_response(given)
            )


async def test_only_members_that_changed_are_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    plain = handlers.joined_member

    def counted(member: JoinedMember, *, decodes: bool) -> object:
        encoded.append(member.member_id)
        return plain(member, decodes=decodes)

    monkeypatch.setattr(handlers, "joined_member", counted)
    kept, members = lists(), many()
    await kept.encoded("g", reply(members))
    assert len(encoded) == len(members)
    encoded.clear()
    members = [*members[1:-1], replace(members[-1], metadata=b"other"), JoinedMember("new", None, b"")]
    await kept.encoded("g", reply(members))
    assert encoded == [members[-2].member_id, "new"]
    assert set(kept._kept["g", True]) == {member.member_id for member in members}, "those that left are forgotten"


async def test_few_members_are_not_kept() -> None:
    kept = lists()
    assert await kept.encoded("g", reply(many(FEW))) is None
    assert not kept._kept


@pytest.mark.parametrize("most", [0, 3])
async def test_it_keeps_those_of_as_many_groups_as_the_process_does(most: int) -> None:
    kept = lists(most)
    for number in range(5):
        await kept.encoded(f"g{number}", reply(many()))
    assert [group_id for group_id, _ in kept._kept] == [f"g{number}" for number in range(5 - most, 5)]


async def test_the_loop_has_its_turn_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcoord.process.off_loop.SLICE_SECONDS", 0.0)
    async with counted_rounds() as rounds:
        before = rounds.now
        await lists().encoded("g", reply(many()))
        assert rounds.now - before >= FEW
