"""Alerts and their rules as pages show them."""
