"""Views. Synchronous on purpose: a large page is rendered in a thread and never holds up the loop of the data plane.

They read through `kcoord.process.bridge`; only `frontend.live`, which waits, is asynchronous.
"""
