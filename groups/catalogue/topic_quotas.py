"""What quotas count of changes of topics: partitions that are created or deleted, as Kafka does (KIP-599)."""

from __future__ import annotations

from groups.catalogue.topics import TopicService
from kcoord.access.rights import Principal
from kcoord.process.runtime import Runtime
from kcoord.quotas.budgets import Budget
from kcoord.quotas.quotas import Quotas


async def admit_creation(runtime: Runtime, principal: Principal, partitions: int) -> None:
    """A topic is to be created. Raises THROTTLING_QUOTA_EXCEEDED."""
    runtime.get(Quotas).admit(principal, {Budget.PARTITIONS: max(1, partitions)})


async def admit_growth(runtime: Runtime, principal: Principal, name: str, partitions: int | None) -> None:
    """A topic is to have this many partitions. Raises THROTTLING_QUOTA_EXCEEDED."""
    if partitions is not None and _is_limited(runtime, principal):
        has = await _partitions_of(runtime, name)
        runtime.get(Quotas).admit(principal, {Budget.PARTITIONS: max(1, partitions - has)})


async def admit_deletion(runtime: Runtime, principal: Principal, name: str) -> None:
    """A topic is to be deleted. Raises THROTTLING_QUOTA_EXCEEDED."""
    if _is_limited(runtime, principal):
        runtime.get(Quotas).admit(principal, {Budget.PARTITIONS: max(1, await _partitions_of(runtime, name))})


def _is_limited(runtime: Runtime, principal: Principal) -> bool:
    return Budget.PARTITIONS in runtime.get(Quotas).meter(principal)


async def _partitions_of(runtime: Runtime, name: str) -> int:
    found = (await runtime.get(TopicService).view()).by_name.get(name)
    return 0 if found is None else found.partitions
