"""A coordinator that answers from a script, behind httpx's mock transport: no sockets, no server."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from kcoord.client import Consumer, MemberState
from kcoord.protocol.errors import Action, Error
from tests.kcoord.client import drivers

URL = "http://coordinator.test"
WAIT_S = 10.0


@dataclass(frozen=True)
class Sent:
    """One request as the coordinator saw it."""

    api: str
    body: dict[str, Any]
    host: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A problem response."""

    error: Error
    action: Action | None = None
    member_id: str | None = None
    retry_after: str | None = None

    def response(self) -> httpx.Response:
        row = self.error.value
        body: dict[str, Any] = {
            "type": f"https://kcoord.dev/errors/{self.error.name}",
            "title": self.error.name,
            "status": row.status,
            "detail": row.help,
            "error": self.error.name,
            "error_code": row.code,
            "retriable": row.retriable,
            "action": (self.action or row.action).value,
            "request_id": "r1",
        }
        if self.member_id is not None:
            body["member_id"] = self.member_id
        headers = {"Content-Type": "application/problem+json"}
        if self.retry_after is not None:
            headers["Retry-After"] = self.retry_after
        return httpx.Response(row.status, content=json.dumps(body), headers=headers)


Answer = dict[str, Any] | Refusal | httpx.Response | Exception | Callable[[dict[str, Any]], Any]


class ScriptedCoordinator:
    """Answers each API with what was scripted for it, then with what a healthy group of one member would answer."""

    def __init__(self, topics: dict[str, int] | None = None) -> None:
        self.topics = {"t": 4} if topics is None else topics
        self.sent: list[Sent] = []
        self.reports: list[Sent] = []
        """Reports of watermarks, which come at moments of their own."""
        self.log_ends: dict[tuple[str, int], int] = {}
        """The ends that count: the latest, unless a log was truncated."""
        self.committed: dict[tuple[str, int], int] = {}
        self.topic_ids: dict[str, str | None] = {}
        self.generation = 0
        self._scripts: dict[str, deque[Answer]] = defaultdict(deque)
        self._changed = threading.Condition()
        self._members = 0
        self._subscription: dict[str, Any] = {}
        self.holding = threading.Event()
        self.holding.set()

    def script(self, api: str, *answers: Answer) -> None:
        """The next answers of `api`."""
        with self._changed:
            self._scripts[api].extend(answers)

    def apis(self) -> list[str]:
        """The requests so far, in order, by API."""
        with self._changed:
            return [sent.api for sent in self.sent]

    def all(self, api: str) -> list[Sent]:
        """The requests of `api` so far."""
        with self._changed:
            return [sent for sent in self.sent if sent.api == api]

    def wait_for(self, api: str, count: int = 1) -> list[Sent]:
        """Wait until `api` was called `count` times."""
        with self._changed:
            enough = self._changed.wait_for(lambda: sum(s.api == api for s in self.sent) >= count, WAIT_S)
            assert enough, f"{api} was not called {count} times: {[s.api for s in self.sent]}"
            return [sent for sent in self.sent if sent.api == api]

    def handle(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        api = request.url.path.removeprefix("/v1/").removeprefix("groups/g/")
        if api.startswith("topics/") and api.endswith("/watermarks"):
            topic = api.removeprefix("topics/").removesuffix("/watermarks")
            return self._answer(self.reports, Sent("watermarks", {"topic": topic, **body}))
        if api.startswith("topics/"):
            body, api = {"name": api.removeprefix("topics/")}, "topic"
        return self._answer(self.sent, Sent(api, body, request.url.host, dict(request.headers)))

    def _answer(self, requests: list[Sent], sent: Sent) -> httpx.Response:
        api, body = sent.api, sent.body
        with self._changed:
            requests.append(sent)
            self._changed.notify_all()
            script = self._scripts[api]
            answer: Any = script.popleft() if script else getattr(self, "_" + api.replace("/", "_").replace("-", "_"))
        if callable(answer) and not isinstance(answer, Exception):
            answer = answer(body)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Refusal):
            return answer.response()
        return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

    def _coordinator(self, body: dict[str, Any]) -> Any:
        return {"coordinators": [{"key": "g", "partition": 1, "url": URL, "error_code": 0}]}

    def _watermarks(self, body: dict[str, Any]) -> Any:
        for reported in body["partitions"]:
            key, end = (body["topic"], reported["partition"]), reported["log_end_offset"]
            self.log_ends[key] = end if body.get("truncated") else max(end, self.log_ends.get(key, 0))
        return {
            "partitions": [
                {**reported, "log_end_offset": self.log_ends[body["topic"], reported["partition"]]}
                for reported in body["partitions"]
            ]
        }

    def _topic(self, body: dict[str, Any]) -> Any:
        count = self.topics.get(body["name"])
        if count is None:
            return Refusal(Error.UNKNOWN_TOPIC_OR_PARTITION)
        return {"name": body["name"], "topic_id": self.topic_id(body["name"]), "partitions": count, "labels": {}}

    def _join(self, body: dict[str, Any]) -> Any:
        member_id = body["member_id"]
        if not member_id:
            with self._changed:
                self._members += 1
                member_id = f"m{self._members}"
            if body["group_instance_id"] is None:
                return Refusal(Error.MEMBER_ID_REQUIRED, member_id=member_id)
        with self._changed:
            self.generation += 1
            generation = self.generation
        chosen = body["protocols"][0]
        return {
            "error_code": 0,
            "generation_id": generation,
            "protocol_type": "consumer",
            "protocol_name": chosen["name"],
            "leader": member_id,
            "skip_assignment": False,
            "member_id": member_id,
            "session_expires_at": "2026-01-01T00:00:00Z",
            "members": [
                {
                    "member_id": member_id,
                    "group_instance_id": body["group_instance_id"],
                    "metadata": "",
                    "subscription": chosen["subscription"],
                }
            ],
        }

    def _sync(self, body: dict[str, Any]) -> Any:
        mine = [a for a in body["assignments"] if a["member_id"] == body["member_id"]]
        return {
            "error_code": 0,
            "protocol_type": body["protocol_type"],
            "protocol_name": body["protocol_name"],
            "assignment": "AAE=",
            "partitions": mine[0]["partitions"] if mine else {},
            "session_expires_at": "2026-01-01T00:00:00Z",
        }

    def _heartbeat(self, body: dict[str, Any]) -> Any:
        return {"error_code": 0, "session_expires_at": "2026-01-01T00:00:00Z"}

    def _leave(self, body: dict[str, Any]) -> Any:
        return {"error_code": 0, "members": [{**member, "error_code": 0} for member in body["members"]]}

    def _offsets_commit(self, body: dict[str, Any]) -> Any:
        for topic in body["topics"]:
            for p in topic["partitions"]:
                if self._name(topic) is not None:
                    self.committed[self._name(topic) or "", p["partition"]] = p["committed_offset"]
        return {
            "topics": [
                {
                    "name": self._name(t),
                    "topic_id": t.get("topic_id"),
                    "partitions": [
                        {"partition": p["partition"], "error_code": 0 if self._name(t) else Error.UNKNOWN_TOPIC_ID.code}
                        for p in t["partitions"]
                    ],
                }
                for t in body["topics"]
            ]
        }

    def topic_id(self, name: str) -> str | None:
        """The id of a topic; None: it does not exist."""
        return self.topic_ids.get(name, f"id-of-{name}")

    def recreate(self, name: str) -> None:
        """Delete a topic, with what was committed on it, and create it again."""
        self.topic_ids[name] = f"{self.topic_id(name)}-again"
        self.committed = {key: offset for key, offset in self.committed.items() if key[0] != name}

    def _name(self, topic: dict[str, Any]) -> str | None:
        """The name of a topic that a commit gives by name or by id."""
        if "name" in topic:
            return str(topic["name"])
        names = {self.topic_id(name): name for name in (*self.topics, "t", "u")}
        return names.get(topic["topic_id"])

    def _offsets_fetch(self, body: dict[str, Any]) -> Any:
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "topic_id": self.topic_id(topic["name"]),
                    "partitions": [
                        {
                            "partition": p,
                            "committed_offset": self.committed.get((topic["name"], p), -1),
                            "committed_leader_epoch": -1,
                            "metadata": "",
                            "commit_timestamp": None,
                            "error_code": 0,
                        }
                        for p in topic["partitions"]
                    ],
                }
                for topic in body["topics"]
            ]
        }


