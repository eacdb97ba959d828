"""A storm of members that join over Kafka's protocol: `tests.bench.storm` with other requests and answers."""

from __future__ import annotations

import socket
from typing import Any

from tests.bench.kafka import answers, frames
from tests.bench.storm import CHUNK, Member, Run

UNKNOWN_MEMBER_ID, MEMBER_ID_REQUIRED = 25, 79
NAMES = {UNKNOWN_MEMBER_ID: "UNKNOWN_MEMBER_ID", MEMBER_ID_REQUIRED: "MEMBER_ID_REQUIRED"}
REJOINS = (22, UNKNOWN_MEMBER_ID, 27)
"""Error numbers after which a member joins again: of an old generation, unknown, in a rebalance."""


class WireRun(Run):
    """The members of a storm over the wire; each logs in before it begins."""

    def greet(self, connection: socket.socket) -> None:
        answers.log_in(connection, self.storm.token)

    def group_of(self, member: Member) -> str:
        """The group that the member joins."""
        return f"{self.storm.prefix}-{member.group}"

    def ask(self, member: Member, path: str, frame: bytes) -> None:
        """Send a request, and remember it."""
        member.path, member.asked = path, frame
        self.write(member)

    def join(self, member: Member) -> None:
        self.synced[member.group].pop(member.fd, None)
        times = self.storm.session_timeout_ms, self.storm.rebalance_timeout_ms
        version = frames.KNOWS_MEMBER_ID_REQUIRED
        self.ask(member, "join", frames.join_group(self.group_of(member), member.id, *times, version))

    def sync(self, member: Member, joined: dict[str, Any]) -> None:
        ids = [one["member_id"] for one in joined["members"]]
        self.ask(member, "sync", frames.sync_group(self.group_of(member), member.id, member.generation, ids))

    def beat(self, member: Member) -> None:
        self.ask(member, "heartbeat", frames.heartbeat(self.group_of(member), member.id, member.generation))

    def receive(self, member: Member) -> None:
        data = self.sockets[member.fd].recv(CHUNK)
        assert data, "the server closed a connection"
        member.read += data
        if answers.is_whole(member.read):
            body = bytes(member.read[8:])
            member.read.clear()
            self.told(member, body)

    def told(self, member: Member, body: bytes) -> None:
        """Go on with the answer, in the words of the one over HTTP."""
        answer: dict[str, Any] = {}
        if member.path == "join":
            joined = frames.read_joined(body)
            error = joined.error
            answer = {"member_id": joined.member, "generation_id": joined.generation}
            answer["members"] = [{"member_id": one} for one in joined.members]
        else:
            error = frames.read_synced(body)
        answer |= {"error": NAMES.get(error, ""), "action": "rejoin" if error in REJOINS else ""}
        self.answered(member, 0 if error else 200, answer)
