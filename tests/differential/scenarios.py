"""What the requests about groups and offsets are answered in the cases that their rules tell apart; see `scenes`."""

from __future__ import annotations

from tests.differential import share_scenarios  # noqa: F401 - they are added to ALL
from tests.differential.scenes import ALL, SUBSCRIBED, Scene, scenario
from tests.differential.sequences import LONG_METADATA, UNKNOWN_TOPIC

__all__ = ["ALL"]

UNREADABLE, CONNECT = [{"name": "range", "metadata": b"\0"}], [{"name": "range", "metadata": b"any"}]
LONG = "m" * LONG_METADATA

# JoinGroup


@scenario("join_group")
async def a_first_member(s: Scene) -> None:
    await s.join("a", s.v)
    await s.ask("describe_groups", 5, groups=[s.group])


@scenario("join_group")
async def a_member_id_that_nobody_has(s: Scene) -> None:
    await s.join("a", s.v, member_id="stranger")


@scenario("join_group")
async def a_member_id_that_nobody_has_in_a_stable_group(s: Scene) -> None:
    await s.stable()
    await s.join("b", s.v, member_id="stranger")


@scenario("join_group")
async def join_without_a_group_id(s: Scene) -> None:
    await s.join("a", s.v, group_id="")


@scenario("join_group")
async def a_session_that_is_too_short_or_too_long(s: Scene) -> None:
    await s.join("a", s.v, session_timeout=10)
    await s.join("a", s.v, session_timeout=2_000_000_000)


@scenario("join_group")
async def join_without_protocols(s: Scene) -> None:
    await s.join("a", s.v, protocols=[])


@scenario("join_group")
async def join_without_a_protocol_type(s: Scene) -> None:
    await s.join("a", s.v, protocol_type="")


@scenario("join_group")
async def another_protocol_type(s: Scene) -> None:
    await s.stable()
    await s.join("b", s.v, protocol_type="connect", protocols=CONNECT)


@scenario("join_group")
async def no_protocol_in_common(s: Scene) -> None:
    await s.stable()
    await s.join("b", s.v, protocols=[{"name": "roundrobin", "metadata": SUBSCRIBED}])


@scenario("join_group")
async def the_only_member_joins_again(s: Scene) -> None:
    await s.stable()
    await s.join("a", s.v)
    await s.ask("heartbeat", 3, **s.who())


@scenario("join_group")
async def a_second_member(s: Scene) -> None:
    received = await s.rebalancing()
    await s.join("a", s.v)
    await received()
    await s.ask("describe_groups", 5, groups=[s.group])


@scenario("join_group", 5)
async def a_static_member(s: Scene) -> None:
    await s.join("a", s.v, group_instance_id="i")


