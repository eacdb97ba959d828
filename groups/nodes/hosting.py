"""Which groups this process answers for.

With the routing `any` every node answers for every group. With `owner` a request of the API meets the state of the
group's partition at this node: NOT_COORDINATOR, with the owner's URL, or COORDINATOR_LOAD_IN_PROGRESS. Operators' pages
and work without a request are not routed: the store keeps groups correct at whatever node they are changed.

Source: offsets.md 9.2, 9.3; classic.md 8.6; architecture.md 6; docs/models, rules 1 and 17.
"""

from __future__ import annotations

from collections.abc import Callable

from groups.core.model.group import partition_of
from groups.core.shards import Shards, ShardState
from groups.nodes.directory import NodeDirectory
from kcoord.process.runtime import Runtime
from kcoord.protocol.errors import Error, ProblemFields, ProtocolError
from kcoord.requests import current

API = "/v1/"


class Hosting:
    """The coordinator partitions of this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._config = runtime.config
        self._directory = runtime.get(NodeDirectory)
        self._partitions = runtime.config.int("offsets.topic.num.partitions")
        self.shards = Shards()
        self.is_node = False
        """This process is a node, or tries to be one. Commands and workers are not, and answer for every group."""
        self.routes = runtime.config.only_owners
        """Requests are answered by the owners of their groups' partitions only."""

    def partition_of(self, group_id: str) -> int:
        """The coordinator partition of a group."""
        return partition_of(group_id, self._partitions)

    def answer(self, group_id: str) -> Error:
        """What the current request meets: NONE, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        return self.shards.answer(self.partition_of(group_id)) if self._is_routed() else Error.NONE

    def require(self, group_id: str, said: ProblemFields | None = None) -> None:
        """Raise ProtocolError if the current request has to go elsewhere, or must wait.

        `said`: fields of the problem.
        """
        error = self.answer(group_id)
        if error is Error.NONE:
            return
        if error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            raise loading(self._config.int("http.retry.after.ms"), said)
        view = self._directory.view
        partition = self.partition_of(group_id)
        owner = None if view is None else view.owner_of(partition)
        fields: ProblemFields = {**(said or {})}
        if owner is not None and owner.url:
            fields["coordinator"] = self._directory.named(partition, owner)
        raise ProtocolError(error, "another node coordinates the group", fields=fields)

    def listed(self) -> Callable[[str], bool] | None:
        """Which groups a list of this node contains; None: all. Raises ProtocolError while any partition loads."""
        if not self._is_routed():
            return None
        if any(shard.state is ShardState.LOADING for shard in self.shards.values()):
            raise loading(self._config.int("http.retry.after.ms"))
        return lambda group_id: self.shards.answer(self.partition_of(group_id)) is Error.NONE

    def _is_routed(self) -> bool:
        if not self.routes or not self.is_node:
            return False
        request = current.request()
        if request is None:
            return False
        return request.is_api or (request.scope is not None and request.scope["path"].startswith(API))


def loading(retry_after_ms: int, said: ProblemFields | None = None) -> ProtocolError:
    """The answer while a partition is loaded."""
    return ProtocolError(
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        "the coordinator loads the group; the same request may succeed shortly",
        fields=said,
        retry_after_ms=retry_after_ms,
    )
