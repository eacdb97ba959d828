"""`kgroups` and `manage.py kgroups`: the verbs, options and output of kafka-consumer-groups on top of the HTTP API.

Nothing here depends on Django or the database: what the tool does is what any client of the HTTP API can do.
Source: offsets.md 13. What differs from Kafka's tool is listed in docs/kgroups.md.
"""
