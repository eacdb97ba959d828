"""Ends of logs that were reported earlier than before: what --describe says, and --accept-truncation."""

from __future__ import annotations

import pytest

from groups.topics import TopicService, Watermark
from tests.kcoord.kgroups.conftest import Committer, Kgroups

pytestmark = pytest.mark.usefixtures("orders")


async def test_an_earlier_end_is_told_and_accepted(kgroups: Kgroups, commit: Committer, topics: TopicService) -> None:
    await commit("nightly", {0: 90, 1: 1})
    earlier = [Watermark(0, 0, 30), Watermark(1, 0, 5)]
    await topics.set_watermarks("orders", earlier, principal="Token:probe")
    told = await kgroups("--describe", "--group", "nightly")
    assert "orders-0 ends at 30 by a report of Token:probe, but at 100 by others" in told.err
    assert "--accept-truncation --topic orders:1" in told.err

    accepted = await kgroups("--accept-truncation", "--topic", "orders:0")
    assert accepted.rows == [["TOPIC", "PARTITION", "LOG-END-OFFSET"], ["orders", "0", "30"]]
    marks = await topics.watermarks("orders")
    assert [(m.log_start_offset, m.log_end_offset, m.lower_end_offset) for m in marks.items] == [
        (10, 30, None), (0, 50, 5), (0, 7, None),
    ]  # fmt: skip
    again = await kgroups("--accept-truncation", "--topic", "orders:0")
    assert (again.status, again.out) == (0, "")
    assert "No earlier ends" in again.err


async def test_what_is_not_there_is_an_error(kgroups: Kgroups) -> None:
    run = await kgroups("--accept-truncation", "--topic", "nothing")
    assert run.status == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in run.out
    without = await kgroups("--accept-truncation")
    assert without.status != 0
    assert "takes exactly one of these options: --topic" in without.err
