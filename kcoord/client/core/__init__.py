"""The client without input and output: what a member does, written once for threads and for asyncio.

The code here is coroutines that await only `effects`: a request to send, a condition or time to wait for, a function of
the user to call. A driver (`kcoord.client.threads`, `kcoord.client.tasks`) carries them out and passes the results in.
The time comes from a clock that the driver passes in as well. Nothing here knows of sockets, threads or event loops,
and one piece of this code at a time runs: between two awaits nobody else changes anything.

A consumer has up to four *lanes*, which the driver runs concurrently: the calls of the user, the heartbeats, a
rebalance, and a queue of commits and look-ups in the order they were made.
"""
