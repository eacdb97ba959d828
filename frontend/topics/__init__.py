"""The page of a topic."""
