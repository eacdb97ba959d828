"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and their timers.

Source: classic.md 0 to 8; KIP-62, KIP-345, KIP-394.
"""
