"""Heartbeats that are answered from memory, and their sessions, which are written behind."""
