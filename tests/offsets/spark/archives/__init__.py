"""Archives as releases wrote them, one folder for each version of the schema; see README.md."""