def given(partitions: list[int]) -> Any:
    """A sync answer that assigns `partitions` of topic t, whatever the leader said."""

    def answer(body: dict[str, Any]) -> Any:
        return {
            "protocol_type": "consumer",
            "protocol_name": body["protocol_name"],
            "assignment": "AAE=",
            "partitions": {"t": partitions},
        }

    return answer


def name_of(value: Any) -> str | None:
    """The test id of an error or an exception class."""
    return getattr(value, "name", None) or getattr(value, "__name__", None)


def wait_until(condition: Callable[[], bool], pause_s: float = 0.002) -> None:
    """Look again every `pause_s` until `condition()`, for state that gives no signal."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(pause_s)


def stable(consumer: Consumer, generation: int = 1) -> None:
    """Poll until the consumer is a stable member of `generation` or a later one."""
    deadline = time.monotonic() + WAIT_S
    while True:
        consumer.poll(50)
        # In this order: between the two, another thread may go on to the next generation.
        if consumer.generation.generation_id >= generation and consumer.state is MemberState.STABLE:
            return
        assert time.monotonic() < deadline, f"not stable: {consumer.state}, {consumer.generation}"


def poll_until(consumer: Consumer, condition: Callable[[], bool]) -> None:
    """Poll until it is so: a listener may be called by the poll after the one in which the group became stable."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        consumer.poll(20)
        assert time.monotonic() < deadline, "the condition did not come true"


@contextmanager
def consumer_of(server: ScriptedCoordinator, *topics: str, **settings: Any) -> Iterator[Consumer]:
    """A consumer of group "g" that talks to `server`, with short waits."""
    defaults: dict[str, Any] = {
        "group_id": "g",
        "url": URL,
        "retry_backoff_ms": 1,
        "retry_backoff_max_ms": 5,
        "heartbeat_interval_ms": 20,
        "session_timeout_ms": 10_000,
        "request_timeout_ms": 5_000,
        "auto_offset_reset": "earliest",
    }
    consumer = drivers.consumer(server.handle, *topics, **{**defaults, **settings})
    try:
        yield consumer
    finally:
        consumer.close(timeout_ms=5_000, autocommit=False)
