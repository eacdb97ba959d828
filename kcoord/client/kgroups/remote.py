"""The service at an address, and the token for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kcoord.client.http import make_client
from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import UsageError

TOKEN_VARIABLE = "KCOORD_TOKEN"  # noqa: S105 - the name of a variable


@contextmanager
def service_at(url: str, token_file: str | None, timeout_ms: int) -> Iterator[Api]:
    """The service at `url`, with the token of `token_file`, else of KCOORD_TOKEN. Raises UsageError."""
    token = _token(token_file)
    with make_client() as client:
        yield Api(client, url, token, timeout_ms)


def _token(path: str | None) -> str:
    """The token for --url. Raises UsageError if none is given, without quoting what was found."""
    if path is None:
        token, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    else:
        where = f"the file {path!r}"
        try:
            token = Path(path).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            what = "it does not contain a token" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise UsageError(f"Option --token-file: {where} cannot be read: {what}") from None
    token = token.strip()
    if not token:
        raise UsageError(f"Option --url needs a token: --token-file FILE or {TOKEN_VARIABLE}; {where} is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"Option --url needs a token, and {where} does not contain a valid one")
    return token
