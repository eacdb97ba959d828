"""What a process remembers of tokens: refused ones too, not too many, and nothing once they change."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from kcoord.access import rights
from kcoord.access.rights import Access, Operation, Principal, digest
from kcoord.access.token_watch import TokenWatch
from kcoord.config import Config
from kcoord.database.notifications import CONFIG
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import ProtocolError
from tests.support.members import eventually
from tests.support.rounds import Rounds, counted_rounds

FOR_LONG = Config({"token.cache.ms": 600_000})
CREATE = """
with token as (
    insert into kcoord_apitoken (name, digest, prefix, created_at) values (%(name)s, %(digest)s, 'kc_', 0) returning id)
insert into kcoord_accessrule (token_id, operation, resource, pattern, name)
select id, 'read', 'group', 'prefix', '' from token
"""


class Process:
    """A process that believes what it knows for ten minutes. `told`: groups whose settings changed."""

    def __init__(self, runtime: Runtime, conninfo: str) -> None:
        self._conninfo = conninfo
        self.access = runtime.get(Access)
        self.told: list[str | None] = []
        runtime.notifications.on(CONFIG, self.told.append)

    async def change(self, statement: str, **parameters: object) -> None:
        """As another process does it; returns once this one has been told."""
        marker = str(len(self.told))
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            connection.execute(statement.encode(), parameters)
            connection.execute("select pg_notify(%s, %s)", (CONFIG, marker))
        await eventually(lambda: marker in self.told, "the notification")

    async def create(self, secret: str) -> None:
        await self.change(CREATE, name=secret, digest=digest(secret))

    async def outcome(self, secret: str) -> str:
        """The name of the token, or why it is refused."""
        try:
            return (await self.access.authenticate(secret)).name
        except ProtocolError as refusal:
            return str(refusal.detail).split(";")[0]


@pytest.fixture
async def process(database: str) -> AsyncIterator[Process]:
    runtime = Runtime(FOR_LONG, database)
    await runtime.start()
    await runtime.notifications.wait_listening()
    yield Process(runtime, database)
    await runtime.stop()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The digests that were looked up in the database."""
    found: list[str] = []
    look_up = Access._look_up

    async def counting(self: Access, key: str) -> tuple[Principal, float]:
        found.append(key)
        return await look_up(self, key)

    monkeypatch.setattr(Access, "_look_up", counting)
    return found


async def test_an_unknown_secret_is_looked_up_once(process: Process, asked: list[str]) -> None:
    assert [await process.outcome("made-up") for _ in range(3)] == ["unknown token"] * 3
    assert asked == [digest("made-up")]


async def test_an_expired_secret_is_looked_up_once(process: Process, asked: list[str]) -> None:
    await process.create("old")
    await process.change("update kcoord_apitoken set expires_at = 1")
    assert await process.outcome("old") == "this secret of token 'old' has expired"
    asked.clear()
    await process.outcome("old")
    assert asked == []


async def test_a_flood_of_made_up_secrets_evicts_no_token(
    process: Process, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "MAX_REFUSED", 3)
    await process.create("good")
    assert await process.outcome("good") == "good"
    for number in range(5):
        await process.outcome(f"made-up {number}")
    assert len(process.access._refused) == 3
    asked.clear()
    assert await process.outcome("good") == "good"
    assert await process.outcome("made-up 4") == "unknown token"
    assert asked == []
    await process.outcome("made-up 0")
    assert asked == [digest("made-up 0")]


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("delete from kcoord_accessrule; delete from kcoord_apitoken", "unknown token"),
        ("update kcoord_apitoken set expires_at = 1", "this secret of token 'one' has expired"),
        ("update kcoord_apitoken set digest = 'another'", "unknown token"),
        ("update kcoord_apitoken set name = 'renamed'", "renamed"),
        (
            "with owner as (insert into auth_user (username, password, is_active, is_superuser, is_staff, first_name,"
            " last_name, email, date_joined) values ('o', '', true, false, false, '', '', '', now()) returning id)"
            " update kcoord_apitoken set owner_id = owner.id from owner;"
            " update auth_user set is_active = false",
            "unknown token",
        ),
    ],
    ids=["deleted", "expired", "rotated", "renamed", "of a deactivated account"],
)
async def test_a_change_elsewhere_takes_effect_at_once(process: Process, statement: str, wanted: str) -> None:
    await process.create("one")
    assert await process.outcome("one") == "one"
    await process.change(statement)
    assert await process.outcome("one") == wanted


async def test_a_changed_rule_takes_effect_at_once(process: Process) -> None:
    await process.create("one")
    assert await process.outcome("one") == "one"
    await process.change("update kcoord_accessrule set name = 'only-'")
    assert not (await process.access.authenticate("one")).may_group(Operation.READ, "others")


async def test_a_token_that_was_refused_before_it_was_created_is_accepted(process: Process) -> None:
    assert await process.outcome("later") == "unknown token"
    await process.create("later")
    assert await process.outcome("later") == "later"


async def test_what_was_read_before_a_change_is_not_remembered(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is told while the answer is under way."""
    await process.create("one")
    assert await process.outcome("one") == "one"
    process.access.forget()
    row = process.access._db.row

    async def late(*arguments: object) -> object:
        found = await row(*arguments)  # type: ignore[arg-type]
        process.access.forget()
        return found

    monkeypatch.setattr(process.access._db, "row", late)
    assert await process.outcome("one") == "one"
    assert process.access.known(digest("one")) is None
    assert await process.outcome("made-up") == "unknown token"
    assert process.access._refused == {}


async def test_the_noted_use_of_a_token_is_no_change(process: Process, asked: list[str]) -> None:
    await process.create("one")
    assert await process.outcome("one") == "one"
    asked.clear()
    await process.change("update kcoord_apitoken set last_used_at = 5")
    assert await process.outcome("one") == "one"
    assert asked == []


class Held:
    """A connection with a token; it says in which round of the loop it was looked at."""

    secret = "held"

    def __init__(self, rounds: Rounds, looked: list[int]) -> None:
        self._rounds, self._looked = rounds, looked
        self.ended = ""

    @property
    def token(self) -> str:
        self._looked.append(self._rounds.now)
        return digest(self.secret)

    def token_ended(self, reason: str) -> None:
        self.ended = reason


async def test_connections_are_looked_at_in_several_rounds(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(off_loop, "SLICE_SECONDS", 0.0)
    looked: list[int] = []
    async with counted_rounds() as rounds:
        held = [Held(rounds, looked) for _ in range(20)]
        await TokenWatch(runtime, held)._look()
    assert len(looked) == len(set(looked)) == len(held)
    assert all(one.ended for one in held)  # nobody has created that token
