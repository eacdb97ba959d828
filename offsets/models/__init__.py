"""The schema of offsets. Rows are written only by the stores of this app."""

from offsets.models.alerts import Alert, AlertMessage, AlertReceiver, AlertRule
from offsets.models.committed import CommittedOffset, DeletedTopic, OffsetCommitLog, RetentionPin
from offsets.models.findings import ReconcileFinding
from offsets.models.plans import OffsetPlan, PlannedOffset
from offsets.models.samples import GroupLag, LagPeak, LagSample, TopicLag, TopicTotal, WatermarkSample
from offsets.models.share import ShareDead, ShareEnded, ShareLock, SharePartition, ShareRetry
from offsets.models.spark_runs import ArchivedDay, SparkRun
from offsets.models.transactions import PendingOffset, Producer
from offsets.models.verdicts import Activity, GroupVerdict, VerdictRun

__all__ = [
    "Activity",
    "Alert",
    "AlertMessage",
    "AlertReceiver",
    "AlertRule",
    "ArchivedDay",
    "CommittedOffset",
    "DeletedTopic",
    "GroupLag",
    "GroupVerdict",
    "LagPeak",
    "LagSample",
    "OffsetCommitLog",
    "OffsetPlan",
    "PendingOffset",
    "PlannedOffset",
    "Producer",
    "ReconcileFinding",
    "RetentionPin",
    "ShareDead",
    "ShareEnded",
    "ShareLock",
    "SharePartition",
    "ShareRetry",
    "SparkRun",
    "TopicLag",
    "TopicTotal",
    "VerdictRun",
    "WatermarkSample",
]
