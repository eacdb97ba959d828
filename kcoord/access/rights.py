"""Who is calling, and what they may do.

Rules are operations on resources that are allowed or denied. The model is that of Kafka's ACLs: what no rule allows is
refused, and a rule that denies wins over all that allow. A caller that may read, alter, delete or kick may also
describe, unless describe is denied. A rule that denies denies its operation alone, except that of `admin`, which, like
Kafka's `All`, denies every operation.

Differs from Kafka: six operations take the place of Kafka's, and no rule is about a host or about every principal.

Bearer tokens are looked up by the SHA-256 of their secret and cached for a short time (`token.cache.ms`), those that
are refused as well. Postgres notifies every process when a token, a rule or an account changes, which empties the
cache; if that is lost the change takes effect at most that much later. An expiry takes effect at once.

Source: http-api.md 7; Kafka, `StandardAuthorizerData` (allow and deny, implied operations). The principals of people
are in `kcoord.access.people`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kcoord.database.notifications import TOKENS
from kcoord.database.paging import Visible
from kcoord.database.sql import queries
from kcoord.protocol.errors import Error, ProtocolError

if TYPE_CHECKING:
    from kcoord.process.runtime import Runtime
import json
from bisect import bisect_right
from collections.abc import Iterable


class Operation(str, Enum):
    """What a rule is about: something done with a resource."""

    READ = "read"
    DESCRIBE = "describe"
    ALTER_OFFSETS = "alter-offsets"
    DELETE = "delete"
    KICK = "kick"
    ADMIN = "admin"

    __hash__ = str.__hash__  # that of Enum is written in Python, and every request looks up its rules


class Resource(str, Enum):
    """The kind of thing that a rule is about."""

    GROUP = "group"
    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"

    __hash__ = str.__hash__


class Permission(Enum):
    """What an operation of the API takes: something done with the resource that a request names.

    Lists are filtered by it instead. The resource None stands for all of them.
    """

    def __init__(self, operation: Operation | None, resource: Resource | None) -> None:
        self.operation = operation
        self.resource = resource

    NOTHING = None, None
    READ_GROUP = Operation.READ, Resource.GROUP
    DESCRIBE_GROUP = Operation.DESCRIBE, Resource.GROUP
    ALTER_GROUP = Operation.ALTER_OFFSETS, Resource.GROUP
    DELETE_GROUP = Operation.DELETE, Resource.GROUP
    KICK_GROUP = Operation.KICK, Resource.GROUP
    ADMIN_GROUP = Operation.ADMIN, Resource.GROUP
    DESCRIBE_TOPIC = Operation.DESCRIBE, Resource.TOPIC
    ADMIN_TOPIC = Operation.ADMIN, Resource.TOPIC
    READ_TRANSACTIONAL_ID = Operation.READ, Resource.TRANSACTIONAL_ID
    DESCRIBE_CLUSTER = Operation.DESCRIBE, Resource.CLUSTER
    ADMIN_CLUSTER = Operation.ADMIN, Resource.CLUSTER
    ADMIN_EVERYTHING = Operation.ADMIN, None


_REFUSED = {
    Resource.GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    Resource.TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    Resource.TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    Resource.CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
}


class Effect(str, Enum):
    """What a rule does with the operation."""

    ALLOW = "allow"
    DENY = "deny"


CLUSTER_NAME = "kafka-cluster"
"""The name of the only cluster resource, as in Kafka."""

Rule = tuple[str, str, str, str] | tuple[str, str, str, str, str]
"""Operation, resource, pattern (`literal` or `prefix`), name, and the effect: `allow` if it is left out."""

Kind = tuple[Operation, Resource]
Named = tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]
"""Names, prefixes of names if they are few, and prefixes if they are many; sorted, none begins with another."""

IMPLIED: dict[Operation, tuple[Operation, ...]] = {
    Operation.ADMIN: tuple(Operation),
    **{
        operation: (operation, Operation.DESCRIBE)
        for operation in (Operation.READ, Operation.ALTER_OFFSETS, Operation.DELETE, Operation.KICK)
    },
    Operation.DESCRIBE: (Operation.DESCRIBE,),
}
"""What a rule that allows an operation allows."""

_NONE: Named = (frozenset(), (), ())
FEW = 16
"""Up to that many prefixes are compared one after the other."""


class Rules:
    """The rules of one caller, indexed for the check that every request makes."""

    __slots__ = ("_allowed", "_denied", "_keys", "_visible")

    def __init__(self, rules: Iterable[Rule]) -> None:
        allowed: dict[Kind, tuple[set[str], set[str]]] = {}
        denied: dict[Kind, tuple[set[str], set[str]]] = {}
        for operation, resource, pattern, name, *effect in rules:
            operations: tuple[Operation, ...] = IMPLIED[Operation(operation)]
            into = allowed
            if effect and Effect(effect[0]) is Effect.DENY:
                into = denied
                operations = operations if operation == Operation.ADMIN.value else (Operation(operation),)
            for one in operations:
                into.setdefault((one, Resource(resource)), (set(), set()))[pattern != "literal"].add(name)
        self._allowed = _indexed(allowed)
        self._denied = _indexed(denied)
        self._visible: dict[Kind, Visible] = {}
        self._keys: dict[Kind, str] = {}

    def allows(self, operation: Operation, resource: Resource, name: str) -> bool:
        """Whether some rule allows `operation` on the resource called `name`, and none denies it."""
        names, prefixes, many = self._allowed.get((operation, resource), _NONE)
        if not (name.startswith(prefixes) or name in names or (many and _begins(name, many))):
            return False
        if not self._denied:
            return True
        names, prefixes, many = self._denied.get((operation, resource), _NONE)
        return not (name.startswith(prefixes) or name in names or (many and _begins(name, many)))

    def visible(self, operation: Operation, resource: Resource) -> Visible:
        """The names on which `operation` is allowed, in the shortest form; lists are filtered by it."""
        found = self._visible.get((operation, resource))
        if found is None:
            kind = operation, resource
            found = _shortest(self._allowed.get(kind, _NONE), self._denied.get(kind, _NONE))
            self._visible[kind] = found
        return found

    def not_denied(self, operation: Operation, resource: Resource) -> Visible:
        """All names but those on which a rule denies `operation`."""
        return _shortest((frozenset(), ("",), ()), self._denied.get((operation, resource), _NONE))

    def key(self, operation: Operation, resource: Resource) -> str:
        """A digest, equal for rules that allow `operation` on the same names, however written; "": on all names.

        Rules that deny may be written in ways that have the same effect and another digest.
        """
        found = self._keys.get((operation, resource))
        if found is None:
            found = self._keys[operation, resource] = _key(self.visible(operation, resource))
        return found

    @property
    def not_administered(self) -> Resource | None:
        """A kind of resource of which `admin` is not allowed on all; None: their holder may do everything.

        There is one cluster, so that a rule with its name is as good as one with the empty prefix.
        """
        for resource in (Resource.GROUP, Resource.TOPIC, Resource.TRANSACTIONAL_ID):
            if not self.visible(Operation.ADMIN, resource).unlimited:
                return resource
        return None if self.allows(Operation.ADMIN, Resource.CLUSTER, CLUSTER_NAME) else Resource.CLUSTER

    @property
    def unlimited(self) -> bool:
        """Everything is allowed: to their holder, no rule can give more."""
        return all(self.visible(operation, resource).unlimited for operation in Operation for resource in Resource)


def _begins(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether the name begins with one of the prefixes, which are sorted and of which none begins with another.

    What lies between a prefix and a name that begins with it begins with it as well, so only the last prefix before
    the name can be one of it.
    """
    at = bisect_right(prefixes, name)
    return at > 0 and name.startswith(prefixes[at - 1])


