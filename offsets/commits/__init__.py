"""Committed offsets: commits and fetches, transactions, deletion and expiry."""