@scenario("join_group", 5)
async def a_static_member_that_starts_again(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    await s.join("again", s.v, group_instance_id="i")
    await s.ask("heartbeat", 3, **s.who("a", group_instance_id="i"))
    await s.ask("heartbeat", 3, **s.who("again", group_instance_id="i"))


@scenario("join_group", 5)
async def a_static_member_with_the_id_of_nobody(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    await s.join("b", s.v, group_instance_id="i", member_id="stranger")


@scenario("join_group", 5)
async def an_instance_of_nobody_with_an_id(s: Scene) -> None:
    await s.stable()
    await s.join("b", s.v, group_instance_id="i", member_id="stranger")


@scenario("join_group")
async def a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit(7)
    await s.join("a", s.v)


@scenario("join_group")
async def metadata_that_cannot_be_read_in_a_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.join("b", s.v, protocols=UNREADABLE)


@scenario("join_group")
async def another_protocol_type_in_a_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.join("b", s.v, protocol_type="connect", protocols=CONNECT)


# SyncGroup


@scenario("sync_group")
async def the_leader_gets_what_it_assigns(s: Scene) -> None:
    await s.join()
    shares = [{"member_id": s.ids["a"], "assignment": b"all"}]
    await s.ask("sync_group", s.v, assignments=shares, protocol_type="consumer", protocol_name="range", **s.who())


@scenario("sync_group")
async def a_member_syncs_again(s: Scene) -> None:
    await s.stable()
    await s.ask("sync_group", s.v, assignments=[], protocol_type="consumer", protocol_name="range", **s.who())


@scenario("sync_group")
async def sync_of_nobody(s: Scene) -> None:
    await s.stable()
    await s.ask("sync_group", s.v, assignments=[], **s.who("stranger"))


@scenario("sync_group")
async def sync_of_another_generation(s: Scene) -> None:
    await s.stable()
    for number in (s.generation - 1, s.generation + 1):
        await s.ask("sync_group", s.v, assignments=[], **s.who(generation_id=number))


@scenario("sync_group")
async def sync_in_a_group_that_does_not_exist(s: Scene) -> None:
    await s.ask("sync_group", s.v, assignments=[], **s.who("stranger"))
    await s.ask("sync_group", s.v, assignments=[], group_id="", **s.who("stranger"))


@scenario("sync_group")
async def sync_in_a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit(7)
    await s.ask("sync_group", s.v, assignments=[], **s.who("stranger"))


@scenario("sync_group", 5)
async def sync_of_another_protocol(s: Scene) -> None:
    await s.stable()
    await s.ask("sync_group", s.v, assignments=[], protocol_type="connect", protocol_name="range", **s.who())
    await s.ask("sync_group", s.v, assignments=[], protocol_type="consumer", protocol_name="other", **s.who())
    await s.ask("sync_group", s.v, assignments=[], **s.who())


@scenario("sync_group", 3)
async def sync_of_a_static_member_by_another_id(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    await s.ask("sync_group", s.v, assignments=[], **s.who("stranger", group_instance_id="i"))
    await s.ask("sync_group", s.v, assignments=[], **s.who("a", group_instance_id="j"))


@scenario("sync_group")
async def sync_while_the_group_waits_for_members(s: Scene) -> None:
    received = await s.rebalancing()
    await s.ask("sync_group", s.v, assignments=[], **s.who())
    await s.join("a")
    await received()


@scenario("sync_group")
async def sync_in_a_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.ask("sync_group", s.v, assignments=[], **s.who())
    await s.ask("sync_group", s.v, assignments=[], **s.who("stranger"))


# Heartbeat


@scenario("heartbeat")
async def heartbeats_of_a_member(s: Scene) -> None:
    await s.join()
    await s.ask("heartbeat", s.v, **s.who())
    await s.stable()
    await s.ask("heartbeat", s.v, **s.who())


@scenario("heartbeat")
async def heartbeat_of_nobody(s: Scene) -> None:
    await s.ask("heartbeat", s.v, **s.who("stranger"))
    await s.ask("heartbeat", s.v, group_id="", **s.who("stranger"))
    await s.stable()
    await s.ask("heartbeat", s.v, **s.who("stranger"))


@scenario("heartbeat")
async def heartbeat_in_a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit(7)
    await s.ask("heartbeat", s.v, **s.who("stranger"))
    await s.ask("heartbeat", s.v, **s.who("", generation_id=-1))


@scenario("heartbeat")
async def heartbeat_of_another_generation(s: Scene) -> None:
    await s.stable()
    for number in (s.generation - 1, s.generation + 1, -1):
        await s.ask("heartbeat", s.v, **s.who(generation_id=number))


@scenario("heartbeat")
async def heartbeat_while_the_group_waits_for_members(s: Scene) -> None:
    received = await s.rebalancing()
    await s.ask("heartbeat", s.v, **s.who())
    await s.join("a")
    await received()


@scenario("heartbeat", 3)
async def heartbeat_of_a_static_member_by_another_id(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    for name, instance in (("a", "i"), ("stranger", "i"), ("a", "j"), ("stranger", "j")):
        await s.ask("heartbeat", s.v, **s.who(name, group_instance_id=instance))


@scenario("heartbeat")
async def heartbeat_in_a_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.ask("heartbeat", s.v, **s.who())
    await s.ask("heartbeat", s.v, **s.who("stranger"))


# LeaveGroup


def leaving(s: Scene, *members: tuple[str, str | None]) -> dict[str, object]:
    """Names, and instance ids, of members that leave; below version 3 there is one."""
    entries = [{"member_id": s.ids.get(name, name), "group_instance_id": instance} for name, instance in members]
    return {"member_id": entries[0]["member_id"], "members": entries}


@scenario("leave_group")
async def the_last_member_leaves(s: Scene) -> None:
    await s.stable()
    await s.ask("leave_group", s.v, **leaving(s, ("a", None)))
    await s.ask("leave_group", s.v, **leaving(s, ("a", None)))
    await s.ask("describe_groups", 5, groups=[s.group])


@scenario("leave_group")
async def nobody_leaves(s: Scene) -> None:
    await s.ask("leave_group", s.v, **leaving(s, ("stranger", None)))
    await s.ask("leave_group", s.v, group_id="", **leaving(s, ("stranger", None)))
    await s.stable()
    await s.ask("leave_group", s.v, **leaving(s, ("stranger", None)))
    await s.ask("leave_group", s.v, **leaving(s, ("", None)))


@scenario("leave_group")
async def an_id_that_has_not_joined_leaves(s: Scene) -> None:
    s.ids["a"] = (await s.ask("join_group", 5, **s.joining("a"))).member_id
    await s.ask("leave_group", s.v, **leaving(s, ("a", None)))
    await s.ask("describe_groups", 5, groups=[s.group])


@scenario("leave_group", 3)
async def a_static_member_leaves(s: Scene) -> None:
    for name, instance in (("stranger", "i"), ("a", "j"), ("", "j"), ("", "i")):
        await s.stable("a", group_instance_id="i")
        await s.ask("leave_group", s.v, **leaving(s, (name, instance)))


@scenario("leave_group", 3)
async def several_leave_at_once(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    await s.ask("leave_group", s.v, **leaving(s, ("stranger", None), ("", "j"), ("a", "i"), ("a", None)))
    await s.ask("leave_group", s.v, members=[])


@scenario("leave_group")
async def a_consumer_leaves(s: Scene) -> None:
    await s.beat()
    await s.ask("leave_group", s.v, **leaving(s, ("stranger", None)))
    await s.ask("leave_group", s.v, **leaving(s, ("a", None)))
    await s.ask("consumer_group_describe", 1, group_ids=[s.group])


@scenario("leave_group", 3)
async def a_static_consumer_leaves(s: Scene) -> None:
    for name, instance in (("stranger", "i"), ("a", "j"), ("", "j"), ("", "i")):
        await s.beat(instance_id="i")
        await s.ask("leave_group", s.v, **leaving(s, (name, instance)))


# OffsetCommit


@scenario("offset_commit")
async def commit_of_nobody(s: Scene) -> None:
    await s.commit()
    await s.ask("offset_fetch", 7, topics=None)
    await s.ask("describe_groups", 5, groups=[s.group])


@scenario("offset_commit")
async def commit_of_nobody_in_a_group_with_members(s: Scene) -> None:
    await s.stable()
    await s.commit()
    await s.commit(member_id="stranger")


@scenario("offset_commit")
async def commit_of_a_member(s: Scene) -> None:
    await s.join()
    await s.commit(**s.who())
    await s.stable()
    await s.commit(**s.who(), partitions={"orders": [0, 1], "refunds": [0]})
    await s.ask("offset_fetch", 7, topics=None)


@scenario("offset_commit")
async def commit_of_another_generation(s: Scene) -> None:
    await s.stable()
    for number in (s.generation - 1, s.generation + 1):
        await s.commit(**s.who(generation_id_or_member_epoch=number))


@scenario("offset_commit")
async def commit_with_a_generation_in_a_group_that_does_not_exist(s: Scene) -> None:
    await s.commit(**s.who("stranger", generation_id_or_member_epoch=1))


@scenario("offset_commit")
async def commit_with_a_generation_in_a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit()
    await s.commit(**s.who("stranger", generation_id_or_member_epoch=1))
    await s.commit(member_id="stranger")


@scenario("offset_commit")
async def commit_without_a_group_id(s: Scene) -> None:
    await s.commit(group_id="")
    await s.ask("delete_groups", 2, groups_names=[""])


@scenario("offset_commit")
async def commit_of_what_does_not_exist(s: Scene) -> None:
    await s.commit(partitions={"orders": [0, 9], UNKNOWN_TOPIC: [0]})
    await s.commit(partitions={UNKNOWN_TOPIC: [0]})
    await s.commit(partitions={})


@scenario("offset_commit")
async def commit_of_what_does_not_exist_by_nobody(s: Scene) -> None:
    await s.stable()
    await s.commit(partitions={"orders": [0], UNKNOWN_TOPIC: [0]}, member_id="stranger")


@scenario("offset_commit")
async def commit_of_too_much_metadata(s: Scene) -> None:
    await s.commit(metadata=LONG)
    await s.ask("offset_fetch", 7, topics=None)


@scenario("offset_commit")
async def commit_while_the_group_waits_for_members(s: Scene) -> None:
    received = await s.rebalancing()
    await s.commit(**s.who())
    await s.join("a")
    await received()
    await s.commit(**s.who())


@scenario("offset_commit", 7)
async def commit_of_a_static_member_by_another_id(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    for name, instance in (("a", "i"), ("stranger", "i"), ("a", "j")):
        await s.commit(**s.who(name, group_instance_id=instance))


@scenario("offset_commit", 9)
async def commit_of_a_consumer(s: Scene) -> None:
    await s.beat()
    await s.commit(**s.who())
    await s.commit(**s.who("stranger"))
    await s.commit(**s.who(generation_id_or_member_epoch=s.generation + 1))
    await s.commit()


@scenario("offset_commit")
async def commit_in_an_empty_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.beat(epoch=-1)
    await s.commit()


# OffsetFetch


@scenario("offset_fetch")
async def fetch_of_what_was_committed(s: Scene) -> None:
    await s.commit(7, partitions={"orders": [0, 1]})
    await s.fetch({"orders": [0, 2], "refunds": [0]})


@scenario("offset_fetch", 2)
async def fetch_of_everything(s: Scene) -> None:
    await s.fetch(None)
    await s.commit(7, partitions={"orders": [0, 1], "refunds": [0]})
    await s.fetch(None)


@scenario("offset_fetch")
async def fetch_of_nothing(s: Scene) -> None:
    await s.commit(7)
    await s.fetch({})
    await s.fetch({"orders": []})


@scenario("offset_fetch")
async def fetch_in_a_group_that_does_not_exist(s: Scene) -> None:
    await s.fetch({"orders": [0]})


@scenario("offset_fetch")
async def fetch_without_a_group_id(s: Scene) -> None:
    await s.commit(7, group_id="")
    await s.fetch({"orders": [0]}, group_id="")
    await s.ask("delete_groups", 2, groups_names=[""])


@scenario("offset_fetch")
async def fetch_of_what_does_not_exist(s: Scene) -> None:
    await s.commit(7)
    await s.fetch({UNKNOWN_TOPIC: [0], "orders": [9]})


@scenario("offset_fetch", 7)
async def fetch_of_what_is_stable(s: Scene) -> None:
    await s.commit(7)
    await s.fetch({"orders": [0, 1]}, require_stable=True)


@scenario("offset_fetch", 8)
async def fetch_of_several_groups(s: Scene) -> None:
    await s.commit(7)
    await s.commit(7, group_id=s.other, partitions={"refunds": [0]})
    asked = [
        {"group_id": s.group, "topics": s.topics("offset_fetch", {"orders": [0]}), "member_epoch": -1},
        {"group_id": s.other, "topics": None, "member_epoch": -1},
        {"group_id": f"{s.group}-3", "topics": None, "member_epoch": -1},
    ]
    await s.ask("offset_fetch", s.v, groups=asked[:2])
    await s.ask("offset_fetch", s.v, groups=[*asked[:2], {**asked[2], "group_id": s.other}])


@scenario("offset_fetch", 9)
async def fetch_of_a_consumer(s: Scene) -> None:
    await s.beat()
    for number in (s.generation, s.generation + 1, -1):
        await s.fetch({"orders": [0]}, member_id=s.ids["a"], member_epoch=number)
    await s.fetch({"orders": [0]}, member_id="stranger", member_epoch=s.generation)
    await s.fetch(None, member_id="stranger", member_epoch=s.generation)


@scenario("offset_fetch", 9)
async def fetch_of_a_member_of_a_classic_group(s: Scene) -> None:
    await s.stable()
    await s.fetch({"orders": [0]}, member_id=s.ids["a"], member_epoch=s.generation)
    await s.fetch({"orders": [0]}, member_id="stranger", member_epoch=s.generation + 5)


# OffsetDelete


@scenario("offset_delete")
async def deletion_of_what_was_committed(s: Scene) -> None:
    await s.commit(7, partitions={"orders": [0, 1]})
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {"orders": [0, 2], "refunds": [0]}))
    await s.ask("offset_fetch", 7, topics=None)


@scenario("offset_delete")
async def deletion_of_offsets_of_what_does_not_exist(s: Scene) -> None:
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {"orders": [0]}))
    await s.ask("offset_delete", 0, group_id="", topics=s.topics("offset_delete", {"orders": [0]}))
    await s.commit(7)
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {UNKNOWN_TOPIC: [0], "orders": [9]}))
    await s.ask("offset_delete", 0, topics=[])


