"""A real Apache Kafka broker beside the service, over Kafka's own wire protocol."""
