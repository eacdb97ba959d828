"""A regular expression matches what its member may describe, whatever others may: consumer.md 4.6, and what differs."""

from __future__ import annotations

from groups.core.consumer.target import LEAST_PAUSE_MS, RESOLUTION_LOST_AFTER_MS
from groups.core.model.commands import ApplyRegexResolution
from groups.core.model.types import UNLIMITED, GroupConfig, TopicRights
from kcoord.protocol.errors import Error
from tests.groups.core.consumer.clients import Client, assert_complete, assert_permitted, is_settled
from tests.groups.core.consumer.world import GROUP, World

NO_BAR = TopicRights("no bar", lambda name: name != "bar")
ONLY_BAR = TopicRights("only bar", lambda name: name == "bar")
ALL_OF_FOO = {"foo": [0, 1, 2, 3, 4, 5]}


def world() -> World:
    made = World(config=GroupConfig(consumer_session_timeout_ms=10_000_000))
    made.set_topics(foo=6, bar=2)
    return made


def join(made: World, member_id: str, *rights: TopicRights, regex: str = ".*") -> None:
    fields = {"rights": rights[0]} if rights else {}
    assert made.join(member_id, subscribed_topic_regex=regex, **fields).error is Error.NONE


def resolve_all(made: World) -> None:
    while made.resolutions:
        made.resolve_regexes()


def test_unlimited_rights_are_those_without_a_key() -> None:
    """Members of the classic protocol, and those without an expression, have them too."""
    made = world()
    join(made, "m1", UNLIMITED)
    assert made.member("m1").topic_rights == ""
    assert [asked.rights.key for asked in made.resolutions] == [""]


def test_differs_from_kafka_in_resolving_for_each_members_rights() -> None:
    made = world()
    join(made, "m1")
    join(made, "m2", NO_BAR)
    assert [asked.rights.key for asked in made.resolutions] == ["", "no bar"]
    assert set(made.consumer.regex_jobs) == {"", "no bar"}
    resolve_all(made)
    clients = [Client(made, "m1", (), ".*", epoch=1), Client(made, "m2", (), ".*", epoch=1, rights=NO_BAR)]
    for client in clients * 4:
        client.beat()
    assert is_settled(made, clients)
    assert_complete(made, clients)
    assert_permitted(made, clients)
    assert not made.consumer.homogeneous


def test_what_nobody_may_describe_is_nobodys() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    resolve_all(made)
    assert made.heartbeat("m1", 1, rights=NO_BAR).assignment == ALL_OF_FOO
    assert "bar" not in made.consumer.subscribed_topics()


def test_members_with_equal_rights_share_a_resolution() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    join(made, "m2", NO_BAR)
    assert len(made.resolutions) == 1
    resolve_all(made)
    assert list(made.consumer.resolutions) == ["no bar"]
    assert made.consumer.homogeneous


def test_rights_that_are_withdrawn_take_their_topics_with_the_next_heartbeat() -> None:
    made = world()
    join(made, "m1")
    resolve_all(made)
    made.heartbeat("m1", 1)
    assert made.heartbeat("m1", 2, rights=NO_BAR).assignment == ALL_OF_FOO
    assert made.consumer.subscription_of(made.consumer.members["m1"]) == {"foo"}
    assert list(made.consumer.resolutions) == ["no bar"]
    resolve_all(made)
    made.now += 1_000_000
    assert made.epochs == (3, 3), "what is resolved then is the same"


def test_rights_that_are_added_stop_nobody() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    resolve_all(made)
    made.heartbeat("m1", 1, rights=NO_BAR)
    told = made.heartbeat("m1", 2)
    assert told.assignment is None, "nothing is given up for more rights"
    assert made.epochs == (2, 2)
    assert [asked.rights.key for asked in made.resolutions] == [""]
    resolve_all(made)
    assert made.heartbeat("m1", 2).assignment == {"bar": [0, 1], **ALL_OF_FOO}


