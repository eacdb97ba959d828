"""The OpenAPI document against the real application: no request makes it fail, and it answers as it says it does.

Schemathesis makes requests from the document of both planes, valid and invalid ones, and sends them to a server on a
thread of this process, with a real database behind it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import schemathesis
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from schemathesis.specs.openapi import checks

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Kind
from kcoord.access.quotas.stored import change
from kcoord.access.tokens import ALL_RULES, create_token
from kcoord.process import bridge
from kcoord.stack.server import make_server
from tests.conftest import EMPTIED
from tests.support.rest_groups import stable_group

pytestmark = pytest.mark.whole("hundreds of requests of every kind; test_openapi sends the examples")

EXAMPLES_PER_OPERATION = 8
"""Valid and invalid ones. One for every keyword of every schema would be ten thousand requests, nine minutes of a core;
`test_bad_input` and `test_odd_texts` have the fields of each operation one by one."""
LONGEST_LIST = 100
SECONDS = 30
SEEDED = {"group_id": "seeded", "name": "orders"}
CHECKS = (
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.unsupported_method,
)


@pytest.fixture(scope="module")
def secret(worker_database: str, django_db_setup: None, django_db_blocker) -> Iterator[str]:
    """The secret of a token whose id no generated request hits by chance, in an empty database."""
    with psycopg.connect(worker_database, autocommit=True) as connection:
        connection.execute(EMPTIED)
        connection.execute("select setval('kcoord_apitoken_id_seq', %s)", (2**52,))
    with django_db_blocker.unblock():
        token = create_token("schemathesis", ALL_RULES)
        # Generated requests set default quotas, of which this token must not run out.
        change(Kind.TOKEN, token.name, dict.fromkeys(Budget), frozenset())
        yield token.secret


@pytest.fixture(scope="module")
def document(secret: str) -> Iterator[schemathesis.BaseSchema]:
    """The document as the running application serves it. Requests are held for 20 ms at most."""
    from groups.engine.service import GroupService
    from groups.store.store import GroupStore
    from groups.topics import TopicService

    before = settings.KCOORD
    settings.KCOORD = before.override(
        {
            "http.max.wait.ms": 20,
            "group.initial.rebalance.delay.ms": 0,
            "timer.lag.ready.ms": 3_600_000,
            "group.max.hold.ms": 1,  # joins of a group that is held are answered 503, which this test takes for a crash
        }
    )
    with serving() as url:
        schema = schemathesis.openapi.from_url(f"{url}/v1/openapi.json")
        schema.config.phases.coverage.enabled = False
        bridge.call(lambda runtime: runtime.get(GroupService).put(stable_group("seeded", expires=None)))
        bridge.call(lambda runtime: runtime.get(TopicService).create("orders", 3))
        bridge.call(lambda runtime: runtime.get(GroupStore).record_tick())
        yield schema
    settings.KCOORD = before


@contextmanager
def serving() -> Iterator[str]:
    """A server of this process; its address."""
    server = make_server(settings.KCOORD)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)
            assert not thread.is_alive()


@schemathesis.hook
def before_load_schema(context: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Leave out limits of thousands of items: a request one item beyond them is larger than the largest body."""
    forget_long_limits(raw_schema)


def forget_long_limits(tree: Any) -> None:
    if isinstance(tree, dict) and isinstance(tree.get("maxItems"), int) and tree["maxItems"] > LONGEST_LIST:
        del tree["maxItems"]
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        forget_long_limits(item)


@schemathesis.hook
def map_path_parameters(context: schemathesis.HookContext, path_parameters: dict[str, Any] | None) -> Any:
    """Every other generated name becomes that of a group or topic that is there, except to be deleted."""
    if context.operation.method == "delete":
        return path_parameters
    for name, seeded in SEEDED.items():
        given = (path_parameters or {}).get(name)
        if isinstance(given, str) and len(given) % 2:
            path_parameters[name] = seeded
    return path_parameters


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@hypothesis_settings(
    max_examples=EXAMPLES_PER_OPERATION,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_operation_answers_as_documented(case: schemathesis.Case, secret: str) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {secret}"}, checks=CHECKS)
