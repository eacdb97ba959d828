"""The list of offset plans of all groups."""
