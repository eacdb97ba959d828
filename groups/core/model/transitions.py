"""Which state of a classic group may follow which (classic.md 1)."""

from __future__ import annotations

from collections.abc import Mapping

from groups.core.model.types import GroupState

_EMPTY, _DEAD, _STABLE = GroupState.EMPTY, GroupState.DEAD, GroupState.STABLE
_PREPARING, _COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE

TRANSITIONS: Mapping[GroupState, frozenset[GroupState]] = {
    _EMPTY: frozenset({_PREPARING, _DEAD}),
    _PREPARING: frozenset({_COMPLETING, _EMPTY, _DEAD}),
    _COMPLETING: frozenset({_STABLE, _PREPARING, _DEAD}),
    _STABLE: frozenset({_PREPARING, _DEAD}),
    _DEAD: frozenset({_DEAD}),
}
"""Anything else is a bug, never a reply."""
