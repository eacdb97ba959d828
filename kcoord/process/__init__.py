"""Components with the lifetime of a server process: its runtime, the bridge for threads, in-memory database copies."""
