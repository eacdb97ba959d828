"""A member of a consumer group (KIP-848): one heartbeat carries everything, the service assigns.

`states`, `reactions`, `membership`, `request` and `timer` are pure; `heartbeat` is the thread that sends, `coordinator`
what runs in the user's thread. Source: consumer.md 11; http-api.md "consumer-heartbeat".
"""
