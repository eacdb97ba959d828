"""Retention through the core: its rule, on the groups and offsets of dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groups.core.model.group import Group
from kcoord.config import Config
from offsets.core.retention import NO_PINS, StoredOffset, may_go, rule_of
from offsets.core.types import Millis
from tests.conformance.cases import Case, Suite
from tests.conformance.core_offsets import CoreOffsets
from tests.conformance.driver import Response

RETENTION, INTERVAL = "offsets.retention.minutes", "offsets.retention.check.interval.ms"
MINUTE_MS = 60_000


class CoreRetention:
    """One pass over all groups. `next_at`: when the scheduled one comes; None: the convention has none."""

    def __init__(self, case: Case, offsets: CoreOffsets, start: Millis) -> None:
        self._offsets = offsets
        config = Config({name: case.config[name] for name in (RETENTION, INTERVAL) if name in case.config})
        self._retention_ms: Millis = config.int(RETENTION) * MINUTE_MS
        self._interval_ms: Millis = config.int(INTERVAL)
        self.next_at = start + self._interval_ms if case.suite is not Suite.CONSUMER else None

    def run(self, groups: Mapping[str, Group], delete: Callable[[str], None], now: Millis) -> Response:
        """Remove what has expired, and groups with nothing left by `delete`."""
        tombstones: list[list[str | int]] = []
        deleted: list[str] = []
        for group_id, group in list(groups.items()):
            rule = rule_of(group, NO_PINS, self._retention_ms)
            pending = self._offsets.transactions.of(group_id)
            for (topic, partition), stored in self._offsets.of(group_id).items():
                assert stored.commit_timestamp is not None
                times = stored.commit_timestamp, stored.expire_timestamp
                offset = StoredOffset(topic, partition, *times, (topic, partition) in pending)
                if rule.expired(offset, now):
                    tombstones.append([group_id, topic, partition])
                    self._offsets.expire(group_id, topic, partition)
            if may_go(group, NO_PINS, offsets_left=bool(self._offsets.of(group_id) or pending)):
                delete(group_id)
                deleted.append(group_id)
        return {"tombstones": tombstones, "deleted_groups": deleted}

    def is_due(self, now: Millis) -> bool:
        """The scheduled pass has to run now; the next comes an interval later."""
        if self.next_at is None or now < self.next_at:
            return False
        self.next_at = now + self._interval_ms
        return True
