"""The acts that the audit records, and which operations and pages perform them.

An operation or page that is in neither of the tables below is recorded under its own name when it is refused; when it
succeeds, the service that does the work records it. `tests/kcoord/audit/test_walk.py` proves that for all of them.
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

OPERATIONS: Mapping[str, str] = {
    "createGroup": "group.create",
    "deleteGroup": "group.delete",
    "deleteGroups": "group.delete",
    "holdGroup": "group.hold",
    "releaseHold": "group.release",
    "updateGroupConfig": "group.config",
    "updateGroupLabels": "group.labels",
    "kickMember": "member.remove",
    "planOffsets": "offsets.plan",
    "approveOffsetPlan": "offsets.approve",
    "applyOffsetPlan": "offsets.apply",
    "undoOffsetPlan": "offsets.undo",
    "deleteOffsets": "offsets.delete",
    "createPin": "offsets.pin",
    "deletePin": "offsets.unpin",
    "releaseItems": "items.release",
    "rejectItems": "items.reject",
    "replayDeadLetters": "dead-letters.replay",
    "discardDeadLetters": "dead-letters.discard",
    "alterShareOffsets": "share-offsets.alter",
    "deleteShareOffsets": "share-offsets.delete",
    "createAlertRule": "alert.rule",
    "updateAlertRule": "alert.rule",
    "deleteAlertRule": "alert.delete",
    "muteAlert": "alert.mute",
    "testReceiver": "alert.test",
    "createTopic": "topic.create",
    "updateTopic": "topic.update",
    "deleteTopic": "topic.delete",
    "createToken": "token.create",
    "rotateToken": "token.rotate",
    "deleteToken": "token.delete",
    "createAcls": "rule.add",
    "deleteAcls": "rule.remove",
    "alterQuotas": "quota.change",
    "startRun": "run.start",
    "cancelRun": "run.cancel",
}
"""Operations of the API by id."""

PAGES: Mapping[str, str] = {
    "login": "session.sign-in",
    "logout": "session.sign-out",
    "password": "account.password",
    "create-group": "group.create",
    "delete-group": "group.delete",
    "hold-group": "group.hold",
    "kick-member": "member.remove",
    "config": "group.config",
    "labels": "group.labels",
    "pins": "offsets.pin",
    "items": "items.release",
    "dead-letters": "dead-letters.replay",
    "reset-offsets": "offsets.plan",
    "offset-plan": "offsets.apply",
    "delete-offsets": "offsets.delete",
    "start-run": "run.start",
    "cancel-run": "run.cancel",
    "alerts": "alert.mute",
    "create-alert-rule": "alert.rule",
    "alert-rule": "alert.rule",
    "create-token": "token.create",
    "grant": "rule.add",
    "token": "token.change",
}
"""What pages usually do, by the names of their URLs."""

FORMS: Mapping[tuple[str, str], str] = {
    ("group-actions", "hold"): "group.hold",
    ("group-actions", "release"): "group.release",
    ("group-actions", "labels"): "group.labels",
    ("group-actions", "delete"): "group.delete",
    ("alerts", "test"): "alert.test",
    ("alert-rule", "delete"): "alert.delete",
    ("offset-plan", "approve"): "offsets.approve",
    ("offset-plan", "undo"): "offsets.undo",
    ("hold-group", "release"): "group.release",
    ("reset-offsets", "release"): "group.release",
    ("pins", "remove"): "offsets.unpin",
    ("items", "reject"): "items.reject",
    ("dead-letters", "discard"): "dead-letters.discard",
    ("token", "rotate"): "token.rotate",
    ("token", "revoke"): "token.delete",
}
"""Forms of pages that do several things, or not what they usually do, by the name of the URL and the field `act`."""

KAFKA: Mapping[str, str] = {
    "create_topics": "topic.create",
    "delete_topics": "topic.delete",
    "create_partitions": "topic.update",
    "incremental_alter_configs": "group.config",
    "delete_groups": "group.delete",
    "offset_delete": "offsets.delete",
}
"""APIs of Kafka's protocol."""


def resource_of(act: str) -> str:
    """What kind of thing an act is about."""
    first = act.partition(".")[0]
    return RESOURCES.get(act) or RESOURCES.get(first, first)
