"""Traces: what a real server sends to a collector, and that nothing of it exists while none is set."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.processes import ROOT, environment, start, start_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("traces are an option, off by default; their spans are tested in process"),
]

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"


@dataclass
class Collector:
    """An OTLP/HTTP collector: the spans it was sent, by name."""

    url: str
    resource: dict[str, str] = field(default_factory=dict)
    spans: dict[str, list[Any]] = field(default_factory=dict)

    def take(self, body: bytes) -> None:
        """Keep the spans of one request."""
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = {a.key: a.value.string_value for a in sent.resource.attributes}
            for scope in sent.scope_spans:
                for span in scope.spans:
                    self.spans.setdefault(span.name, []).append(span)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield collector
        server.shutdown()
        thread.join(5)


def attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span."""
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def traced_requests(database: str, token: str, env: dict[str, object]) -> Collector:
    """What is sent of a commit with a caller's trace, a refused heartbeat, a page and a probe."""
    with (
        collecting() as collector,
        start_server(database, env={"KCOORD_OTLP_ENDPOINT": collector.url, **env}) as server,
    ):
        server.wait_ready()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client:
            assert client.post("/v1/topics", json={"name": "t", "partitions": 1, "labels": {}}).status_code == 201
            body = {"topics": [{"name": "t", "partitions": [{"partition": 0, "committed_offset": 1}]}]}
            simple = {"member_id": "", "generation_id_or_member_epoch": -1, **body}
            caller = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
            assert client.post("/v1/groups/a%20b%25/offsets/commit", json=simple, headers=caller).status_code == 200
            refused = client.post("/v1/groups/none/heartbeat", json={"member_id": "x", "generation_id": 1})
            assert refused.json()["error"] == "UNKNOWN_MEMBER_ID"
            assert client.get("/sign-in").status_code == 200
        assert server.terminate() in (0, -15), server.output
        return collector


@pytest.fixture(scope="module")
def path() -> str:
    """The route of a commit."""
    return "POST /v1/groups/{group_id}/offsets/commit"


def test_a_request_and_its_transaction_are_spans_of_the_callers_trace(database: str, token: str, path: str) -> None:
    collector = traced_requests(database, token, {})
    assert collector.resource["service.name"] == "kcoord"
    (commit,) = collector.spans[path]
    assert (commit.trace_id.hex(), commit.parent_span_id.hex()) == (TRACE, CALLER)
    found = attributes(commit)
    assert found.pop("kcoord.request_id")
    assert found == {
        "http.request.method": "POST",
        "http.route": "/v1/groups/{group_id}/offsets/commit",
        "http.response.status_code": 200,
    }, "no group id unless it is asked for"
    (transaction,) = [s for s in collector.spans["transaction"] if s.trace_id.hex() == TRACE]
    assert transaction.parent_span_id == commit.span_id
    assert attributes(transaction) == {"db.system.name": "postgresql"}
    assert commit.start_time_unix_nano <= transaction.start_time_unix_nano
    assert transaction.end_time_unix_nano <= commit.end_time_unix_nano

    (refused,) = collector.spans["POST /v1/groups/{group_id}/heartbeat"]
    assert attributes(refused)["error.type"] == "UNKNOWN_MEMBER_ID"
    assert refused.trace_id.hex() != TRACE
    assert not refused.parent_span_id
    assert "GET /*" in collector.spans
    assert not [name for name in collector.spans if name.endswith("z")], "probes are not traced"


def test_the_group_is_named_if_that_is_set(database: str, token: str, path: str) -> None:
    collector = traced_requests(database, token, {"KCOORD_OTLP_GROUP_IDS": "true"})
    (commit,) = collector.spans[path]
    assert attributes(commit)["kcoord.group_id"] == "a b%"


EXPORT_SECONDS = 10
"""How long the exporter waits for a collector: what a request would take that waited for it."""


@pytest.mark.parametrize("kind", ["none", "silent"])
def test_a_collector_that_does_not_answer_delays_nothing(database: str, token: str, kind: str) -> None:
    """Refused connections, and one that accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if kind == "none":
            listener.close()
        with start_server(database, env={"KCOORD_OTLP_ENDPOINT": endpoint}) as server:
            server.wait_ready()
            for _ in range(5):
                began = time.monotonic()
                headers = {"Authorization": f"Bearer {token}"}
                answer = httpx.get(f"{server.url}/v1/groups", headers=headers, timeout=30)
                assert answer.status_code == 200
                assert time.monotonic() - began < EXPORT_SECONDS / 2
            assert server.terminate(8) in (0, -15)


LOADED = """
import sys
import kcoord.asgi
of_options = ("opentelemetry", "kcoord.door.http.tracing", "authlib", "joserfc")
print(sorted(m for m in sys.modules if m.startswith(of_options)))
print([m.cls.__name__ for m in kcoord.asgi.application.user_middleware])
"""


def test_nothing_of_tracing_and_sign_in_is_loaded_while_they_are_off(database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=ROOT,
        env=environment(database, ROOT / "none"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["[]", "['RequestLog', 'NotAnOperation', 'BodyLimit']"]


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from kcoord.stack.server import main
sys.exit(main())
"""


def test_missing_packages_are_one_line_and_status_2(database: str) -> None:
    with start("server", ["-c", WITHOUT], database, {"KCOORD_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) as server:
        assert server.wait() == 2
        (line,) = server.output.splitlines()
        assert line.startswith("kcoord: KCOORD_OTLP_ENDPOINT needs packages that are not installed")
        assert "pip install -r deploy/requirements-otlp.txt" in line
