"""API tokens: presets of rules for usual purposes."""
