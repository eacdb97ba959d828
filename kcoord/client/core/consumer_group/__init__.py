"""A member of a consumer group (KIP-848): one heartbeat carries everything, the service assigns.

`states`, `reactions`, `membership`, `request` and `timer` are plain values and functions; `heartbeat` is the lane that
sends, `coordinator` what runs in the user's lane. Source: consumer.md 11; http-api.md "consumer-heartbeat".
"""
