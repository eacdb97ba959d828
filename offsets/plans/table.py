"""Offset plans as a table, for management commands."""

from __future__ import annotations

from collections.abc import AsyncIterator

from kcoord.database.paging import MAX_LIMIT
from offsets.core.plan_types import Line
from offsets.plans.service import PlanService
from offsets.plans.summary import PlanHeader

HEADINGS = ("GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET", "NOTE")
WIDTHS = (30, 30, 10, 15, 15)


async def plan_lines(service: PlanService, plan: PlanHeader) -> AsyncIterator[Line]:
    """All lines of a plan."""
    cursor: str | None = None
    while True:
        page = await service.lines(plan, cursor=cursor, limit=MAX_LIMIT)
        for line in page.items:
            yield line
        cursor = page.next_cursor
        if cursor is None:
            return


def cells(group_id: str, line: Line) -> tuple[str, ...]:
    """The columns of a line of a plan; `-`: no offset."""
    return group_id, line.topic, str(line.partition), shown(line.old_offset), shown(line.new), line.note


def shown(offset: int | None) -> str:
    """An offset in a table."""
    return "-" if offset is None else str(offset)


def table_row(columns: tuple[str, ...]) -> str:
    """A line of the table."""
    padded = [cell.ljust(width) for cell, width in zip(columns, WIDTHS, strict=False)]
    return " ".join([*padded, *columns[len(WIDTHS) :]]).rstrip()
