"""The quota that names a principal most closely is its limit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcoord.access.quotas.budgets import Budget
from kcoord.access.quotas.quotas import Kind, Limit, Limits, Owner
from kcoord.config import Config

READS, CPU = Budget.READS, Budget.CPU
OWNERS = {7: Owner("ada", ("ops", "night"))}


def of(quotas: dict[tuple[Kind, str], float | None], token_id: int = 7) -> Limit:
    limits = Limits({(kind, name, CPU): value for (kind, name), value in quotas.items()}, OWNERS)
    return limits.of(token_id, "billing", CPU)


MINE: tuple[Kind, str] = (Kind.TOKEN, "billing")


@pytest.mark.parametrize(
    ("quotas", "expected"),
    [
        ({}, Limit(500, None, MINE)),
        ({(Kind.DEFAULT, ""): 6}, Limit(6, Kind.DEFAULT, MINE)),
        ({(Kind.DEFAULT, ""): None}, Limit(None, Kind.DEFAULT, MINE)),
        ({(Kind.DEFAULT, ""): 6, (Kind.GROUP, "ops"): 7}, Limit(7, Kind.GROUP, MINE)),
        ({(Kind.GROUP, "ops"): 7, (Kind.GROUP, "night"): 9}, Limit(9, Kind.GROUP, MINE)),
        ({(Kind.GROUP, "ops"): 7, (Kind.GROUP, "night"): None}, Limit(None, Kind.GROUP, MINE)),
        ({(Kind.GROUP, "others"): 1}, Limit(500, None, MINE)),
        ({(Kind.GROUP, "ops"): 7, (Kind.USER, "ada"): 2}, Limit(2, Kind.USER, (Kind.USER, "ada"))),
        ({(Kind.USER, "bob"): 2}, Limit(500, None, MINE)),
        ({(Kind.USER, "ada"): 2, (Kind.TOKEN, "billing"): 3}, Limit(3, Kind.TOKEN, MINE)),
        ({(Kind.USER, "ada"): 2, (Kind.TOKEN, "billing"): None}, Limit(None, Kind.TOKEN, MINE)),
    ],
)
def test_the_most_specific_quota_wins(quotas: Any, expected: Limit) -> None:
    assert of(quotas) == expected


def test_a_token_without_owner_has_the_default() -> None:
    assert of({(Kind.USER, "ada"): 2, (Kind.DEFAULT, ""): 6}, token_id=8) == Limit(6, Kind.DEFAULT, MINE)


def test_a_budget_without_a_limit_is_limited_by_quotas_only() -> None:
    assert Limits().of(1, "t", READS).value is None
    assert not Limits({(Kind.USER, "ada", READS): None}).any_of((READS,))
    assert Limits({(Kind.USER, "ada", READS): 1.0}).any_of((READS,))
    assert Limits().any_of((READS, CPU))


def test_limits_that_were_settings_are_refused_with_what_to_do_instead() -> None:
    for budget in Budget:
        [problem] = Config.from_env({"KCOORD_DATABASE_URL": "host=x", f"KCOORD_QUOTA_{budget.name}": "1"}).problems
        assert "no such setting; set `" + budget.key + "` with `manage.py quotas --alter --entity-default`" in problem


@given(budget=st.sampled_from([budget for budget in Budget if budget.is_rate]), limit=st.floats(1e-6, 1e12))
def test_every_limit_admits_something_at_once(budget: Budget, limit: float) -> None:
    assert budget.burst(limit) >= 1
    assert budget.rate(limit) > 0