@scenario("offset_delete")
async def deletion_of_offsets_of_a_subscribed_topic(s: Scene) -> None:
    await s.stable()
    await s.commit(7, **s.who(), partitions={"orders": [0], "refunds": [0]})
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {"orders": [0], "refunds": [0]}))
    await s.ask("offset_fetch", 7, topics=None)


@scenario("offset_delete")
async def deletion_of_offsets_of_a_topic_that_a_consumer_reads(s: Scene) -> None:
    await s.beat()
    await s.commit(9, **s.who(), partitions={"orders": [0], "refunds": [0]})
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {"orders": [0], "refunds": [0]}))


@scenario("offset_delete")
async def deletion_of_offsets_of_a_group_that_is_no_consumer(s: Scene) -> None:
    await s.stable(protocol_type="connect", protocols=CONNECT)
    await s.commit(7, **s.who())
    await s.ask("offset_delete", 0, topics=s.topics("offset_delete", {"orders": [0]}))


# DeleteGroups


@scenario("delete_groups")
async def deletion_of_an_empty_group(s: Scene) -> None:
    await s.commit(7)
    await s.ask("delete_groups", s.v, groups_names=[s.group])
    await s.ask("delete_groups", s.v, groups_names=[s.group])
    await s.ask("offset_fetch", 7, topics=None)


