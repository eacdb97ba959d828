"""Five times what a server can do of one class of requests, for seconds: members stay, and the rest is told when.

`python -m tests.bench.overload` does it for two minutes each; docs/high-availability.md has what it found.
"""

from __future__ import annotations

import pytest

from tests.bench import overload

pytestmark = [
    pytest.mark.processes,
    pytest.mark.whole("a server under five times its capacity; the default has each limit by itself"),
]

SECONDS = 2.0


@pytest.mark.parametrize("name", overload.CLASSES)
async def test_members_stay(database: str, name: str) -> None:
    found = await overload.run(database, name, SECONDS)
    assert found.flood is not None
    assert (found.others, found.removed, found.unready) == ([], 0, 0), found
    assert found.flood.due > found.capacity * SECONDS * 2, "it was offered more than it can do"
    told = found.flood.answered.get(503, 0)
    assert found.flood.retry_after == told, "each refusal says when to try again"
    assert set(found.flood.answered) <= {0, 200, 503}
    assert told > 0 or name != "lists", "they wait in a queue, which is short"
