"""Whatever rules a person has, also through groups of people, every door shows what a plain reading of them allows.

The doors are pages, counters, the search, the timeline, plans, the event stream and `/v1`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from frontend.live import seen_of
from frontend.ui.reads import Wanted, events_of
from frontend.ui.viewer import viewer
from kcoord.access.people import People
from kcoord.access.rights import Resource, digest
from kcoord.access.tokens import Rule
from kcoord.database.notifications import Changes
from kcoord.database.paging import Visible
from kcoord.models import AccessRule, ApiToken
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from tests.frontend.plan_seed import put_plan
from tests.frontend.seed import Seed, now_ms
from tests.frontend.test_group_labels import label

pytestmark = pytest.mark.whole("rules of all kinds at random; test_visibility has a viewer")

GROUPS = ("ab", "abc", "b", "ba", "c")
TOPICS = ("ab", "abd", "b", "cb")
"""Each has a `b`, for the search, or is `c`."""
NAMES = ("", "a", "ab", "abc", "b", "ba", "c")
BOX = {"headers": {"Kcoord-Search": "1"}}

rules = st.builds(
    Rule,
    st.sampled_from(["describe", "read", "kick", "admin"]),
    st.sampled_from(["group", "topic"]),
    st.sampled_from(["literal", "prefix"]),
    st.sampled_from(NAMES),
    st.sampled_from(["allow", "allow", "deny"]),
)
of_cluster = st.builds(
    Rule,
    st.sampled_from(["describe", "admin"]),
    st.just("cluster"),
    st.just("literal"),
    st.just("kafka-cluster"),
    st.sampled_from(["allow", "deny"]),
)
holders = st.lists(st.lists(st.one_of(rules, rules, rules, of_cluster), max_size=3), min_size=3, max_size=3)
"""The rules of an account, and of two groups of people that it is in."""


def is_about(rule: Rule, resource: str, name: str) -> bool:
    return rule.resource == resource and (
        name == rule.name if rule.pattern == "literal" else name.startswith(rule.name)
    )


def denied(held: Iterable[Rule], resource: str, name: str) -> bool:
    """Some rule denies to describe it."""
    return any(
        rule.effect == "deny" and rule.operation in ("describe", "admin") and is_about(rule, resource, name)
        for rule in held
    )


def described(held: list[Rule], resource: str, name: str) -> bool:
    """Some rule allows something with it, which includes to describe it, and none denies that."""
    allowed = any(rule.effect == "allow" and is_about(rule, resource, name) for rule in held)
    return allowed and not denied(held, resource, name)


@pytest.fixture
def world(client: Client, seed: Seed) -> Client:
    """Groups and topics of which each has a name of its own; every group has offsets on every topic."""
    seed.connection.execute("truncate auth_group cascade")
    for topic in TOPICS:
        seed.topic(topic, 1, [10])
    for place, name in enumerate(GROUPS):
        group = seed.group(name)
        seed.commit(group, {(topic, 0): 5 for topic in TOPICS})
        seed.members(group, [f"x{place}"], client_id=f"x{place}")
        label(seed, name, owner=f"x{place}")
        put_plan(seed.connection, name, made_at=now_ms())
        seed.event(name, "offsets_deleted", 1, topics=list(TOPICS))
    return client


NUMBERS = itertools.count()


def give(held: list[list[Rule]]) -> tuple[Any, str]:
    """A new account in two new groups of people, and a new token with all rules of the three; its secret."""
    number = next(NUMBERS)
    person = get_user_model().objects.create_user(f"mara-{number}")
    teams = [Group.objects.create(name=f"team-{number}-{index}") for index in (1, 2)]
    person.groups.set(teams)
    secret = f"kc_{number:040}"
    token = ApiToken.objects.create(name=f"token-{number}", digest=digest(secret), prefix="kc_", created_at=1)
    together = list(dict.fromkeys(rule for of_one in held for rule in of_one))
    rows = [("user", person, held[0]), ("group", teams[0], held[1]), ("group", teams[1], held[2])]
    for kind, holder, some in [*rows, ("token", token, together)]:
        AccessRule.objects.bulk_create(
            AccessRule(**{kind: holder}, operation=one.operation, resource=one.resource, pattern=one.pattern,
                       name=one.name, effect=one.effect)
            for one in dict.fromkeys(some)
        )  # fmt: skip
    return person, secret


def named(page: str, pattern: str) -> list[str]:
    return sorted(unescape(name) for name in re.findall(pattern, page))


def body(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def streamed(user_id: int) -> set[str | None]:
    """The groups that an event names in the stream of a person when all have changed."""

    async def read(runtime: Runtime) -> Visible:
        return (await runtime.get(People).principal(user_id)).visible(Resource.GROUP)

    return set(seen_of(Changes(frozenset(GROUPS)), bridge.call(read)).groups)


def timeline(user: object, group_id: str) -> list[list[str]]:
    """The topics of each event of a group that a person sees."""
    seen_by = viewer(user)
    found = bridge.call(lambda runtime: events_of(runtime.db, seen_by, group_id, Wanted()))
    return [list(event.detail["topics"]) for event in found.events]


ALL = Rule("admin", "group", "prefix", "")


@given(holders)
@example([[ALL, Rule("read", "topic", "prefix", "a")], [Rule("describe", "group", "prefix", "ab", "deny")], []])
@example(
    [[Rule("describe", "cluster", "literal", "kafka-cluster")], [Rule("admin", "group", "literal", "b", "deny")], []]
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_everything_shows_what_the_rules_allow(world: Client, held: list[list[Rule]]) -> None:
    person, secret = give(held)
    world.force_login(person)
    bearer = {"headers": {"Authorization": f"Bearer {secret}"}}
    together = [rule for of_one in held for rule in of_one]
    groups = [name for name in GROUPS if described(together, "group", name)]
    topics = [name for name in TOPICS if described(together, "topic", name)]
    by_cluster = described(together, "cluster", "kafka-cluster")
    listed = [name for name in GROUPS if not denied(together, "group", name)] if by_cluster else groups

    assert named(body(world, "/groups"), r'class="row-link" href="/groups/[^"]*">([^<]*)<') == listed
    assert named(body(world, "/topics"), r'class="row-link" href="/topics/[^"]*">([^<]*)<') == topics
    total = re.search(r'tally-count">([\d,]+)</span><span class="tally-name">Groups<', body(world, "/"))
    assert total is not None
    assert int(total[1]) == len(listed)
    box = world.get("/search", {"q": "b"}, **BOX).content.decode()  # type: ignore[arg-type]
    assert named(box, r'href="/groups/([^"/?]*)"') == [name for name in groups if "b" in name]
    assert named(box, r'href="/topics/([^"/?]*)"') == [name for name in topics if "b" in name]
    for kind, seen in (("groups", groups), ("topics", topics)):
        names = world.get("/search", {"q": "b"}, headers={"Kcoord-Search": kind}).json()
        assert sorted(names) == [name for name in seen if "b" in name]
    for kind, before in (("labels", "owner="), ("members", ""), ("clients", "")):
        names = world.get("/search", {"q": "x"}, headers={"Kcoord-Search": kind}).json()
        assert names == [f"{before}x{GROUPS.index(name)}" for name in groups]
    assert world.get("/search", {"q": "mara"}, headers={"Kcoord-Search": "holders"}).json() == []

    assert named(body(world, "/plans"), r'class="row-link" href="/groups/[^"]*">([^<]*)<') == groups
    assert named(body(world, "/timeline"), r'href="/groups/[^"/]*/history[^"]*">([^<]*)<') == groups
    assert streamed(person.pk) == set(groups)

    found = world.get("/v1/groups", **bearer).json()  # type: ignore[arg-type]
    assert sorted(one["group_id"] for one in found["groups"]) == listed
    found = world.get("/v1/topics", **bearer).json()  # type: ignore[arg-type]
    assert sorted(one["name"] for one in found["topics"]) == topics
    for name in GROUPS:
        assert world.get(f"/groups/{name}").status_code == (200 if name in groups else 404)
        assert timeline(person, name) == ([topics] if name in groups and topics else [])
        of_group = world.get(f"/v1/groups/{name}/lag", **bearer)  # type: ignore[arg-type]
        assert of_group.status_code == (200 if name in groups else 404)
        if name in groups:
            file = b"".join(world.get(f"/groups/{name}/offsets.csv")).decode()  # type: ignore[call-overload]
            assert [line.partition(",")[0] for line in file.splitlines()[1:]] == topics
            assert {one["topic"] for one in of_group.json()["topics"]} == set(topics)
