"""The page of coordinator nodes."""
