"""The thresholds of verdicts on groups. Part of the table in `kcoord.config`; the rules are `offsets.core.verdicts`."""

from __future__ import annotations

from kcoord.setting import Setting

VERDICTS: tuple[Setting, ...] = (
    Setting(
        "verdict.check.interval.ms", 5_000, "ms", "How often all groups are judged by their members.", 1_000, 600_000
    ),
    Setting("verdict.stuck.ms", 60_000, "ms", "Longest rebalance of a group that is not stuck.", 1_000, 86_400_000),
    Setting(
        "verdict.stalled.ms",
        300_000,
        "ms",
        "How long the owner of a partition with unread records may make no progress, and items wait or stay unsettled.",
        1_000,
        604_800_000,
    ),
    Setting(
        "verdict.uncovered.ms", 60_000, "ms", "How long a group is Stable before it is uncovered.", 1_000, 86_400_000
    ),
    Setting("verdict.flapping.rebalances", 10, "rebalances", "Rebalances within 10 min that are flapping.", 2, 10_000),
    Setting(
        "verdict.expiring.ms", 86_400_000, "ms", "How long before they expire offsets are announced.", 1_000, 2**53
    ),
)
