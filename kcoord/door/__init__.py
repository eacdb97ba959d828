"""How requests come in: over HTTP and over Kafka's protocol."""
