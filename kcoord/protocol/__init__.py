"""What clients and servers of kcoord share: Kafka's errors and the bytes of its consumer protocol."""
