"""Transactional commits: pending offsets and their end."""