@scenario("delete_groups")
async def deletion_of_groups_that_cannot_be(s: Scene) -> None:
    await s.stable()
    await s.ask("delete_groups", s.v, groups_names=[s.group, s.other, ""])
    await s.ask("delete_groups", s.v, groups_names=[])


@scenario("delete_groups")
async def deletion_of_a_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.ask("delete_groups", s.v, groups_names=[s.group])
    await s.beat(epoch=-1)
    await s.ask("delete_groups", s.v, groups_names=[s.group])
    await s.ask("consumer_group_describe", 1, group_ids=[s.group])


# ListGroups


@scenario("list_groups")
async def a_list_of_groups(s: Scene) -> None:
    await s.ask("list_groups", s.v)
    await s.stable()
    await s.commit(7, group_id=s.other)
    await s.ask("list_groups", s.v)


@scenario("list_groups", 4)
async def a_list_of_groups_by_state(s: Scene) -> None:
    await s.stable()
    await s.commit(7, group_id=s.other)
    for states in (["Stable"], ["stable", "EMPTY"], ["PreparingRebalance"], ["NoSuchState"], ["NoSuchState", "Empty"]):
        await s.ask("list_groups", s.v, states_filter=states)


@scenario("list_groups", 4)
async def a_list_of_consumer_groups_by_state(s: Scene) -> None:
    await s.beat(topic_partitions=[])
    for states in (["Stable"], ["Reconciling"], ["reconciling", "assigning"], ["Empty"]):
        await s.ask("list_groups", s.v, states_filter=states)
    await s.beat(epoch=-1)
    await s.ask("list_groups", s.v, states_filter=["Empty"])


