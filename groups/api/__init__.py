"""The data plane of groups: what members call."""
