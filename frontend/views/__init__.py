"""Views. Deliberately synchronous: a large page is rendered in a thread and never blocks the data plane's event loop.

They read through `kcoord.process.bridge`; only `frontend.live`, which waits, is asynchronous.
"""
