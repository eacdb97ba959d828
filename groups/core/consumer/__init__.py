"""The consumer group protocol: one heartbeat API, a target that the coordinator computes, and members that move
towards it one by one.

Glossary (KIP-848): the *group epoch* counts reasons to compute a new target; the *assignment epoch* is the group
epoch of the target that is stored; a member's *epoch* is that of the target it has reached or moves to; *assigned*
is what a member may use; *pending revocation* is what it was told to give up and has not acknowledged; a *departed*
static member left with epoch -2 and keeps its share until its session ends.
Source: consumer.md 1 to 8; KIP-848.
"""
