"""The row of a group, which groups of both protocols have."""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from groups.core.model.types import Hold, Millis


class GroupRow(NamedTuple):
    """The columns of `lock_group`. What belongs to the other protocol has its default or is None."""

    id: int
    version: int
    type: str
    state: str
    previous_state: str
    state_since: Millis
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    new_member_added: bool
    join_deadline: Millis | None
    join_delay_ms: Millis | None
    join_remaining_ms: Millis | None
    sync_deadline: Millis | None
    wake_at: Millis | None
    assignment_epoch: int
    assignment_timestamp: Millis
    metadata_hash: str
    metadata_version: int
    has_resolution: bool
    jobs: dict[str, Any] | None
    held_until: Millis | None
    held_by: str | None
    hold_reason: str | None
    version_tag: UUID

    @property
    def hold(self) -> Hold | None:
        """Who keeps members out, and until when."""
        if self.held_until is None:
            return None
        return Hold(self.held_until, self.held_by or "", self.hold_reason or "")


def hold_columns(hold: Hold | None) -> dict[str, Any]:
    """Parameters of a group's row that depend on its hold, for both protocols."""
    return {
        "held_until": hold.until if hold else None,
        "held_by": hold.by if hold else None,
        "hold_reason": hold.reason if hold else None,
    }
