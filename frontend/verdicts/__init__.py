"""Verdicts on groups as text, and the overview of what needs attention."""
