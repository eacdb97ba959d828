"""Kafka's APIs of offsets, topics, transactions and settings, for the wire gateway."""
