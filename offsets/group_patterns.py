"""Regular expressions on group ids, in the syntax of RE2 as far as Postgres reads it in the same way.

Postgres matches them: 100,000 ids take a few hundredths of a second there, and 0.5 to 3 s if they are read and given
to RE2 one by one. RE2 still has to accept the expression, so back-references and look-around, which can take
exponential time, never get there; a statement timeout ends what is slow all the same. The classes of letters, digits
and blanks are those of Postgres, which are not limited to ASCII.
"""

from __future__ import annotations

import re

from groups.configs import regex_error
from groups.readmodel import LONGEST_REGEX
from kcoord.protocol.errors import Error, ProtocolError

TIMEOUT_MS = 2_000
"""How long each statement of a list with a regular expression may take."""

_PIECE = re.compile(r"\\(?P<escaped>.)|\(\?(?P<group>[a-zA-Z<-]*:?)", re.DOTALL)
_SAME_LETTERS = "dDwWsSntrfvA"
_OTHER_LETTERS = {"b": r"\y", "B": r"\Y", "z": r"\Z"}


def for_postgres(pattern: str) -> str:
    """The expression as Postgres writes it. Raises INVALID_REGULAR_EXPRESSION."""
    if len(pattern) > LONGEST_REGEX:
        raise _refused(f"it has {len(pattern)} characters; at most {LONGEST_REGEX} are allowed")
    if wrong := regex_error(pattern):
        raise _refused(wrong)
    return _PIECE.sub(_translated, pattern)


def unreadable(detail: str) -> ProtocolError:
    """The error for an expression that RE2 reads and Postgres does not. `detail`: what Postgres says."""
    return _refused(detail.removeprefix("invalid regular expression: "))


def too_slow() -> ProtocolError:
    """The error for an expression that does not end in time."""
    return _refused(
        f"it took longer than {TIMEOUT_MS // 1_000} s; use a simpler one, or narrow the list by other filters"
    )


def _refused(reason: str) -> ProtocolError:
    return ProtocolError(Error.INVALID_REGULAR_EXPRESSION, f"regex: {reason}", fields={"field": "regex"})


def _translated(match: re.Match[str]) -> str:
    escaped, group = match["escaped"], match["group"]
    if escaped is None:
        if group == ":" or (group == "i" and match.start() == 0):
            return match[0]
        raise _refused("of what begins with '(?', only '(?:' is possible, and '(?i)' at the beginning")
    if not escaped.isalnum() or escaped in _SAME_LETTERS:
        return match[0]
    if escaped in _OTHER_LETTERS:
        return _OTHER_LETTERS[escaped]
    raise _refused(f"'\\{escaped}' is not possible here")
