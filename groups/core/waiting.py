"""The answer to a parked request, whatever the protocol of its group is by now.

Source: classic.md 0.3, 2.6, 3.2, 7.2, 8.6; consumer.md 9.5.
"""

from __future__ import annotations

from groups.core.classic import rebalance as classic
from groups.core.consumer.heartbeat import is_over
from groups.core.model.commands import ParkKind
from groups.core.model.consumer_group import ConsumerGroup, EpochGroup
from groups.core.model.group import Group
from groups.core.model.replies import JoinReply, Parked, Rerun, SyncReply


def answer_for(group: Group | None, parked: Parked) -> JoinReply | SyncReply | Rerun | None:
    """The answer to a request that parked as `parked` says; None: it still waits.

    A join or sync of a group that was converted to the consumer protocol is told to join again. A waiting heartbeat is
    never answered from here: `Rerun` says that deciding it again will.
    """
    if parked.kind is ParkKind.HEARTBEAT:
        return None if isinstance(group, ConsumerGroup) and not is_over(group, parked) else Rerun()
    if isinstance(group, EpochGroup):
        return classic.converted(parked)
    return classic.answer_for(group, parked)