@scenario("list_groups", 5)
async def a_list_of_groups_by_type(s: Scene) -> None:
    await s.beat()
    await s.commit(7, group_id=s.other)
    for types in (["consumer"], ["classic"], ["Consumer", "CLASSIC"], ["none-such"], ["share"], ["streams"]):
        await s.ask("list_groups", s.v, types_filter=types)
    await s.ask("list_groups", s.v, types_filter=["classic"], states_filter=["Stable"])


# DescribeGroups


@scenario("describe_groups")
async def a_description_of_nothing(s: Scene) -> None:
    await s.ask("describe_groups", s.v, groups=[s.group])
    await s.ask("describe_groups", s.v, groups=[""])
    await s.ask("describe_groups", s.v, groups=[])


@scenario("describe_groups")
async def a_description_of_a_group(s: Scene) -> None:
    await s.join()
    await s.ask("describe_groups", s.v, groups=[s.group])
    await s.stable()
    await s.ask("describe_groups", s.v, groups=[s.group, s.other])


@scenario("describe_groups")
async def a_description_of_a_static_member(s: Scene) -> None:
    await s.stable("a", group_instance_id="i")
    await s.ask("describe_groups", s.v, groups=[s.group])


@scenario("describe_groups")
async def a_description_of_a_group_that_waits_for_members(s: Scene) -> None:
    received = await s.rebalancing()
    await s.ask("describe_groups", s.v, groups=[s.group])
    await s.join("a")
    await received()


