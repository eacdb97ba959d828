"""Rules, the filters of lists in Python and in SQL, and the digest of both agree with a plain reading of rules."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kcoord.access.rights import ALL_ALLOWED, FEW, Operation, Principal, Resource, Rule, Rules
from kcoord.database.paging import EVERYTHING, Visible

texts = st.text("ab", max_size=3)
OPERATIONS = [operation.value for operation in Operation]
allowing = st.tuples(
    st.sampled_from(OPERATIONS),
    st.sampled_from([Resource.GROUP.value, Resource.TOPIC.value]),
    st.sampled_from(["literal", "prefix"]),
    texts,
)
rules = st.one_of(
    allowing, st.builds(lambda rule, effect: (*rule, effect), allowing, st.sampled_from(["allow", "deny"]))
)
holders = st.lists(st.lists(rules, max_size=4), min_size=1, max_size=3)
"""The rules of an account and of the groups that it is in."""
NAMES = ["", *"ab", "aa", "ab", "ba", "bb", "aab", "aba", "bab", "abab", "c"]
SEES = """
select name from unnest(%(names)s::text[]) name
where kcoord_sees(name, %(visible_names)s, %(visible_prefixes)s, %(visible_denied)s, %(visible_denied_prefixes)s)
"""


def naive(given: Sequence[Rule], operation: str, resource: str, name: str) -> bool:
    """What the rules amount to, read one after the other."""
    allowed = False
    for rule in given:
        acts, kind, pattern, said = rule[:4]
        if kind != resource or not (name == said if pattern == "literal" else name.startswith(said)):
            continue
        if len(rule) == 5 and rule[4] == "deny":
            if acts in (operation, "admin"):
                return False
        elif acts in (operation, "admin") or operation == "describe":
            allowed = True
    return allowed


@pytest.fixture(scope="module")
def connection(worker_database: str) -> psycopg.Connection[tuple[str]]:
    return psycopg.connect(worker_database, autocommit=True)


@given(holders)
@example([[("read", "topic", "prefix", ""), ("read", "topic", "prefix", "a", "deny")]])
@example([[("read", "topic", "prefix", ""), ("describe", "topic", "prefix", "a", "deny")]])
@example([[("admin", "topic", "prefix", "")], [("admin", "topic", "literal", "ab", "deny")]])
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_seen_is_what_some_rule_allows_and_none_denies(
    connection: psycopg.Connection[tuple[str]], given: list[list[Rule]]
) -> None:
    together = [rule for of_holder in given for rule in of_holder]
    compiled = Rules(together)
    assert compiled.unlimited is all(
        naive(together, operation.value, kind.value, name)
        for operation in Operation
        for kind in Resource
        for name in _probes()
    )
    for operation in Operation:
        expected = {name for name in NAMES if naive(together, operation.value, "topic", name)}
        assert {name for name in NAMES if compiled.allows(operation, Resource.TOPIC, name)} == expected
        visible = compiled.visible(operation, Resource.TOPIC)
        assert {name for name in NAMES if name in visible} == expected
        found = connection.execute(SEES, {"names": NAMES, **visible.parameters()}).fetchall()
        assert {name for (name,) in found} == expected
        if visible.unlimited:
            assert all(naive(together, operation.value, "topic", name) for name in _probes())


letters = st.text("ab", min_size=3, max_size=7)
many = st.tuples(st.just("read"), st.just("topic"), st.just("prefix"), letters, st.sampled_from(["allow", "deny"]))


@given(st.lists(many, min_size=FEW, max_size=60, unique=True), st.lists(st.text("abc", max_size=9), min_size=10))
def test_many_prefixes_mean_the_same_as_few(given: list[Rule], names: list[str]) -> None:
    compiled = Rules(given)
    for name in names:
        expected = naive(given, "read", "topic", name)
        assert compiled.allows(Operation.READ, Resource.TOPIC, name) is expected


@given(st.lists(allowing, max_size=6))
def test_a_caller_sees_everything_if_some_rule_is_about_every_name(given: list[Rule]) -> None:
    visible = Principal(1, "t", Rules(given)).visible(Resource.TOPIC)
    assert visible.unlimited is any(rule[1:4] == ("topic", "prefix", "") for rule in given)


@given(st.lists(allowing, max_size=4), st.lists(allowing, max_size=4))
def test_digests_are_equal_where_the_same_may_be_described(one: list[Rule], other: list[Rule]) -> None:
    keys = [Rules(given).key(Operation.DESCRIBE, Resource.TOPIC) for given in (one, other)]
    alike = all(naive(one, "describe", "topic", name) == naive(other, "describe", "topic", name) for name in _probes())
    assert (keys[0] == keys[1]) is alike
    assert keys[0] == Rules([*one, *reversed(one)]).key(Operation.DESCRIBE, Resource.TOPIC)


@given(st.lists(rules, max_size=4), st.lists(rules, max_size=4))
def test_digests_differ_where_something_else_may_be_described(one: list[Rule], other: list[Rule]) -> None:
    keys = [Rules(given).key(Operation.DESCRIBE, Resource.TOPIC) for given in (one, other)]
    if keys[0] == keys[1]:
        for name in _probes():
            assert naive(one, "describe", "topic", name) == naive(other, "describe", "topic", name)


def test_a_rule_that_denies_an_operation_denies_no_other() -> None:
    """As in Kafka: denying `describe` leaves `read`."""
    compiled = Rules([("read", "group", "prefix", ""), ("describe", "group", "literal", "g", "deny")])
    assert compiled.allows(Operation.READ, Resource.GROUP, "g")
    assert not compiled.allows(Operation.DESCRIBE, Resource.GROUP, "g")
    assert compiled.allows(Operation.DESCRIBE, Resource.GROUP, "other")


def test_there_are_six_operations_and_reading_is_no_resetting() -> None:
    """Differs from Kafka: its Read of a group lets consumers reset offsets, which takes `alter-offsets` here."""
    assert OPERATIONS == ["read", "describe", "alter-offsets", "delete", "kick", "admin"]
    compiled = Rules([("read", "group", "prefix", "")])
    allowed = {operation for operation in Operation if compiled.allows(operation, Resource.GROUP, "g")}
    assert allowed == {Operation.READ, Operation.DESCRIBE}


def test_denying_admin_denies_everything() -> None:
    compiled = Rules([("read", "group", "prefix", ""), ("admin", "group", "prefix", "secret-", "deny")])
    assert not any(compiled.allows(operation, Resource.GROUP, "secret-1") for operation in Operation)
    assert compiled.allows(Operation.READ, Resource.GROUP, "open")


def test_the_filter_of_those_who_see_everything_is_empty() -> None:
    assert ALL_ALLOWED.unlimited
    assert ALL_ALLOWED.visible(Operation.DESCRIBE, Resource.GROUP) == EVERYTHING
    assert Visible(("a",), ("",)).unlimited
    assert not Visible((), ("",), ("a",)).unlimited


def test_the_filter_becomes_part_of_the_statement(database: str) -> None:
    """A function that Postgres called for each row would be slow, and the planner would know nothing of its rows."""
    explained = "explain (verbose, costs off) select name from groups_topic where " + SEES.partition("where ")[2]
    with psycopg.connect(database) as connection:
        found = "\n".join(
            line for (line,) in connection.execute(explained, Visible(("a", "b"), ("c",), ("d",), ("e",)).parameters())
        )
        everything = "\n".join(line for (line,) in connection.execute(explained, EVERYTHING.parameters()))
    assert "kcoord_sees" not in found
    assert "^@" in found, found
    assert "kcoord_sees" not in everything


def _probes() -> list[str]:
    """All names that can tell two sets of rules apart: of the letters of the rules and one other, to one more."""
    found = [""]
    for _ in range(4):
        found += [name + letter for name in found for letter in "abc"]
    return sorted(set(found))
