"""kcoord: Kafka's group coordinator as a web service on Postgres."""

__version__ = "0.1.0"
