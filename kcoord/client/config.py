"""The settings of a consumer: names and defaults of the Java and Python clients, checked before anything is sent."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Required, Self, TypedDict
from urllib.parse import urlsplit

from kcoord.assignors import Assignor
from kcoord.client.errors import InvalidConfigurationError

DEFAULT_URL = "http://127.0.0.1:8000"
AUTO_OFFSET_RESETS = ("earliest", "latest", "none")
CLASSIC = "classic"
CONSUMER = "consumer"
CLASSIC_ONLY = ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy")
"""Settings that members of a consumer group do not have: the service decides (KIP-848)."""
MAX_INT = 2**31 - 1
_OPTIONAL = ("consumer_timeout_ms",)
_MAY_BE_0 = ("fetch_wait_ms", "consumer_timeout_ms", "watermark_interval_ms")

OF_OTHER_CLIENTS: Mapping[str, str] = {
    "bootstrap_servers": "there are no brokers: give the address of the service as url",
    "key_deserializer": "deserialize in the record source: records are passed on as it returns them",
    "value_deserializer": "deserialize in the record source: records are passed on as it returns them",
    "sasl_plain_username": "give an API token as token",
    "sasl_plain_password": "give an API token as token",
    "sasl_mechanism": "give an API token as token",
    "security_protocol": "give an https:// address as url",
    "ssl_context": "pass an httpx client that has it as http_client",
    "ssl_cafile": "pass an httpx client that has it as http_client",
    "enable_auto_offset_store": "positions move with poll; commit explicitly with enable_auto_commit=False",
    "default_offset_commit_callback": "pass the callback to commit_async",
}
"""Settings of kafka-python and confluent-kafka that have no counterpart: what to do instead."""


class ConsumerSettings(TypedDict, total=False):
    """The settings of `ConsumerConfig` as keyword arguments (PEP 692), so that type checkers know their names."""

    group_id: Required[str]
    url: str
    token: str
    client_id: str
    group_instance_id: str | None
    client_rack: str | None
    group_protocol: Literal["classic", "consumer"]
    group_remote_assignor: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: Literal["earliest", "latest", "none"]
    partition_assignment_strategy: Sequence[str | Assignor]
    max_poll_records: int
    request_timeout_ms: int
    max_wait_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    fetch_wait_ms: int
    watermark_interval_ms: int
    consumer_timeout_ms: int | None


_INSTANCE_ID = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Settings of a `Consumer`. All times are in ms.

    Parameters (defaults: classic.md 11.1, http-api.md 1):
    `group_id` the group (1 to 255 characters, no `/`); `url` one or more servers, separated by commas, tried in random
    order (else KCOORD_URL); `token` API token (else KCOORD_TOKEN); `client_id` a name for logs and member ids;
    `group_instance_id` makes the member static (KIP-345); `client_rack` where it runs (KIP-881); `group_protocol`
    "classic" or "consumer" (KIP-848); `group_remote_assignor` the service's assignor that a member of a consumer group
    votes for; `session_timeout_ms` (classic) silence after which the group drops the member; `heartbeat_interval_ms`
    (classic) usually at most a third of it; `max_poll_interval_ms` longest time between polls, and the rebalance
    timeout; `enable_auto_commit`, `auto_commit_interval_ms`; `auto_offset_reset` "earliest", "latest" or "none";
    `partition_assignment_strategy` (classic) assignor names or assignors, preferred first; `max_poll_records` most
    records of one poll; `request_timeout_ms` of one request beyond what the server may hold it; `max_wait_ms` longest
    time the server may hold a join, sync or heartbeat; `default_api_timeout_ms` of calls without an explicit timeout;
    `retry_backoff_ms` to `retry_backoff_max_ms` between attempts; `metadata_max_age_ms` how often the client looks
    whether another node coordinates the group, and a leader (classic) looks up partition counts; `fetch_wait_ms` pause
    before a source that returned nothing is asked again; `watermark_interval_ms` how often it is asked where its
    partitions begin and end, which is reported to the service as the topics' watermarks (0: never);
    `consumer_timeout_ms` time without a record after which an iteration ends (None: never).
    Raises InvalidConfigurationError.
    """

    group_id: str
    url: str = ""
    token: str = field(default="", repr=False)
    client_id: str = "kcoord"
    group_instance_id: str | None = None
    client_rack: str | None = None
    group_protocol: str = CLASSIC
    group_remote_assignor: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: str = "latest"
    partition_assignment_strategy: Sequence[Any] = ("range", "cooperative-sticky")
    max_poll_records: int = 500
    request_timeout_ms: int = 30_000
    max_wait_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    fetch_wait_ms: int = 100
    watermark_interval_ms: int = 30_000
    consumer_timeout_ms: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The settings in `options`, completed from the environment. Raises InvalidConfigurationError."""
        cls._check_names(options)
        if "group_id" not in options:
            raise InvalidConfigurationError("group_id", "required: the id of the group to join")
        if options.get("group_protocol") == CONSUMER:
            for name in CLASSIC_ONLY:
                if name in options:
                    raise InvalidConfigurationError(
                        name, f"the service determines this for groups of the protocol {CONSUMER!r}: leave it out"
                    )
        given = dict(options)
        if given.get("consumer_timeout_ms") == math.inf:
            # The default of kafka-python.
            given["consumer_timeout_ms"] = None
        given["url"] = given.get("url") or os.environ.get("KCOORD_URL") or DEFAULT_URL
        given["token"] = given.get("token") or os.environ.get("KCOORD_TOKEN") or ""
        return cls(**given)

    @classmethod
    def _check_names(cls, options: Mapping[str, Any]) -> None:
        names = [f.name for f in fields(cls) if f.name not in cls.elsewhere()]
        for name in options:
            if name not in names:
                plain = name.replace(".", "_")
                close = difflib.get_close_matches(plain, names, n=1)
                hint = f"did you mean {close[0]}?" if close else f"the settings are {', '.join(names)}"
                hint = cls.elsewhere().get(plain) or OF_OTHER_CLIENTS.get(plain, hint)
                raise InvalidConfigurationError(name, f"no such setting; {hint}")

    @classmethod
    def elsewhere(cls) -> Mapping[str, str]:
        """Settings of other kinds of consumers, which this kind does not have: what to do instead."""
        return {}

    def __post_init__(self) -> None:
        self._check_identity()
        self._check_numbers()
        self._check_urls()
        if self.auto_offset_reset not in AUTO_OFFSET_RESETS:
            raise InvalidConfigurationError(
                "auto_offset_reset", f"{self.auto_offset_reset!r}: expected one of {', '.join(AUTO_OFFSET_RESETS)}"
            )
        if not isinstance(self.enable_auto_commit, bool):
            raise InvalidConfigurationError(
                "enable_auto_commit", f"{self.enable_auto_commit!r}: expected True or False"
            )
        self._check_protocol()
        if isinstance(self.partition_assignment_strategy, str) or not self.partition_assignment_strategy:
            raise InvalidConfigurationError(
                "partition_assignment_strategy", "expected a sequence of at least one assignor, e.g. ('range',)"
            )

    def _check_protocol(self) -> None:
        if self.group_protocol not in (CLASSIC, CONSUMER):
            raise InvalidConfigurationError(
                "group_protocol", f"{self.group_protocol!r}: expected {CLASSIC!r} or {CONSUMER!r}"
            )
        if self.group_remote_assignor is None:
            return
        if self.group_protocol == CLASSIC:
            raise InvalidConfigurationError(
                "group_remote_assignor",
                f"the leader assigns in groups of the protocol {CLASSIC!r}: use partition_assignment_strategy",
            )
        if not self.group_remote_assignor.strip():
            raise InvalidConfigurationError("group_remote_assignor", "expected the name of an assignor, e.g. 'uniform'")

    def _check_identity(self) -> None:
        if not isinstance(self.group_id, str) or not 1 <= len(self.group_id) <= 255:
            raise InvalidConfigurationError("group_id", "expected a string of 1 to 255 characters")
        if "/" in self.group_id or any(ord(c) < 32 or ord(c) == 127 for c in self.group_id):
            raise InvalidConfigurationError("group_id", "it must not contain '/' or control characters")
        instance = self.group_instance_id
        if instance is not None and (not _INSTANCE_ID.fullmatch(instance) or instance in (".", "..")):
            raise InvalidConfigurationError(
                "group_instance_id", f"{instance!r}: expected 1 to 249 of letters, digits, '.', '_', '-'"
            )

    def _check_numbers(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not f.name.endswith(("_ms", "_s", "_records", "concurrency")) or (value is None and f.name in _OPTIONAL):
                continue
            least = 0 if f.name in _MAY_BE_0 else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_INT:
                raise InvalidConfigurationError(f.name, f"{value!r}: expected a whole number from {least} to {MAX_INT}")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidConfigurationError(
                "heartbeat_interval_ms",
                f"{self.heartbeat_interval_ms} must be smaller than session_timeout_ms={self.session_timeout_ms}",
            )
        if self.retry_backoff_ms > self.retry_backoff_max_ms:
            raise InvalidConfigurationError(
                "retry_backoff_ms", f"{self.retry_backoff_ms} exceeds retry_backoff_max_ms={self.retry_backoff_max_ms}"
            )

    def _check_urls(self) -> None:
        if not self.urls:
            raise InvalidConfigurationError("url", "expected at least one http:// or https:// address")
        for url in self.urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise InvalidConfigurationError("url", f"{url!r}: expected an http:// or https:// address")
            if parts.path.endswith("/v1"):
                raise InvalidConfigurationError("url", f"{url!r}: leave out /v1: the client adds it")

    @property
    def urls(self) -> tuple[str, ...]:
        """The servers to ask first, without a trailing slash."""
        return tuple(part.strip().rstrip("/") for part in self.url.split(",") if part.strip())

    @property
    def heartbeat_timeout_ms(self) -> int:
        """How long one heartbeat may take: short enough that another fits into the session."""
        return min(self.request_timeout_ms, max(self.heartbeat_interval_ms, self.session_timeout_ms // 3))

    @property
    def spread_ms(self) -> int:
        """Over how long clients that lose their server at the same moment spread their next look-up."""
        return min(self.retry_backoff_max_ms, self.heartbeat_interval_ms // 4)

    @property
    def discovery_timeout_ms(self) -> int:
        """How long one server may take to name the coordinator: all of them fit into the time of a heartbeat."""
        return min(self.request_timeout_ms, max(1_000, self.heartbeat_timeout_ms // len(self.urls)))

    @property
    def look_timeout_ms(self) -> int:
        """How long the look for a better coordinator may hold up a request."""
        return min(1_000, self.discovery_timeout_ms)
