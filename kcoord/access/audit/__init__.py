"""The audit: who did what, from where, and what was refused.

`acts` names what is recorded, `caller` says on whose behalf code runs, `recording` writes a record in the transaction
of the act, `refusals` those of requests that were refused, `chain` checks and trims. The database seals the records of
a transaction when it commits (`kcoord/migrations/sql/0001_audit.sql`).
"""
