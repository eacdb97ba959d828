"""Which state the catalogue of topics and the settings of groups are in, and the notification that they changed.

Every process keeps a copy of both in memory (`kcoord.process.runtime`); the revision tells whether a copy is still
current. It rises with each change, by a random step: after a restore, a counter could reach the same number again with
different content. Groups store the revision of the topics that they were last compared with, so they are protected in
the same way.
"""

from __future__ import annotations

from enum import Enum

from kcoord.database.notifications import CONFIG
from kcoord.database.notifications import TOPICS as TOPICS_CHANNEL
from kcoord.database.pool import Connection, Database
from kcoord.database.sql import queries

Q = queries("groups")


class Subject(str, Enum):
    """What has a revision."""

    TOPICS = "topics"
    CONFIGS = "configs"

    @property
    def channel(self) -> str:
        """The channel of the notifications that says it has changed."""
        return {Subject.TOPICS: TOPICS_CHANNEL, Subject.CONFIGS: CONFIG}[self]


async def lock(connection: Connection, subject: Subject) -> None:
    """Raise the revision in the caller's transaction. Others that change the same subject wait until it ends.

    A transaction that also locks other rows does this last, so that transactions cannot deadlock.
    """
    await connection.execute(Q.bump_revision.encode(), {"subject": subject.value})


async def tell(connection: Connection, subject: Subject, payload: str = "") -> None:
    """Tell every process about the change, if and when the caller's transaction commits."""
    await connection.execute(Q.notify.encode(), {"channel": [subject.channel], "group_id": [payload]})


async def read(db: Database, connection: Connection, subject: Subject) -> int:
    """The revision, as the caller's transaction sees it; 0: it was never changed."""
    return int(await db.value(connection, Q.read_revision, {"subject": subject.value}) or 0)
