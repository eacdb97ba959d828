"""Requests to the provider: bounded in time, size and number, and never redirected. Addresses are checked before."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx

from frontend.identity.refusals import Reason, SignInRefused

LARGEST_ANSWER = 1_048_576
MOST_AT_ONCE = 16
"""Requests to the provider of one process: each holds a thread while the provider is silent."""

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
    ends_at = time.monotonic() + timeout_seconds
    try:
        with (
            _place(timeout_seconds),
            httpx.Client(timeout=timeout_seconds, follow_redirects=False) as client,
            client.stream(method, url, data=data, auth=auth, headers=headers) as answer,
        ):
            body = _read(answer, ends_at)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SignInRefused(Reason.UNREACHABLE, f"{method} {url}: {type(error).__name__}: {error}") from error
    if answer.status_code >= 500:
        raise SignInRefused(Reason.UNREACHABLE, f"{method} {url}: answered {answer.status_code}")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SignInRefused(Reason.UNEXPECTED, f"{method} {url}: answered {answer.status_code} without a JSON object")
    return answer.status_code, found


@contextmanager
def _place(seconds: float) -> Iterator[None]:
    if not _places.acquire(timeout=seconds):
        raise SignInRefused(Reason.UNREACHABLE, f"{MOST_AT_ONCE} requests to the provider are waiting already")
    try:
        yield
    finally:
        _places.release()


def _read(answer: httpx.Response, ends_at: float) -> bytes:
    """The body. The limit of httpx is for each read, so a provider that sends a byte at a time is stopped here."""
    body = bytearray()
    for piece in answer.iter_bytes():
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise SignInRefused(Reason.UNEXPECTED, f"{answer.url}: more than {LARGEST_ANSWER} bytes")
        if time.monotonic() > ends_at:
            raise SignInRefused(Reason.UNREACHABLE, f"{answer.url}: the answer takes too long")
    return bytes(body)
