"""Topics: what groups subscribe to."""