def test_rights_that_change_before_anything_is_resolved() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    made.heartbeat("m1", 1, rights=ONLY_BAR)
    assert [asked.rights.key for asked in made.resolutions] == ["no bar", "only bar"]
    resolve_all(made)
    assert made.heartbeat("m1", 1, rights=ONLY_BAR).assignment == {"bar": [0, 1]}


def test_nothing_is_left_of_rights_with_which_nothing_was_resolved() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    made.heartbeat("m1", 1, rights=ONLY_BAR)
    assert not made.consumer.resolutions
    join(made, "m2", ONLY_BAR)
    assert made.epochs[0] == 1, "who uses the same expression does not know what it matches either"


def test_a_resolution_is_of_the_expressions_of_members_with_the_callers_rights() -> None:
    made = world()
    join(made, "m1", regex="fo.*")
    join(made, "m2", NO_BAR, regex="b.*")
    assert [asked.patterns for asked in made.resolutions] == [frozenset({"fo.*"}), frozenset({"b.*"})]


def test_rights_with_which_others_have_resolved_it_hold_at_once() -> None:
    made = world()
    join(made, "m1")
    join(made, "m2", ONLY_BAR)
    resolve_all(made)
    before = made.consumer.resolutions["only bar"]
    made.heartbeat("m1", 1, rights=ONLY_BAR)
    assert made.consumer.resolutions["only bar"] == before
    assert made.consumer.subscription_of(made.consumer.members["m1"]) == {"bar"}
    assert not made.resolutions


def test_what_is_left_of_earlier_rights_is_resolved_soon() -> None:
    """Also where another expression was resolved with the new rights a moment ago."""
    made = world()
    join(made, "m1")
    join(made, "m2", ONLY_BAR, regex="b.*")
    join(made, "m3")
    resolve_all(made)
    others = made.consumer.resolutions[""]
    made.heartbeat("m1", 1, rights=ONLY_BAR)
    assert not made.resolutions, "the pause between two resolutions holds"
    bar = frozenset({"bar"})
    assert made.consumer.resolutions["only bar"].topics == {".*": bar, "b.*": bar}
    assert made.consumer.resolutions["only bar"].topics_version == -1
    assert made.consumer.resolutions[""] == others
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m2", 1, rights=ONLY_BAR)
    assert made.resolutions[0].patterns == frozenset({".*", "b.*"})


def test_only_who_has_rights_asks_for_their_resolution() -> None:
    made = world()
    join(made, "m1")
    join(made, "m2", NO_BAR)
    resolve_all(made)
    made.set_topics(later=1)
    made.now += LEAST_PAUSE_MS + 1
    made.heartbeat("m1", 1)
    assert [asked.rights.key for asked in made.resolutions] == [""]
    resolve_all(made)
    assert made.consumer.matched_by((".*", "no bar")) == {"foo"}
    made.heartbeat("m2", made.consumer.members["m2"].member_epoch, rights=NO_BAR)
    resolve_all(made)
    assert made.consumer.matched_by((".*", "no bar")) == {"foo", "later"}


def test_a_result_for_rights_that_nobody_has_any_more_leaves_no_trace() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    made.heartbeat("m1", -1)
    join(made, "m2")
    made.send(ApplyRegexResolution(GROUP, {".*": frozenset({"foo"})}, 1, made.now, "no bar"))
    assert not made.consumer.resolutions
    assert list(made.consumer.regex_jobs) == [""]


def test_jobs_that_got_lost_with_their_rights_are_forgotten() -> None:
    made = world()
    join(made, "m1", NO_BAR)
    made.resolutions.clear()
    made.now += RESOLUTION_LOST_AFTER_MS
    made.heartbeat("m1", 1)
    assert list(made.consumer.regex_jobs) == [""]


def test_a_member_without_an_expression_has_no_rights_to_remember() -> None:
    made = world()
    made.join("m1", "foo", rights=NO_BAR)
    before = made.consumer.members["m1"]
    made.heartbeat("m1", 1, rights=ONLY_BAR)
    assert made.consumer.members["m1"] is before
    assert before.topic_rights == ""
