"""The columns of the list of groups: which are shown, and how the list is sorted by each."""

from __future__ import annotations

from collections.abc import Sequence

from frontend.heads import Column
from groups.readmodel import GroupSort

S = GroupSort


USUAL_SORT = S.SEVERITY
"""Of a list whose address names no order."""
GROUP = Column("group", "Group", S.GROUP_ID, S.GROUP_ID_DESCENDING)
"""Always there: it names the line."""
COLUMNS = (
    Column("state", "State", S.STATE, S.STATE_DESCENDING),
    Column("since", "In state since", S.STATE_SINCE, S.STATE_SINCE_DESCENDING),
    Column("type", "Type", title="The protocol, and what assigns partitions"),
    Column("members", "Members", S.MEMBERS_DESCENDING, S.MEMBERS, number=True),
    Column(
        "partitions", "Partitions", S.PARTITIONS_DESCENDING, S.PARTITIONS, number=True,
        title="Owned, or with a committed offset, as of the last sample", usual=False,
    ),
    Column(
        "generation", "Generation", S.GENERATION_DESCENDING, S.GENERATION, number=True,
        title="Of a consumer group: the group epoch", usual=False,
    ),
    Column(
        "lag", "Lag", S.LAG_DESCENDING, S.LAG, number=True,
        title="Records behind the ends of the logs, as of the last sample",
    ),
    Column(
        "time_lag", "Time lag", S.TIME_LAG_DESCENDING, S.TIME_LAG, number=True,
        title="The next record to read was written so long before the last sample",
    ),
    Column("topics", "Topics"),
    Column(
        "owner", "Owner", S.OWNER, S.OWNER_DESCENDING, title="The label owner of the group, else its team", usual=False
    ),
    Column("labels", "Labels", title="Of the group, not of its topics", usual=False),
    Column(
        "coordinator", "Coordinator", S.COORDINATOR, S.COORDINATOR_DESCENDING,
        title="The node that runs the group's timers", usual=False,
    ),
    Column("changed", "Last change", S.UPDATED, S.UPDATED_ASCENDING, number=True),
)  # fmt: skip
NAMES = tuple(column.name for column in COLUMNS)
USUAL = tuple(column.name for column in COLUMNS if column.usual)

SORTS: Sequence[tuple[GroupSort, str]] = (
    (S.SEVERITY, "Worst first"),
    (S.GROUP_ID, "Name"),
    (S.GROUP_ID_DESCENDING, "Name, from Z to A"),
    (S.STATE, "State"),
    (S.STATE_DESCENDING, "State, from Z to A"),
    (S.STATE_SINCE, "Longest in its state"),
    (S.STATE_SINCE_DESCENDING, "Shortest in its state"),
    (S.MEMBERS_DESCENDING, "Most members"),
    (S.MEMBERS, "Fewest members"),
    (S.GENERATION_DESCENDING, "Highest generation"),
    (S.GENERATION, "Lowest generation"),
    (S.LAG_DESCENDING, "Largest lag"),
    (S.LAG, "Smallest lag"),
    (S.TIME_LAG_DESCENDING, "Largest time lag"),
    (S.TIME_LAG, "Smallest time lag"),
    (S.PARTITIONS_DESCENDING, "Most partitions"),
    (S.PARTITIONS, "Fewest partitions"),
    (S.COORDINATOR, "Coordinator"),
    (S.COORDINATOR_DESCENDING, "Coordinator, from Z to A"),
    (S.OWNER, "Owner"),
    (S.OWNER_DESCENDING, "Owner, from Z to A"),
    (S.UPDATED, "Latest change"),
    (S.UPDATED_ASCENDING, "Earliest change"),
)
"""Every order, and what it is called."""
ALIASES = {"changed": S.UPDATED}
"""Values that older links have."""


def shown_columns(written: str) -> tuple[str, ...] | None:
    """The columns that an address names, `state.lag`, in the order of the table; None if one of them does not exist.

    Nothing: the usual ones. `none`: only the group.
    """
    if not written:
        return USUAL
    names = [] if written == "none" else written.split(".")
    return tuple(name for name in NAMES if name in names) if set(names) <= set(NAMES) else None


def written_columns(names: Sequence[str]) -> str | None:
    """The same for an address; None for the usual columns."""
    return None if tuple(names) == USUAL else ".".join(names) or "none"
