"""Members over HTTP for tests with real processes: small, honest clients that do what the contract says."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg

from kcoord.access.tokens import ALL_RULES, Rule, digest, generate_secret, prefix

Answer = tuple[int, dict[str, Any]]


def make_token(conninfo: str, rules: Sequence[Rule] = ALL_RULES) -> str:
    """A token that may do everything, or what its rules say, written by SQL: the process under test is another one."""
    secret = generate_secret()
    with psycopg.connect(conninfo) as connection:
        row = connection.execute(
            "insert into kcoord_apitoken (name, digest, prefix, created_at) values (%s, %s, %s, 0) returning id",
            (f"test-{secrets.token_hex(4)}", digest(secret), prefix(secret)),
        ).fetchone()
        assert row is not None
        connection.cursor().executemany(
            "insert into kcoord_accessrule (token_id, operation, resource, pattern, name) values (%s, %s, %s, %s, %s)",
            [(row[0], rule.operation, rule.resource, rule.pattern, rule.name) for rule in rules],
        )
    return secret


@dataclass
class HttpMember:
    """A member that may talk to any of several servers, and goes on with the next when one does not answer."""

    client: httpx.AsyncClient
    urls: Sequence[str]
    group_id: str = "g"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 10_000
    member_id: str = ""
    generation_id: int = -1
    at: int = 0
    answers: list[Answer] = field(default_factory=list)

    async def post(self, path: str, body: dict[str, Any]) -> Answer:
        """One request to one of the servers; a connection that breaks is (0, {}) and moves on to the next."""
        url = self.urls[self.at % len(self.urls)]
        try:
            response = await self.client.post(f"{url}/v1/groups/{self.group_id}/{path}", json=body)
        except httpx.TransportError as error:
            self.at += 1
            answer: Answer = (0, {"detail": repr(error)})
        else:
            answer = (response.status_code, response.json())
        self.answers.append(answer)
        return answer

    async def join(self, attempts: int = 60, **changes: Any) -> dict[str, Any]:
        """Join until it is answered with success, as the contract tells clients to go on."""
        body = {
            "member_id": self.member_id,
            "client_id": "test",
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "subscription": {"topics": ["t"]}}],
            **changes,
        }
        for _ in range(attempts):
            status, answer = await self.post("join", body)
            if status == 200:
                self.member_id, self.generation_id = answer["member_id"], answer["generation_id"]
                return answer
            if answer.get("error") == "UNKNOWN_MEMBER_ID":
                body["member_id"] = ""
            elif answer.get("member_id"):
                body["member_id"] = self.member_id = answer["member_id"]
            if status in (0, 503):
                await asyncio.sleep(0.1)
        raise AssertionError(f"no join after {attempts} requests: {self.answers[-5:]}")

    async def sync(self, assignments: dict[str, dict[str, list[int]]] | None = None) -> Answer:
        """One sync; the leader gives everybody's partitions."""
        entries = [{"member_id": key, "partitions": value} for key, value in (assignments or {}).items()]
        return await self.post(
            "sync",
            {
                "member_id": self.member_id,
                "generation_id": self.generation_id,
                "protocol_type": "consumer",
                "protocol_name": "range",
                "assignments": entries,
            },
        )

    async def become_stable(self, attempts: int = 20) -> dict[str, list[int]]:
        """Join and sync until the group is Stable with this member in it; returns its partitions.

        A leader gives partition n of topic t to the n-th member.
        """
        for _ in range(attempts):
            joined = await self.join()
            plan = {m["member_id"]: {"t": [n]} for n, m in enumerate(joined["members"])}
            status, answer = await self.sync(plan)
            if status == 200:
                partitions: dict[str, list[int]] = answer["partitions"]
                return partitions
        raise AssertionError(f"not stable after {attempts} rounds: {self.answers[-5:]}")

    async def heartbeat(self) -> Answer:
        """One heartbeat."""
        return await self.post("heartbeat", {"member_id": self.member_id, "generation_id": self.generation_id})

    async def commit(self, partition: int, offset: int) -> Answer:
        """Commit one offset of topic t."""
        entry = {"partition": partition, "committed_offset": offset}
        return await self.post(
            "offsets/commit",
            {
                "member_id": self.member_id,
                "generation_id_or_member_epoch": self.generation_id,
                "topics": [{"name": "t", "partitions": [entry]}],
            },
        )
