"""Rules of tokens, what lists are filtered by, and the digest of both agree with a plain reading of the rules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kcoord.access.rights import Operation, Principal, Resource, Rule, Rules

texts = st.text("ab", max_size=3)
rules = st.tuples(
    st.sampled_from([operation.value for operation in Operation]),
    st.sampled_from([Resource.GROUP.value, Resource.TOPIC.value]),
    st.sampled_from(["literal", "prefix"]),
    texts,
)
NAMES = ["", *"ab", "aa", "ab", "ba", "bb", "aab", "aba", "bab", "abab", "c"]


def may_describe(given: list[Rule], name: str) -> bool:
    """Any operation on a topic lets it be described."""
    return any(
        resource == "topic" and (name == said if pattern == "literal" else name.startswith(said))
        for _, resource, pattern, said in given
    )


@given(st.lists(rules, max_size=6))
def test_what_is_seen_is_what_some_rule_allows(given: list[Rule]) -> None:
    principal = Principal(1, "t", Rules(given))
    visible = principal.visible(Resource.TOPIC)
    for name in NAMES:
        expected = may_describe(given, name)
        assert principal.may_topic(Operation.DESCRIBE, name) is expected
        assert (name in visible) is expected
    everything = any(rule[1:] == ("topic", "prefix", "") for rule in given)
    assert visible.unlimited is everything


@given(st.lists(rules, max_size=4), st.lists(rules, max_size=4))
def test_digests_are_equal_where_the_same_may_be_described(one: list[Rule], other: list[Rule]) -> None:
    keys = [Rules(given).key(Operation.DESCRIBE, Resource.TOPIC) for given in (one, other)]
    alike = all(may_describe(one, name) == may_describe(other, name) for name in _probes())
    assert (keys[0] == keys[1]) is alike
    assert keys[0] == Rules([*one, *reversed(one)]).key(Operation.DESCRIBE, Resource.TOPIC)


def _probes() -> list[str]:
    """All names that can tell two sets of rules apart: of the letters of the rules and one other, to one more."""
    found = [""]
    for _ in range(4):
        found += [name + letter for name in found for letter in "abc"]
    return sorted(set(found))
