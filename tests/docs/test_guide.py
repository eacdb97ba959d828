"""docs/http-guide.md: its tables have every error that a member can get, and say what our own client does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from groups.api import endpoints
from groups.api.consumer import CONSUMER_HEARTBEAT
from kcoord.client.core.consumer_group import reactions as consumer
from kcoord.client.core.reactions import REACTIONS, Api, Reaction
from kcoord.door.http.serving import COMMON_ERRORS, Endpoint
from kcoord.protocol.errors import BY_CODE, Action, Error
from offsets.api.endpoints import COMMIT
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "http-guide.md").read_text(encoding="utf-8")
_NAMED = re.compile(r"\b([A-Z][A-Z_]+[A-Z]) \((-?\d+)\)")


@dataclass(frozen=True)
class Row:
    """A row of the table of a protocol."""

    errors: frozenset[Error]
    calls: frozenset[str]
    then: str


def rows(heading: str) -> list[Row]:
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return list(_rows(section))


def _rows(section: str) -> Iterator[Row]:
    errors: frozenset[Error] = frozenset()
    for answer, calls, _, then in re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", section, re.MULTILINE):
        if answer != "any of these":
            errors = frozenset(Error[name] for name, _ in _NAMED.findall(answer))
        yield Row(errors, frozenset(re.findall(r"\w+", calls)), then)


CONSUMER, CLASSIC = rows("The consumer protocol"), rows("The classic protocol")


def of(table: list[Row], call: str) -> dict[Error, str]:
    """What the table says to send next, by error of a call; the first row counts."""
    found: dict[Error, str] = {}
    for row in table:
        if row.calls & {call, "any"}:
            found = {**dict.fromkeys(row.errors, row.then), **found}
    return found


@pytest.mark.parametrize(("name", "code"), _NAMED.findall(PAGE))
def test_codes_are_right(name: str, code: str) -> None:
    assert BY_CODE[int(code)].name == name


@pytest.mark.parametrize(
    ("table", "call", "endpoint"),
    [
        (CONSUMER, "heartbeat", CONSUMER_HEARTBEAT),
        (CONSUMER + CLASSIC, "commit", COMMIT),
        (CLASSIC, "join", endpoints.JOIN),
        (CLASSIC, "sync", endpoints.SYNC),
        (CLASSIC, "heartbeat", endpoints.HEARTBEAT),
    ],
    ids=lambda value: value.operation_id if isinstance(value, Endpoint) else None,
)
def test_every_error_of_a_request_is_in_the_table(table: list[Row], call: str, endpoint: Endpoint) -> None:
    assert set(endpoint.errors) | set(COMMON_ERRORS) <= of(table, call).keys() | {Error.UNRELEASED_INSTANCE_ID}


def test_the_consumer_table_says_what_the_client_does() -> None:
    then = of(CONSUMER, "heartbeat")
    rejoins = {error for error, what in consumer.HEARTBEAT.items() if what is consumer.Reaction.REJOIN}
    assert {error for error, what in then.items() if what == "same id, 0"} == rejoins
    stops = {error for error, what in consumer.HEARTBEAT.items() if what is consumer.Reaction.FAIL}
    assert stops - {Error.UNRELEASED_INSTANCE_ID} <= {error for error, what in then.items() if what == "none"}
    retried = {error for error, what in consumer.COMMIT.items() if what is consumer.CommitReaction.RETRY}
    commit = of(CONSUMER, "commit")
    again = {error for error in retried if commit.get(error, "").startswith("same id")}
    assert retried - again == {Error.UNSTABLE_OFFSET_COMMIT}


def test_the_classic_table_says_what_the_client_does() -> None:
    for call, api in (("join", Api.JOIN), ("sync", Api.SYNC), ("heartbeat", Api.HEARTBEAT), ("commit", Api.COMMIT)):
        then = of(CLASSIC, call)
        for error, reaction in REACTIONS[api].items():
            if reaction is Reaction.FORGET_MEMBER:
                assert then[error] == '`""`', f"{call} {error.name}"
            elif reaction in (Reaction.FORGET_GENERATION, Reaction.REJOIN_AT_POLL, Reaction.REDISCOVER_AND_REJOIN):
                assert then[error].startswith("same id"), f"{call} {error.name}"
                assert error in (Error.REBALANCE_IN_PROGRESS,) or "generation" not in then[error], (
                    f"{call} {error.name}"
                )
            elif reaction is Reaction.FENCED:
                assert then[error] == "none"


def test_the_actions_are_all_there() -> None:
    table = PAGE.partition("| `action` |")[2].partition("\n\n")[0]
    first = " ".join(line.split(" | ")[0] for line in table.splitlines()[2:])
    assert set(re.findall(r"`(\w+)`", first)) == {action.value for action in Action}
