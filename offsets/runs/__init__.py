"""Runs of the Spark jobs from the service's side: starting, watching, restoring from and repairing after them."""
