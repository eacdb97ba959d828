"""The wire gateway: clients that speak Kafka's protocol over TCP meet the same services as requests over HTTP.

Off unless `kafka.port` is set. kio brings Kafka's schemas; everything that reads a peer's bytes is here, because kio's
own reader allocates whatever an array length says. Handlers are in `groups.api.kafka` and `offsets.api.kafka`.
"""
