"""What keeps the stack from starting, in a sentence for the person who started it."""

from __future__ import annotations

EXIT_STATUS = 2


class StartProblem(Exception):
    """The stack cannot start. The text is one line: what is wrong, and the remedy."""
