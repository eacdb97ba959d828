"""What the pages show of the archive: runs of Spark jobs and the findings of reconcile."""
