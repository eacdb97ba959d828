"""kcoord: Kafka's group coordinator as a web service on Postgres.

Nothing is imported here: the package kcoord-client has this file too, without the service and its dependencies.
"""

__version__ = "0.2.0"
