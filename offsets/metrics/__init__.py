"""What /metrics says about groups, from samples."""
