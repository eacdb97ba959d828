"""What the sticky assignor keeps, and for whom."""

from __future__ import annotations

import pytest

from kcoord.assignors import MemberSubscription
from kcoord.assignors._java_order import in_java_map_order, java_hash
from tests.kcoord.assignors.groups import Group, member


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99_162_322), ("polygenelubricants", 0x80000000), ("\U0001f600", 1_772_899)],
)
def test_java_hash_is_that_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_the_order_of_a_java_map_depends_on_how_many_keys_there_are() -> None:
    few = [f"consumer{number}" for number in range(1, 4)]
    assert in_java_map_order(few) == ["consumer3", "consumer2", "consumer1"]
    letters = [chr(code) for code in range(ord("a"), ord("a") + 13)]
    # 'p' is in bucket 0 of 16; a thirteenth key makes it 32 buckets, and there it comes after 'a'.
    assert in_java_map_order(["a", "p"]) == ["p", "a"]
    assert in_java_map_order([*letters, "p"])[-1] == "p"


def test_the_members_that_a_java_leader_visits_first_keep_more() -> None:
    """Four partitions for three members: consumer2 comes before consumer1 in a Java map, and keeps both of its own."""
    topics = ("t1", "t2")
    members = (member("consumer1", topics, t1=[0], t2=[0]), member("consumer2", topics, t1=[1], t2=[1]))
    group = Group({"t1": 2, "t2": 2}, (*members, member("consumer3", topics)))
    assert group.assign("sticky") == {
        "consumer1": {"t1": [0]},
        "consumer2": {"t1": [1], "t2": [1]},
        "consumer3": {"t2": [0]},
    }


def test_a_member_gives_up_some_of_each_topic_rather_than_all_of_one() -> None:
    topics = ("t1", "t2")
    group = Group({"t1": 2, "t2": 2}, (member("c1", topics, t1=[0, 1], t2=[0, 1]), member("c2", topics)))
    assert group.assign("sticky") == {"c1": {"t1": [0], "t2": [0]}, "c2": {"t1": [1], "t2": [1]}}


def test_free_partitions_change_hands_before_any_that_is_owned_moves() -> None:
    """t1-0 and t2-1 are free. Given to the least loaded first they end where only a chain of two evens out."""
    members = (
        member("c0", ["t2"], t2=[1]),
        member("c1", ["t1", "t2"], t1=[0], t2=[2]),
        member("c2", ["t1", "t2"]),
        member("c3", ["t1"]),
    )
    after = Group({"t1": 2, "t2": 3}, members).assign("sticky")
    assert after == {"c0": {"t2": [1]}, "c1": {"t1": [0], "t2": [2]}, "c2": {"t2": [0]}, "c3": {"t1": [1]}}


def test_a_move_is_taken_back_rather_than_another_made_against_it() -> None:
    """On the way t1-2 moves from c1 to c2, then c2 has one too many: it gives back t1-2 and not another."""
    members = (
        member("c0", ["t2"]),
        member("c1", ["t1", "t2"], t1=[2, 4], t2=[0, 1, 2]),
        member("c2", ["t1"], t1=[1, 3]),
    )
    after = Group({"t1": 5, "t2": 3}, members).assign("sticky")
    assert after == {"c0": {"t2": [0, 1]}, "c1": {"t1": [2, 4], "t2": [2]}, "c2": {"t1": [0, 1, 3]}}


def test_what_a_member_may_not_keep_goes_to_others() -> None:
    members = (
        member("c0", ["t"], t=[0], gone=[0], other=[0]),
        MemberSubscription("c1", None, ["t", "other"], {"t": [7, -1]}, 1),
    )
    after = Group({"t": 1, "other": 1}, members).assign("sticky")
    assert after == {"c0": {"t": [0]}, "c1": {"other": [0]}}


def test_differs_from_kafka_what_two_claim_in_one_generation_is_nobodys_own() -> None:
    """Kafka lets whichever it visits last keep t-0 before it looks at what else that member has."""
    group = Group({"t": 3}, (member("c1", ["t"], t=[0, 1]), member("c2", ["t"], t=[0, 2]), member("c3", ["t"])))
    assert group.assign("sticky") == {"c1": {"t": [1]}, "c2": {"t": [2]}, "c3": {"t": [0]}}


def test_differs_from_kafka_user_data_does_not_say_who_owns_what() -> None:
    owned_in_user_data = b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\1\0\0\0\1"  # t-1, in generation 1
    first = MemberSubscription("c1", None, ["t"], user_data=owned_in_user_data)
    assert Group({"t": 2}, (first, MemberSubscription("c2", None, ["t"]))).assign("sticky") == {
        "c1": {"t": [0]},
        "c2": {"t": [1]},
    }
