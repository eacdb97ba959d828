"""The data plane of offsets: commit and fetch."""
