"""Offset plans: computed, reviewed, applied, undone."""
