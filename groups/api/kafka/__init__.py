"""Kafka's APIs of groups and of the cluster, for the wire gateway."""
