"""Kafka's offsets: dumps of `__consumer_offsets`."""
