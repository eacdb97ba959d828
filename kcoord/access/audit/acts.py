"""The acts that the audit records. Operations of the API and pages name theirs where they are declared.

What is refused is recorded under that name, and as `request` without one. When something succeeds, the service
that does the work records it. `tests/kcoord/audit/test_walk.py` proves that for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

ACTS: Mapping[str, str] = {
    "group.create": "Group created",
    "group.delete": "Group deleted",
    "group.hold": "Group held",
    "group.release": "Hold ended",
    "group.config": "Settings changed",
    "group.labels": "Labels changed",
    "member.remove": "Member removed",
    "offsets.plan": "Reset planned",
    "offsets.approve": "Plan approved",
    "offsets.apply": "Plan applied",
    "offsets.undo": "Plan undone",
    "offsets.delete": "Offsets deleted",
    "offsets.pin": "Offsets pinned",
    "offsets.unpin": "Pin removed",
    "offsets.import": "Offsets imported",
    "offsets.restore": "Offsets restored",
    "offsets.repair": "Offsets repaired",
    "items.release": "Items released",
    "items.reject": "Items rejected",
    "dead-letters.replay": "Dead letters replayed",
    "dead-letters.discard": "Dead letters discarded",
    "share-offsets.alter": "Share offsets changed",
    "share-offsets.delete": "Share offsets deleted",
    "alert.rule": "Alert rule changed",
    "alert.delete": "Alert rule deleted",
    "alert.mute": "Alert muted",
    "alert.test": "Receiver tested",
    "receiver.change": "Receiver changed",
    "receiver.delete": "Receiver deleted",
    "topic.create": "Topic created",
    "topic.update": "Topic changed",
    "topic.delete": "Topic deleted",
    "token.create": "Token created",
    "token.change": "Token changed",
    "token.rotate": "Token rotated",
    "token.delete": "Token revoked",
    "rule.add": "Rule added",
    "rule.remove": "Rule removed",
    "quota.change": "Quota changed",
    "run.start": "Spark run started",
    "run.cancel": "Spark run cancelled",
    "account.create": "Account created",
    "account.change": "Account changed",
    "account.delete": "Account deleted",
    "account.password": "Password changed",
    "role.create": "Group of people created",
    "role.change": "Group of people changed",
    "role.delete": "Group of people deleted",
    "row.create": "Row added in the admin",
    "row.change": "Row changed in the admin",
    "row.delete": "Row deleted in the admin",
    "session.sign-in": "Signed in",
    "session.sign-out": "Signed out",
    "request": "Request",
    "audit.trim": "Old records removed",
}
"""Every act by name, with its label."""

RESOURCES: Mapping[str, str] = {
    "alert.rule": "alert-rule",
    "alert.delete": "alert-rule",
    "alert.test": "receiver",
    "member": "group",
    "offsets": "group",
    "items": "group",
    "dead-letters": "group",
    "share-offsets": "group",
    "session": "account",
    "request": "path",
}
"""What acts are about where the first part of their names does not say it: by act, or by that part of several."""


def resource_of(act: str) -> str:
    """What kind of thing an act is about."""
    first = act.partition(".")[0]
    return RESOURCES.get(act) or RESOURCES.get(first, first)
