"""Verdicts on groups: judged for all of them in turn and stored, or for one at once."""
