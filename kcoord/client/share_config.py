"""The settings of a share consumer: those of a consumer that apply, and its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Required, TypedDict

from kcoord.client.config import CLASSIC_ONLY, CONSUMER, ConsumerConfig
from kcoord.client.errors import InvalidConfigurationError

IMPLICIT = "implicit"
EXPLICIT = "explicit"

_OF_THE_GROUP = "the service determines this for share groups: leave it out"
_NOTHING_COMMITTED = "a share group has no positions: its items are acknowledged (acknowledgement_mode)"

NOT_OF_SHARE_GROUPS: Mapping[str, str] = {
    **dict.fromkeys(CLASSIC_ONLY, _OF_THE_GROUP),
    "group_instance_id": "members of share groups are never static",
    "group_protocol": "this consumer always joins a share group",
    "group_remote_assignor": "share groups have one assignor, 'simple'",
    "enable_auto_commit": _NOTHING_COMMITTED,
    "auto_commit_interval_ms": _NOTHING_COMMITTED,
    "auto_offset_reset": "where a group begins is a setting of the group: share.auto.offset.reset",
    "watermark_interval_ms": "where the source ends is reported with each acquire, and when it grows",
}
"""Settings of other consumers that a share consumer refuses, as the Java client does, and why."""


class ShareConsumerSettings(TypedDict, total=False):
    """The settings of `ShareConsumerConfig` as keyword arguments (PEP 692)."""

    group_id: Required[str]
    url: str
    token: str
    client_id: str
    client_rack: str | None
    acknowledgement_mode: Literal["implicit", "explicit"]
    concurrency: int
    auto_renew: bool
    max_processing_s: int
    max_poll_interval_ms: int
    max_poll_records: int
    request_timeout_ms: int
    max_wait_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    fetch_wait_ms: int
    consumer_timeout_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConsumerConfig(ConsumerConfig):
    """Settings of a `ShareConsumer`. Times are in ms, but for `max_processing_s`.

    Parameters: those of `ConsumerConfig`, except for the ones in `NOT_OF_SHARE_GROUPS`;
    `acknowledgement_mode` "implicit" (what was returned is accepted by the next poll) or "explicit"; `concurrency` how
    many items `run` works on at once; `auto_renew` renews the locks of items that are being worked on, or wait for that
    here, at half of their time; `max_processing_s` how long one item may be worked on, after which it is released to
    other workers; `max_poll_records` most items of one poll, and of one acquire; `max_wait_ms` longest time the server
    may hold an acquire; `fetch_wait_ms` pause before the source is asked again where it ends.
    Raises InvalidConfigurationError.

    Differs from Kafka: an acquire is for 10 items by default, not 500: what waits behind a slow item is not given to
    other workers.
    """

    group_protocol: str = CONSUMER
    max_poll_records: int = 10
    acknowledgement_mode: str = IMPLICIT
    concurrency: int = 1
    auto_renew: bool = True
    max_processing_s: int = 300

    def __post_init__(self) -> None:
        # Without arguments, super() does not find the class of a dataclass with slots.
        super(ShareConsumerConfig, self).__post_init__()
        if self.acknowledgement_mode not in (IMPLICIT, EXPLICIT):
            raise InvalidConfigurationError(
                "acknowledgement_mode", f"{self.acknowledgement_mode!r}: expected {IMPLICIT!r} or {EXPLICIT!r}"
            )
        if not isinstance(self.auto_renew, bool):
            raise InvalidConfigurationError("auto_renew", f"{self.auto_renew!r}: expected True or False")

    @classmethod
    def elsewhere(cls) -> Mapping[str, str]:
        """Settings that only other consumers have."""
        return NOT_OF_SHARE_GROUPS
