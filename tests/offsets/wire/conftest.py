"""Fixtures of requests of Kafka's protocol."""

from tests.support.wire import wire, wire_with  # noqa: F401 - fixtures
