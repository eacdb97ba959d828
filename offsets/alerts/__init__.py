"""Alerts: rules that tell people and programs what is wrong with groups."""
