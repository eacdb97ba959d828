"""kcoord: Kafka's group coordinator as a web service on Postgres."""