def _indexed(rules: dict[Kind, tuple[set[str], set[str]]]) -> dict[Kind, Named]:
    found: dict[Kind, Named] = {}
    for kind, (names, given) in rules.items():
        prefixes = _minimal(given)
        found[kind] = (frozenset(names), *((prefixes, ()) if len(prefixes) <= FEW else ((), prefixes)))
    return found


def _minimal(prefixes: Iterable[str]) -> tuple[str, ...]:
    """The prefixes that begin with no other of them, sorted."""
    found: list[str] = []
    for prefix in sorted(prefixes):  # a prefix comes before what it is a prefix of, and nothing else between them
        if not (found and prefix.startswith(found[-1])):
            found.append(prefix)
    return tuple(found)


def _shortest(allowed: Named, denied: Named) -> Visible:
    """What is allowed and not denied, without what makes no difference."""
    names, prefixes = allowed[0], allowed[1] + allowed[2]
    not_names, not_prefixes = denied[0], denied[1] + denied[2]
    prefixes = tuple(prefix for prefix in prefixes if not prefix.startswith(not_prefixes))
    return Visible(
        tuple(
            sorted(
                name
                for name in names
                if not (name.startswith(prefixes) or name in not_names or name.startswith(not_prefixes))
            )
        ),
        prefixes,
        tuple(sorted(name for name in not_names if name.startswith(prefixes) and not name.startswith(not_prefixes))),
        tuple(prefix for prefix in not_prefixes if prefix.startswith(prefixes)),
    )


