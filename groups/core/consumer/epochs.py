"""The group epoch, and the digest of the subscribed topics that decides whether it must rise.

Source: consumer.md 2.5 (steps 3 and 4) and 4.
"""

from __future__ import annotations

from hashlib import sha256

from groups.core.model.causes import Cause
from groups.core.model.consumer_group import EpochGroup
from groups.core.model.consumer_records import GroupEpochBumped, MetadataChecked
from groups.core.model.turn import Turn
from groups.core.model.types import TopicView


def metadata_hash(group: EpochGroup, topics: TopicView) -> str:
    """Digest of the subscribed topics that exist: their ids, names and partition counts. "" if none exists."""
    known = [topics.by_name[name] for name in sorted(group.subscribed_topics()) if name in topics.by_name]
    if not known:
        return ""
    lines = "\n".join(f"{topic.topic_id}\t{topic.name}\t{topic.partitions}" for topic in known)
    return sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def refresh_epoch(turn: Turn, cause: Cause | None, member_id: str | None) -> None:
    """Bump the group epoch for `cause`, or because the subscribed topics changed since the last look.

    Nothing is compared while the catalogue is unchanged. Differs from Kafka: its groups are notified of changes of
    their topics and forget them on a restart; ours compare the version of the catalogue, which they store (consumer.md
    4.4).
    """
    group, topics = turn.consumer, turn.env.topics
    if cause is None and group.metadata_version == topics.version:
        return
    digest = metadata_hash(group, topics)
    if cause is None and digest != group.metadata_hash:
        cause = Cause.TOPICS_CHANGED
    if cause is None:
        turn.emit(MetadataChecked(topics.version, turn.now))
        return
    turn.emit(GroupEpochBumped(group.group_epoch + 1, cause, member_id, digest, topics.version, turn.now))
