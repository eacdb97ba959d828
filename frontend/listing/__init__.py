"""The list of groups: what it shows, in which order, and the columns of its table."""
