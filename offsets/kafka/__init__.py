"""Offsets of Kafka: dumps of `__consumer_offsets`."""
