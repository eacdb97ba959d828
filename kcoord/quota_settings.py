"""The limits of principals that have no quota of their own. Part of the table in `kcoord.config`.

Source: http-api.md 6.
"""

from __future__ import annotations

from kcoord.setting import Setting

MOST = 10**12

QUOTAS: tuple[Setting, ...] = (
    Setting("quota.heartbeats", 0, "per second", "Heartbeats of one principal at one node; 0: no limit.", 0, MOST),
    Setting(
        "quota.commits",
        0,
        "per second",
        "Commits and fetches of offsets, and calls of transactions; 0: no limit.",
        0,
        MOST,
    ),
    Setting("quota.reads", 0, "per second", "Other requests that change nothing; 0: no limit.", 0, MOST),
    Setting("quota.writes", 0, "per second", "Other requests that change something; 0: no limit.", 0, MOST),
    Setting("quota.bytes", 0, "bytes per second", "Bodies of requests and answers; 0: no limit.", 0, MOST),
    Setting(
        "quota.cpu",
        500,
        "ms per second",
        "CPU time of requests that compute for long (/v1/assign), of which 10 s may be used at once; 0: no limit.",
        0,
        MOST,
    ),
    Setting("quota.members", 0, "per minute", "Joins of new members; 0: no limit.", 0, MOST),
    Setting("quota.groups", 0, "per minute", "New groups; 0: no limit.", 0, MOST),
    Setting("quota.partitions", 0, "per minute", "Partitions of topics created or deleted; 0: no limit.", 0, MOST),
    Setting("quota.connections", 0, "connections", "Open connections of one principal; 0: no limit.", 0, MOST),
    Setting(
        "quota.connections.per.address",
        0,
        "connections",
        "Open connections from one address, for HTTP and for Kafka clients each; 0: no limit.",
        0,
        MOST,
    ),
)
