"""Requests that the service itself sends: to webhooks, and to the provider that people sign in at.

httpx limits each read, so a peer that sends a line now and then would hold a caller for as long as it likes. Here one
deadline counts for connecting, sending, the head and the body together, and the size of the answer is limited.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

LARGEST_ANSWER = 1_048_576
"""Bytes of a body."""


class OutgoingError(Exception):
    """There was no usable answer. The text says why, without the address: addresses may hold secrets."""


class AnswerTooLarge(OutgoingError):
    """The body has more than LARGEST_ANSWER bytes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer answered."""

    status: int
    body: bytes


async def exchange(
    method: str,
    url: str,
    seconds: float,
    *,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    form: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
    through_proxy: bool = False,
    reads_body: bool = True,
) -> Answer:
    """Send one request and read its answer, all within `seconds`. Redirects are not followed.

    `through_proxy`: by the proxy of the environment (HTTPS_PROXY and the like), if there is one; `reads_body`: else
    the answer's is "". Raises OutgoingError, AnswerTooLarge.
    """
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(verify=_authorities(), timeout=None, trust_env=through_proxy) as client,  # noqa: S113
            client.stream(method, url, headers=headers, content=content, data=form, auth=auth) as answer,
        ):
            return Answer(answer.status_code, await _read(answer) if reads_body else b"")
    except TimeoutError as error:
        raise OutgoingError(f"no answer within {seconds:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OutgoingError(f"{type(error).__name__}: the address could not be reached") from error


@functools.cache
def _authorities() -> ssl.SSLContext:
    """Read once, as that takes tens of milliseconds. From SSL_CERT_FILE or SSL_CERT_DIR, if one is set."""
    return httpx.create_ssl_context()


async def _read(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise AnswerTooLarge(f"the answer has more than {LARGEST_ANSWER} bytes")
    return bytes(body)
