"""What happened to all groups and to the service in a span of time."""
