"""Assignor cases run through the project's own assignors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.assignment import Assignment
from tests.conformance.driver import NoDriver


def assign(raw: Mapping[str, Any]) -> Assignment:
    """The assignment that the case's assignor computes. Raises NoDriver for an assignor the project does not have."""
    raise NoDriver(f"no driver for assignor {raw['assignor']}")
