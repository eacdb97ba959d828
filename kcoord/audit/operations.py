"""Refusals of the data plane and of Kafka clients in the audit, behind the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcoord.audit import caller as callers
from kcoord.audit.acts import KAFKA
from kcoord.audit.recording import Act
from kcoord.audit.refusals import Refusals, is_temporary
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import BY_CODE, Error, ProtocolError

SIGN_IN = "sasl_authenticate"

NOT_ALLOWED = frozenset(
    {
        Error.SASL_AUTHENTICATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""Errors that say who may not, rather than what is wrong."""


def is_refusal(operation: str, error: ProtocolError) -> bool:
    """Whether an error belongs in the audit: the caller may not do this, or a change was refused for good."""
    return error.error in NOT_ALLOWED or (operation in KAFKA and not is_temporary(error.action))


def note_error(runtime: Runtime, operation: str, error: ProtocolError) -> None:
    """Record that the current caller was refused an operation as a whole."""
    act = KAFKA.get(operation, "request")
    refused = Act(act, "operation", operation, reason=error.detail, error=error.error.name)
    runtime.get(Refusals).note_later(refused, callers.current())


def note_refusals(runtime: Runtime, api: str, answer: Mapping[str, Any] | None) -> None:
    """Record what an answer to a Kafka client refuses, if the API is one that changes things: each name on its own."""
    act = KAFKA.get(api)
    if act is None or answer is None:
        return
    for entry in (entry for part in answer.values() if isinstance(part, list | tuple) for entry in part):
        code = entry.get("error_code", 0)
        known = BY_CODE.get(code)
        if code and not (known is not None and is_temporary(known.value.action)):
            name = entry.get("name") or entry.get("resource_name") or entry.get("group_id") or ""
            reason = entry.get("error_message") or ""
            resource = "topic" if act.startswith("topic") else "group"
            refused = Act(act, resource, str(name), reason=str(reason), error=str(code) if known is None else known.name)
            runtime.get(Refusals).note_later(refused, callers.current())
