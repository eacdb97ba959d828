"""Settings of share groups. Names, defaults and bounds are Kafka's (KIP-932, 1240), except where it has none.

Source: share.md 6.
"""

from __future__ import annotations

from kcoord.setting import Setting

_INT_MAX = 2_147_483_647
_DAY_MS = 86_400_000


def _bounded(
    name: str, default: int, unit: str, within: tuple[int, int], help: str, least: int = 1, most: int = _INT_MAX
) -> tuple[Setting, ...]:
    """`group.share.` and the name, and the settings that say how small and large it may be in any group."""
    smallest, largest = within
    return (
        Setting(f"group.share.{name}", default, unit, help, least, most),
        Setting(f"group.share.min.{name}", smallest, unit, f"Smallest {_words(name)} of any share group.", least, most),
        Setting(f"group.share.max.{name}", largest, unit, f"Largest {_words(name)} of any share group.", least, most),
    )


def _words(name: str) -> str:
    return name.removesuffix(".ms").replace(".", " ")


BOUNDED = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "assignment.interval.ms",
    "record.lock.duration.ms",
    "delivery.count.limit",
    "partition.max.record.locks",
)
"""Those of which groups may have others, between two more settings of the server; of the third these are constants."""

SHARE: tuple[Setting, ...] = (
    *_bounded(BOUNDED[0], 45_000, "ms", (45_000, 60_000), "Session timeout of a share group's members."),
    *_bounded(BOUNDED[1], 5_000, "ms", (5_000, 15_000), "How often members of a share group send heartbeats."),
    Setting(f"group.share.{BOUNDED[2]}", 1_000, "ms", "Least time between two targets of a share group.", 0, _INT_MAX),
    Setting("group.share.max.size", 200, "members", "Most members of a share group.", 1, _INT_MAX),
    *_bounded(
        BOUNDED[3], 30_000, "ms", (15_000, 60_000), "How long an acquired item is locked.", least=1_000, most=3_600_000
    ),
    *_bounded(BOUNDED[4], 5, "deliveries", (2, 10), "How often an item is delivered at most.", least=1, most=100),
    *_bounded(BOUNDED[5], 2_000, "items", (100, 4_000), "Most locked items of a partition.", most=100_000),
    Setting("group.share.release.backoff.ms", 0, "ms", "After how long a released item is due again.", 0, _DAY_MS),
    Setting("group.share.release.backoff.max.ms", 60_000, "ms", "Longest back-off of a released item.", 0, _DAY_MS),
    Setting(
        "group.share.release.backoff.multiplier",
        2,
        "times",
        "By how much the back-off grows with each delivery.",
        1,
        100,
    ),
    Setting(
        "group.share.auto.offset.reset",
        "earliest",
        "offset",
        "Where partitions begin for a share group that names their topic: at the first known offset, or at the end.",
        choices=("earliest", "latest"),
    ),
)
