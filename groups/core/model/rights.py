"""What a caller may know about topics, as far as the rules of groups depend on it.

Source: consumer.md 4.6: a regular expression matches only what its member may describe.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from groups.core.model.message import message


def everything(name: str) -> bool:
    """Every topic may be described."""
    return True


@message
class TopicRights:
    """Which topics a caller may describe.

    `key` is opaque and equal for callers that may describe the same topics, existing and future ones; "" means all
    topics. `may_describe` answers for the name of one topic; it is not part of what is compared or stored.
    """

    key: str
    may_describe: Callable[[str], bool] = field(compare=False)


UNLIMITED = TopicRights("", everything)
"""The rights of callers that may describe every topic."""
