"""Errors that end a run. The text of each is one line for an operator: what is wrong, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_REASON = 500


class JobError(Exception):
    """A run cannot continue. Its text is shown unchanged, so it holds no credentials."""


class RunInProgress(JobError):
    """Another run of the kind holds the lock."""


INTERRUPTED = "the run was interrupted by a signal; nothing more was published"


class RunCancelled(JobError):
    """The run was cancelled."""


class SourceError(JobError):
    """A slice could not be read from Postgres. Raised in Python workers; `session.explained` finds its text again."""


class ArchiveDamaged(JobError):
    """Files of the archive are missing, truncated or changed. `problems` has one line for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:5])
        more = f"; and {len(self.problems) - 5} more" if len(self.problems) > 5 else ""
        super().__init__(
            f"the archive is damaged: {shown}{more}. Nothing was published, and no day of the journal will be "
            "dropped; restore the files from a copy, or set another KCOORD_ARCHIVE_PATH"
        )


def first_line(error: BaseException) -> str:
    """The first line of an error's text; its type if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def one_line(error: BaseException) -> str:
    """All lines of an error's text as one; deltalake puts each cause on a line of its own, with an arrow, in colour."""
    lines = (line.strip().removeprefix("↳").strip() for line in _COLOUR.sub("", str(error)).splitlines())
    return ": ".join(filter(None, lines))[:LONGEST_REASON] or type(error).__name__
