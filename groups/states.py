"""The states of groups and their types as they are stored. Without models: servers read it before Django is set up."""

from __future__ import annotations

CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
TYPES = (CLASSIC, CONSUMER, SHARE)
CLASSIC_STATES = ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]
CONSUMER_STATES = ["Empty", "Assigning", "Reconciling", "Stable"]
SHARE_STATES = ["Empty", "Stable"]
STATES = sorted({*CLASSIC_STATES, *CONSUMER_STATES}, reverse=True)
"""Of all types, the last by name first: the order in which lists go through them."""