def _key(visible: Visible) -> str:
    if visible.unlimited:
        return ""
    parts = [visible.names, visible.prefixes]
    if visible.denied_names or visible.denied_prefixes:
        parts += [visible.denied_names, visible.denied_prefixes]
    said = json.dumps(parts, separators=(",", ":"))
    return hashlib.blake2b(said.encode("ascii"), digest_size=16).hexdigest()


ALL_ALLOWED = Rules((Operation.ADMIN.value, resource.value, "prefix", "") for resource in Resource)
"""Everything: the rules of a command on this machine, and of a superuser."""


__all__ = [
    "ALL_ALLOWED", "CLUSTER_NAME", "TRUSTED_CALLER", "Access", "Effect", "Holder", "Operation", "Permission",
    "Principal", "Resource", "Rule", "Rules", "bearer", "digest", "trusted_caller",
]  # fmt: skip

Q = queries("kcoord")

TRUSTED_CALLER = "kcoord.trusted_caller"
"""Key in the state of a connection that names the caller where that is this process itself
(`kcoord.door.http.local_transport`).

No part of a request can set it: the state is what the application's lifespan gives to a server, and of a request's
content a server passes on only bytes and text, never a `Principal`.
"""

NOTED_EVERY_MS = 60_000
"""How old the noted last use of a token may be before it is noted again."""
MAX_CACHED = 10_000
"""The maximum number of tokens a process remembers; the one looked up longest ago is evicted first."""
MAX_REFUSED = 10_000
"""The maximum number of refused secrets it remembers besides: made-up secrets evict no tokens."""


