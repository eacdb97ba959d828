"""Share groups: workers that share the partitions of the topics they name (KIP-932). Here is their membership.

A group of this type reuses the model of the consumer protocol (members with epochs, a target that the coordinator
computes, sessions), and lacks what that needs only because a partition has one owner: reconciliation, owned partitions,
static members, regular expressions. Which items a worker has is not known here.
Source: share.md; KIP-932.
"""
