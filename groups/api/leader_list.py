"""The members of a large group as JSON, for its leader's join.

What the answer says of a member is encoded once and kept, so the rebalances that follow encode only the members that
are new or have other metadata. The loop has its turn all along: the answer of 5,000 members is a megabyte.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from groups.api import convert
from groups.core.model.replies import JoinedMember, JoinReply
from kcoord.process import off_loop
from kcoord.process.runtime import Runtime

FEW = 50
"""Members of a group whose list is encoded with its answer: keeping the parts would cost more than it saves."""

Parts = dict[str, tuple[JoinedMember, bytes]]


class LeaderLists:
    """The encoded members of groups, by group and member id; of as many groups as the process keeps in memory."""

    def __init__(self, runtime: Runtime) -> None:
        self._most = runtime.config.int("cache.max.groups")
        self._encoder = msgspec.json.Encoder()
        self._kept: OrderedDict[tuple[str, bool], Parts] = OrderedDict()

    async def encoded(self, group_id: str, reply: JoinReply) -> msgspec.Raw | None:
        """The members of a leader's answer as a JSON array; None: they are few, and encoded with it."""
        if len(reply.members) <= FEW:
            return None
        key = group_id, convert.decodes(reply)
        parts: Parts = {}
        await off_loop.in_slices(self._encode(reply, self._kept.pop(key, {}), parts))
        self._kept[key] = parts
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return msgspec.Raw(b"[%b]" % b",".join([part for _, part in parts.values()]))

    def _encode(self, reply: JoinReply, before: Parts, parts: Parts) -> Iterator[None]:
        decodes = convert.decodes(reply)
        for member in reply.members:
            known = before.get(member.member_id)
            if known is None or known[0] != member:
                known = member, self._encoder.encode(convert.joined_member(member, decodes=decodes))
            parts[member.member_id] = known
            yield
