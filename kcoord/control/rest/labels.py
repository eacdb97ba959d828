"""The rules of labels: names and values that users attach to topics and groups."""

from __future__ import annotations

from collections.abc import Mapping

from kcoord.protocol.errors import Error, ProtocolError

MAX_LABELS = 64
MAX_LABEL_NAME = 63
MAX_LABEL_VALUE = 255


def number_fault(number: int) -> str:
    """What is wrong with this number of labels of one thing; "" if nothing."""
    return f"there are {number} labels; at most {MAX_LABELS}" if number > MAX_LABELS else ""


def name_fault(name: str) -> str:
    """What is wrong with the name of a label; "" if nothing."""
    if not 1 <= len(name) <= MAX_LABEL_NAME:
        return f"a label name has 1 to {MAX_LABEL_NAME} characters"
    return _unstorable(name)


def value_fault(value: str) -> str:
    """What is wrong with the value of a label; "" if nothing."""
    if len(value) > MAX_LABEL_VALUE:
        return f"a label value has at most {MAX_LABEL_VALUE} characters"
    return _unstorable(value)


def merged(labels: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The labels after the changes, by name; None removes one.

    Raises ProtocolError INVALID_REQUEST, naming the label, for a change that breaks a rule, or if too many result.
    """
    for name, value in changes.items():
        if fault := name_fault(name) or ("" if value is None else value_fault(value)):
            raise _invalid(f"labels.{name[:MAX_LABEL_NAME]}", fault)
    after = {**labels, **changes}
    result = {name: value for name, value in sorted(after.items()) if value is not None}
    if fault := number_fault(len(result)):
        raise _invalid("labels", fault)
    return result


def _unstorable(text: str) -> str:
    """Postgres stores no NUL, and UTF-8 has no half of a surrogate pair."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        return "a label has no NUL and no unpaired surrogates"
    return ""


def _invalid(field: str, fault: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REQUEST, f"{field}: {fault}", fields={"field": field})