@scenario("describe_groups")
async def a_description_of_a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit(7)
    await s.ask("describe_groups", s.v, groups=[s.group])


@scenario("describe_groups")
async def a_description_of_a_consumer_group(s: Scene) -> None:
    await s.beat()
    await s.ask("describe_groups", s.v, groups=[s.group])


# ConsumerGroupHeartbeat


@scenario("consumer_group_heartbeat")
async def a_consumer_joins_and_leaves(s: Scene) -> None:
    await s.beat("a", s.v)
    await s.beat("a", s.v, s.generation)
    await s.beat("a", s.v, -1)
    await s.beat("a", s.v, s.generation)
    await s.ask("consumer_group_describe", 1, group_ids=[s.group])


@scenario("consumer_group_heartbeat")
async def two_consumers(s: Scene) -> None:
    first = (await s.beat("a", s.v)).assignment["topic_partitions"]
    await s.beat("b", s.v)
    given = await s.beat("a", s.v, s.generation - 1, topic_partitions=first)
    await s.beat("a", s.v, given.member_epoch, topic_partitions=given.assignment["topic_partitions"])
    await s.beat("b", s.v, s.generation)
    await s.ask("consumer_group_describe", 1, group_ids=[s.group])


@scenario("consumer_group_heartbeat")
async def a_consumer_that_is_not_known(s: Scene) -> None:
    await s.beat("a", s.v, 1)
    await s.beat("a", s.v, -1)
    await s.beat("a", s.v)
    await s.beat("b", s.v, s.generation)
    await s.beat("b", s.v, -1)


@scenario("consumer_group_heartbeat")
async def a_consumer_of_another_epoch(s: Scene) -> None:
    await s.beat("a", s.v)
    await s.beat("a", s.v, s.generation + 1)
    await s.beat("b", s.v)
    await s.beat("a", s.v, s.generation + 5)


@scenario("consumer_group_heartbeat")
async def a_consumer_that_says_too_little(s: Scene) -> None:
    await s.beat("a", s.v, group_id="")
    await s.beat("a", s.v, member_id="")
    await s.beat("a", s.v, 1, member_id="")
    await s.beat("a", s.v, rebalance_timeout=-1)
    await s.beat("a", s.v, topic_partitions=None)
    await s.beat("a", s.v, topic_partitions=[{"topic_id": s.place.topics["orders"], "partitions": [0]}])
    await s.beat("a", s.v, subscribed_topic_names=None)
    await s.beat("a", s.v, subscribed_topic_names=[])
    await s.beat("b", s.v, -3)
    await s.beat("b", s.v, instance_id="")
    await s.beat("b", s.v, rack_id="")


@scenario("consumer_group_heartbeat")
async def a_consumer_that_leaves_without_an_instance(s: Scene) -> None:
    await s.beat("a", s.v)
    await s.beat("a", s.v, -2)
    await s.beat("a", s.v, -2, instance_id="i")


@scenario("consumer_group_heartbeat")
async def an_assignor_that_does_not_exist(s: Scene) -> None:
    await s.beat("a", s.v, server_assignor="none-such")
    await s.beat("a", s.v, server_assignor="range")


@scenario("consumer_group_heartbeat")
async def a_consumer_of_a_topic_that_does_not_exist(s: Scene) -> None:
    await s.beat("a", s.v, subscribed_topic_names=[UNKNOWN_TOPIC])
    await s.beat("a", s.v, s.generation, subscribed_topic_names=[UNKNOWN_TOPIC, "refunds"])


@scenario("consumer_group_heartbeat")
async def a_static_consumer_that_starts_again(s: Scene) -> None:
    await s.beat("a", s.v, instance_id="i")
    await s.beat("b", s.v, instance_id="i")
    await s.beat("a", s.v, -2, instance_id="i")
    await s.beat("b", s.v, instance_id="i")
    await s.beat("a", s.v, s.generation, instance_id="i")
    await s.ask("consumer_group_describe", 1, group_ids=[s.group])


