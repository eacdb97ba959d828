"""Quotas: how much of a node each principal may use."""