def digest(secret: str) -> str:
    """What is stored of a secret: its SHA-256 in hex. A slow hash adds nothing for 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Holder(str, Enum):
    """What kind of caller a principal is."""

    TOKEN = "token"  # noqa: S105 - not a secret
    USER = "user"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: the holder of a valid token, or a person who has signed in (`token_id` is 0 then).

    `user_id`: the account of the person, or the one that owns the token; 0: the token has no owner.
    """

    token_id: int
    name: str
    rules: Rules
    holder: Holder = Holder.TOKEN
    user_id: int = 0

    @property
    def said(self) -> str:
        """Who it is, for messages: `token 'ops'`, `user 'mara'`."""
        return f"{self.holder.value} {self.name!r}"

    @property
    def person(self) -> str:
        """Who answers for what it does: an account, also for a token that the account owns, or a token without one."""
        return f"user:{self.user_id}" if self.user_id else f"token:{self.token_id}"

    @property
    def is_local(self) -> bool:
        """A command on the server, which has no token and may do everything."""
        return self.holder is Holder.TOKEN and not self.token_id

    def require(self, permission: Permission, name: str) -> None:
        """Raise the authorization error of the resource unless the caller has the permission for what has this name."""
        operation, resource = permission.value
        if not self.rules.allows(operation, resource, name):
            raise self._refused(operation, resource, name)

    def _refused(self, operation: Operation, resource: Resource, name: str) -> ProtocolError:
        what = "the cluster" if resource is Resource.CLUSTER else f"{resource.value.replace('-', ' ')} {name!r}"
        return ProtocolError(_REFUSED[resource], f"{self.said} may not {operation.value.upper()} {what}")

    def require_group(self, operation: Operation, group_id: str) -> None:
        """Raise GROUP_AUTHORIZATION_FAILED unless `operation` is allowed on the group."""
        if not self.rules.allows(operation, Resource.GROUP, group_id):
            raise self._refused(operation, Resource.GROUP, group_id)

    def may_group(self, operation: Operation, group_id: str) -> bool:
        """Whether `operation` is allowed on the group."""
        return self.rules.allows(operation, Resource.GROUP, group_id)

    def require_transactional_id(self, transactional_id: str) -> None:
        """Raise TRANSACTIONAL_ID_AUTHORIZATION_FAILED unless the caller may work under the transactional id.

        That is `read`, as for every call of a member: Kafka's write on the id is not one of our operations.
        """
        if not self.may_transactional_id(transactional_id):
            raise self._refused(Operation.READ, Resource.TRANSACTIONAL_ID, transactional_id)

    def may_transactional_id(self, transactional_id: str) -> bool:
        """Whether the caller may work under the transactional id, and see what becomes of it."""
        return self.rules.allows(Operation.READ, Resource.TRANSACTIONAL_ID, transactional_id)

    def visible(self, resource: Resource) -> Visible:
        """The groups or topics that the caller may describe; everything shown to it is filtered by them."""
        return self.rules.visible(Operation.DESCRIBE, resource)

    @property
    def listed_groups(self) -> Visible:
        """The groups that lists of groups show to the caller.

        As in Kafka, `describe` on the cluster shows all of them. Differs from Kafka: a group that a rule denies is not
        listed even then.
        """
        if self.may_cluster(Operation.DESCRIBE):
            return self.rules.not_denied(Operation.DESCRIBE, Resource.GROUP)
        return self.visible(Resource.GROUP)

    def may_cluster(self, operation: Operation) -> bool:
        """Whether `operation` is allowed on the cluster."""
        return self.rules.allows(operation, Resource.CLUSTER, CLUSTER_NAME)

    def require_cluster(self, operation: Operation) -> None:
        """Raise CLUSTER_AUTHORIZATION_FAILED unless `operation` is allowed on the cluster."""
        if not self.may_cluster(operation):
            raise self._refused(operation, Resource.CLUSTER, CLUSTER_NAME)

    @property
    def administers(self) -> bool:
        """It may do everything, and so give any right: tokens, and the rules of others, are up to it."""
        return self.rules.not_administered is None

    def require_administrator(self, act: str) -> None:
        """Raise CLUSTER_AUTHORIZATION_FAILED for `act` (`managing tokens`) unless the caller may do everything."""
        lacking = self.rules.not_administered
        if lacking is not None:
            raise ProtocolError(
                Error.CLUSTER_AUTHORIZATION_FAILED,
                f"{act} takes ADMIN on every {lacking.value}, which {self.said} does not have",
            )

    def require_described(self, topic: str) -> None:
        """Raise TOPIC_AUTHORIZATION_FAILED, whether the topic exists or not, unless the caller may describe it."""
        if not self.may_topic(Operation.DESCRIBE, topic):
            raise self._refused(Operation.DESCRIBE, Resource.TOPIC, topic)

    def may_topic(self, operation: Operation, topic: str) -> bool:
        """Whether `operation` is allowed on the topic."""
        return self.rules.allows(operation, Resource.TOPIC, topic)


