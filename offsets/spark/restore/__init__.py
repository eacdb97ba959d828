"""The archive as of an instant: `states` for all groups with Spark, `lookup` for one group without it."""