@scenario("consumer_group_heartbeat")
async def a_static_consumer_by_another_id(s: Scene) -> None:
    await s.beat("a", s.v, instance_id="i")
    await s.beat("b", s.v, s.generation, instance_id="i")
    await s.beat("a", s.v, s.generation, instance_id="j")
    await s.beat("b", s.v, -1, instance_id="i")


@scenario("consumer_group_heartbeat")
async def a_consumer_in_a_group_of_the_classic_protocol(s: Scene) -> None:
    await s.stable(protocol_type="connect", protocols=CONNECT)
    await s.beat("b", s.v)
    await s.beat("b", s.v, 1)


@scenario("consumer_group_heartbeat")
async def a_consumer_in_a_group_that_has_only_offsets(s: Scene) -> None:
    await s.commit(7)
    await s.beat("a", s.v)
    await s.ask("list_groups", 5)


@scenario("consumer_group_heartbeat", 1)
async def an_expression_that_cannot_be_read(s: Scene) -> None:
    await s.beat("a", s.v, subscribed_topic_names=None, subscribed_topic_regex="(")
    await s.beat("a", s.v, subscribed_topic_names=None, subscribed_topic_regex="")


# ConsumerGroupDescribe


@scenario("consumer_group_describe")
async def a_description_of_no_consumer_group(s: Scene) -> None:
    await s.ask("consumer_group_describe", s.v, group_ids=[s.group])
    await s.ask("consumer_group_describe", s.v, group_ids=[""])
    await s.stable()
    await s.ask("consumer_group_describe", s.v, group_ids=[s.group, s.other])
    await s.ask("consumer_group_describe", s.v, group_ids=[])


@scenario("consumer_group_describe")
async def a_description_of_consumers(s: Scene) -> None:
    await s.beat("a", instance_id="i", rack_id="r")
    await s.ask("consumer_group_describe", s.v, group_ids=[s.group])
    await s.beat("b", subscribed_topic_names=["refunds"])
    await s.ask("consumer_group_describe", s.v, group_ids=[s.group])
    await s.beat("b", epoch=-1)
    await s.beat("a", epoch=-2, instance_id="i")
    await s.ask("consumer_group_describe", s.v, group_ids=[s.group])
    await s.beat("a", epoch=-1, instance_id="i")
    await s.ask("consumer_group_describe", s.v, group_ids=[s.group])


# TxnOffsetCommit


@scenario("txn_offset_commit")
async def pending_offsets_of_nobody(s: Scene) -> None:
    await s.begin()
    await s.pend()
    await s.ask("offset_fetch", 7, topics=s.topics("offset_fetch", {"orders": [0, 1]}), require_stable=True)
    await s.ask("end_txn", 3, committed=False, **s.producer)


@scenario("txn_offset_commit")
async def pending_offsets_of_what_does_not_exist(s: Scene) -> None:
    await s.begin()
    await s.pend(partitions={"orders": [0, 9], UNKNOWN_TOPIC: [0]})
    await s.pend(metadata=LONG)


@scenario("txn_offset_commit")
async def pending_offsets_without_a_group_id(s: Scene) -> None:
    await s.begin()
    await s.pend(group_id="")


@scenario("txn_offset_commit", 3)
async def pending_offsets_of_a_member(s: Scene) -> None:
    await s.begin()
    await s.pend(member_id="stranger", generation_id=1)
    await s.stable()
    await s.pend(**s.who())
    await s.pend(**s.who("stranger"))
    await s.pend(**s.who(generation_id=s.generation + 1))
    await s.pend(**s.who(group_instance_id="i"))
    await s.pend()


@scenario("txn_offset_commit", 3)
async def pending_offsets_of_a_consumer(s: Scene) -> None:
    await s.begin()
    await s.beat()
    await s.pend(**s.who())
    await s.pend(**s.who("stranger"))
    await s.pend(**s.who(generation_id=s.generation + 1))
    await s.pend()


# FindCoordinator


@scenario("find_coordinator")
async def the_coordinator_of_a_group(s: Scene) -> None:
    await s.ask("find_coordinator", s.v, key=s.group, key_type=0, coordinator_keys=[s.group, s.other])


@scenario("find_coordinator", 1)
async def the_coordinator_of_what_does_not_exist(s: Scene) -> None:
    await s.ask("find_coordinator", s.v, key=s.group, key_type=1, coordinator_keys=[s.group])
    await s.ask("find_coordinator", s.v, key=s.group, key_type=9, coordinator_keys=[s.group])