class Access:
    """The async side of authentication; one per runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._db = runtime.db
        self._believed_seconds = runtime.config.int("token.cache.ms") / 1000
        self._cache: dict[str, tuple[Principal, float]] = {}
        self._refused: dict[str, tuple[str, float]] = {}
        self._forgotten = 0
        """How often everything was forgotten: what was read before the last time is not remembered."""
        self._looking: dict[str, asyncio.Task[tuple[Principal, float]]] = {}
        self._used: set[int] = set()
        self._noting: asyncio.Task[None] | None = None
        runtime.on_stop(self._stop_noting)
        runtime.on_connection_lost(self.forget)
        runtime.notifications.on(TOKENS, lambda _: self.forget())

    def forget(self) -> None:
        """Tokens or rules may have changed: look all of them up again."""
        self._forgotten += 1
        self._cache.clear()
        self._refused.clear()
        self._looking.clear()  # those that wait may have asked before the change; who comes now asks after it

    async def authenticate(self, secret: str) -> Principal:
        """The holder of a secret. Raises SASL_AUTHENTICATION_FAILED; COORDINATOR_NOT_AVAILABLE without a database."""
        key = digest(secret)
        known = self.known(key)
        if known is not None:
            return known
        refused = self._refused.get(key)
        if refused is not None and refused[1] > time.monotonic():
            raise ProtocolError(Error.SASL_AUTHENTICATION_FAILED, refused[0])
        return (await self._look_up_once(key))[0]

    def known(self, key: str) -> Principal | None:
        """The holder of a secret whose digest is `key`, if that was looked up lately; None: ask `authenticate`."""
        found = self._cache.get(key)
        return None if found is None or found[1] <= time.monotonic() else found[0]

    async def _look_up_once(self, key: str) -> tuple[Principal, float]:
        """When thousands of heartbeats meet an expired entry at once, one of them looks it up for all of them."""
        task = self._looking.get(key)
        if task is None:
            task = self._looking[key] = asyncio.create_task(self._look_up(key), name="kcoord-token")
            task.add_done_callback(lambda done: self._looked_up(key, done))
        return await asyncio.shield(task)

    def _looked_up(self, key: str, done: asyncio.Task[tuple[Principal, float]]) -> None:
        if self._looking.get(key) is done:
            del self._looking[key]
        if not done.cancelled():
            done.exception()  # retrieved here, or asyncio logs it if every caller has gone

    async def _look_up(self, key: str) -> tuple[Principal, float]:
        asked, forgotten = time.monotonic(), self._forgotten
        now = self._db.clock.override_ms
        async with self._db.connection() as connection:
            parameters = {"digest": key, "now": now, "noted_every_ms": NOTED_EVERY_MS}
            row = await self._db.row(connection, Q.find_token, parameters)
        is_current = forgotten == self._forgotten
        self._cache.pop(key, None)
        if row is None:
            raise self._refusal(key, "unknown token; create a token and send it", asked, remember=is_current)
        token_id, name, remaining_ms, rules, unnoted, owner_id = row
        believed = self._believed_seconds
        if remaining_ms is not None:
            if remaining_ms <= 0:
                detail = f"this secret of token {name!r} has expired; create a new one"
                raise self._refusal(key, detail, asked, remember=is_current)
            believed = min(believed, remaining_ms / 1000)
        if unnoted:
            self._note_use(token_id)
        allowed = Rules(tuple(rule) for rule in rules)
        found = Principal(token_id, name, allowed, user_id=owner_id or 0), asked + believed
        if is_current:
            if len(self._cache) >= MAX_CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = found
        return found

    def _refusal(self, key: str, detail: str, asked: float, *, remember: bool) -> ProtocolError:
        self._refused.pop(key, None)
        if remember:
            if len(self._refused) >= MAX_REFUSED:
                self._refused.pop(next(iter(self._refused)))
            self._refused[key] = detail, asked + self._believed_seconds
        return ProtocolError(Error.SASL_AUTHENTICATION_FAILED, detail)

    def _note_use(self, token_id: int) -> None:
        """Note behind the request that a token is in use: one write at a time, which takes all tokens that wait."""
        self._used.add(token_id)
        if self._noting is None:
            self._noting = asyncio.create_task(self._note_uses(), name="kcoord-token-use")

    async def _note_uses(self) -> None:
        try:
            while self._used:
                ids, self._used = sorted(self._used), set()
                parameters = {"ids": ids, "now": self._db.clock.override_ms, "noted_every_ms": NOTED_EVERY_MS}
                async with self._db.connection() as connection:
                    await connection.execute(Q.note_token_use.encode(), parameters)
        except (ProtocolError, OSError):
            self._used.clear()  # the next look-up tries again
        finally:
            self._noting = None

    async def _stop_noting(self) -> None:
        if self._noting is not None:
            self._noting.cancel()
            await asyncio.gather(self._noting, return_exceptions=True)


def trusted_caller(scope: Mapping[str, object]) -> Principal | None:
    """The caller within this process; None for every request that came in through a server."""
    state = scope.get("state")
    found = state.get(TRUSTED_CALLER) if isinstance(state, dict) else None
    return found if type(found) is Principal else None


def bearer(headers: list[tuple[bytes, bytes]]) -> str:
    """The secret of the Authorization header. Raises SASL_AUTHENTICATION_FAILED if it is missing or unreadable."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, secret = value.partition(b" ")
            if scheme.lower() != b"bearer" or not secret.strip():
                break
            try:
                return secret.strip().decode("ascii")
            except UnicodeDecodeError:
                break
    raise ProtocolError(
        Error.SASL_AUTHENTICATION_FAILED, "send the token in the header 'Authorization: Bearer <token>'"
    )
