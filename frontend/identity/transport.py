"""Requests to the provider: bounded in time, size and number, and never redirected. Addresses are checked before."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from frontend.identity.refusals import Reason, SignInRefused
from kcoord.door.http.outgoing import Answer, AnswerTooLarge, OutgoingError, exchange
from kcoord.process import bridge
from kcoord.protocol.errors import ProtocolError

MOST_AT_ONCE = 16
"""Requests to the provider of one process: each holds a thread while the provider is silent."""
SPARE_SECONDS = 5.0
"""What a busy loop may take besides."""

_places = threading.BoundedSemaphore(MOST_AT_ONCE)


def send(
    method: str,
    url: str,
    timeout_seconds: float,
    *,
    data: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    bearer: str = "",
) -> tuple[int, dict[str, object]]:
    """Status and JSON object of the answer. Raises SignInRefused: UNREACHABLE, or UNEXPECTED for anything else."""
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})

    async def ask() -> Answer:
        return await exchange(method, url, timeout_seconds, headers=headers, form=data, auth=auth, through_proxy=True)

    try:
        with _place(timeout_seconds):
            answer = bridge.call(lambda runtime: ask(), timeout_seconds + SPARE_SECONDS)
    except AnswerTooLarge as error:
        raise SignInRefused(Reason.UNEXPECTED, f"{method} {url}: {error}") from error
    except (OutgoingError, ProtocolError) as error:
        raise SignInRefused(Reason.UNREACHABLE, f"{method} {url}: {error} {error.__cause__ or ''}".strip()) from error
    if answer.status >= 500:
        raise SignInRefused(Reason.UNREACHABLE, f"{method} {url}: answered {answer.status}")
    try:
        found = json.loads(answer.body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SignInRefused(Reason.UNEXPECTED, f"{method} {url}: answered {answer.status} without a JSON object")
    return answer.status, found


@contextmanager
def _place(seconds: float) -> Iterator[None]:
    if not _places.acquire(timeout=seconds):
        raise SignInRefused(Reason.UNREACHABLE, f"{MOST_AT_ONCE} requests to the provider are waiting already")
    try:
        yield
    finally:
        _places.release()
