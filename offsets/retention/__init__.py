"""Which offsets expire, are pinned, or go with their topic."""
