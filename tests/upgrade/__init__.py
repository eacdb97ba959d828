"""Databases of released versions, and that this version migrates and serves them."""
