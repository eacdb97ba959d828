"""The page of the service's health: the parts of the overview in detail, with what to do."""
