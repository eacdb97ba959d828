"""Which offsets expire, are pinned, or are deleted with their topic."""
