"""Limits for tests: the default quota, so for every principal."""

from __future__ import annotations

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Kind, Limits, Quotas
from kcoord.process.runtime import Runtime


def limit(runtime: Runtime, **limits: float) -> Quotas:
    """Limit everybody to these and nothing else; the buckets are full."""
    quotas = runtime.get(Quotas)
    quotas._buckets.clear()
    quotas.use(Limits({(Kind.DEFAULT, "", budget): limits.get(budget.key) for budget in Budget}))
    return quotas
