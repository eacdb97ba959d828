"""The page of a member."""
