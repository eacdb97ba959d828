"""The protocol core: commands in, facts out.

Pure: it imports the standard library and the error registry, nothing else. It has no clock (`env.now` is a parameter),
no randomness (`env.fresh_id`), no I/O and no logging. `machine.decide` is the entry point.

Glossary (KIP-62, 345, 394, 429): *generation* counts completed joins; *leader* is the member that computes the
assignment; *pending* ids were handed out with MEMBER_ID_REQUIRED and are not members yet; a *parked* join or sync waits
for a barrier; a *static* member carries a `group.instance.id`. The consumer protocol has its own terms (`consumer`).
"""
