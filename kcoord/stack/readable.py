"""Log lines of the services, made readable: a JSON object becomes `level event key=value …`, other text stays."""

from __future__ import annotations

import json

DROPPED = frozenset({"at", "timestamp"})
"""The log puts its own time in front of every line."""


def readable(line: str) -> list[str]:
    """The lines to show for one line that a service wrote; several if it contains a traceback."""
    if not line.startswith("{"):
        return [line]
    try:
        event = json.loads(line)
    except ValueError:
        return [line]
    if not isinstance(event, dict) or "event" not in event:
        return [line]
    head = [str(event.pop("level", "info")), str(event.pop("event"))]
    trace = str(event.pop("exception", "") or "")
    pairs = [f"{key}={_value(value)}" for key, value in event.items() if key not in DROPPED and value is not None]
    return [" ".join([*head, *pairs]).replace("\n", " "), *trace.splitlines()]


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if text and not set(text) & set(' "=\n') else json.dumps(text, ensure_ascii=False)
