"""A worker of a share group (KIP-932): acquires items, reads them from the source, settles each one.

`held` is what it has, as plain values; `settling` is the lane that sends what became of items and renews locks;
`reading`, `member` and `consumer` run in the user's lane. Source: share.md 1 and 7; http-api.md "acquire, settle".
"""
