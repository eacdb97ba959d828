"""Refusals of the data plane and of Kafka clients in the audit, behind the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


def note_refusals(runtime: Runtime, api: str, group_id: str, answer: Mapping[str, Any] | None) -> None:
    """Record what an answer to a Kafka client refuses, if the API is one that changes things: each name on its own.

    `group_id`: the group that the request names, "" if its answer names what it is about.
    """
    act = KAFKA.get(api)
    if act is None or answer is None:
        return
    resource = "topic" if act.startswith("topic") else "group"
    for code, name, reason in _refused(answer, group_id):
        error = BY_CODE.get(code)
        if error is None or not is_temporary(error.value.action):
            refused = Act(act, resource, name, reason=reason, error=str(code) if error is None else error.name)
            runtime.get(Refusals).note_later(refused, callers.current())


def _refused(answer: Mapping[str, Any], group_id: str) -> Iterator[tuple[int, str, str]]:
    """The errors of an answer, each with the name that it is about and the reason."""
    if answer.get("error_code"):
        yield answer["error_code"], group_id, str(answer.get("error_message") or "")
    for entry in _entries(answer):
        name = str(entry.get("name") or entry.get("resource_name") or entry.get("group_id") or "")
        if entry.get("error_code"):
            yield entry["error_code"], name, str(entry.get("error_message") or "")
        for part in _entries(entry):
            if part.get("error_code"):
                yield part["error_code"], group_id, f"topic {name!r}, partition {part.get('partition_index')}"


def _entries(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The mappings in the lists of a part of an answer."""
    for value in part.values():
        if isinstance(value, list | tuple):
            yield from (entry for entry in value if isinstance(entry, Mapping))
